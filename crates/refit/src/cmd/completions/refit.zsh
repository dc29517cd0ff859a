#compdef refit
# zsh completion for refit(1): what can follow is printed by `refit complete`.
_refit()
{
    local at=${words[(i)--]} line value entry
    local -a whole goes_on
    # The command that refit runs has completions of its own.
    if (( at < CURRENT )); then
        words=("${(@)words[at+1,-1]}")
        (( CURRENT -= at ))
        _normal
        return
    fi
    for line in "${(@f)$(refit complete -- "${(@)words[1,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}"; do
        value=${line%%$'\t'*}
        [[ -n $value ]] || continue
        entry=${value//:/\\:}
        [[ $line == *$'\t'* ]] && entry+=:${line#*$'\t'}
        if [[ $value == *[=/:.] ]]; then
            goes_on+=("$entry")
        else
            whole+=("$entry")
        fi
    done
    (( $#whole )) && _describe -V word whole
    (( $#goes_on )) && _describe -V word goes_on -S ''
}
# Where it was found by its name, this file is the function.
if [[ $funcstack[1] == _refit ]]; then
    _refit "$@"
else
    compdef _refit refit
fi
