# bash completion for refit(1): what can follow is printed by `refit complete`.
_refit()
{
    # bash cuts words at = : and @, refit does not: pieces without a blank between them are one word.
    local rest=${COMP_LINE:0:COMP_POINT} words=() piece i glued
    for ((i = 0; i <= COMP_CWORD; i++)); do
        piece=${COMP_WORDS[i]}
        glued=
        [[ $i -gt 0 && $rest != [[:blank:]]* ]] && glued=yes
        rest=${rest#"${rest%%[![:blank:]]*}"}
        # The last one goes on after the cursor.
        [[ $i -eq $COMP_CWORD ]] && piece=$rest
        rest=${rest#"$piece"}
        if [[ $glued ]]; then
            words[${#words[@]} - 1]+=$piece
        else
            words+=("$piece")
        fi
        # The command that refit runs has completions of its own.
        if [[ $piece == -- && $i -lt $COMP_CWORD ]]; then
            declare -F _command_offset >/dev/null && _command_offset $((i + 1))
            return
        fi
    done

    local last=${words[${#words[@]} - 1]} tail value goes_on=yes
    COMPREPLY=()
    while IFS=$'\t' read -r value _; do
        [[ $value == *[=/:.] ]] || goes_on=
        [[ $value == *[[:space:]\'\"\\\$\`]* ]] && printf -v value %q "$value"
        COMPREPLY+=("$value")
    done < <(refit complete -- "${words[@]}" 2>/dev/null)
    # It replaces only what follows the last place where it cuts.
    tail=${last##*["$COMP_WORDBREAKS"]}
    COMPREPLY=("${COMPREPLY[@]#"${last%"$tail"}"}")
    [[ $goes_on && ${#COMPREPLY[@]} -gt 0 ]] && compopt -o nospace 2>/dev/null
    return 0
}
complete -o bashdefault -o default -o nosort -F _refit refit
