# fish completion for refit(1): what can follow is printed by `refit complete`.
function __refit_complete
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    set -l last (commandline --current-token --cut-at-cursor)
    set -l at (contains --index -- -- $words)
    if test -n "$at"
        # The command that refit runs has completions of its own.
        set -l command (string escape -- $words[(math $at + 1)..-1])
        complete --do-complete (string join ' ' -- $command $last)
        return
    end
    refit complete -- $words $last 2>/dev/null
end
complete --command refit --no-files --keep-order --arguments '(__refit_complete)'
