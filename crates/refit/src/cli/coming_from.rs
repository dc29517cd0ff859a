//! Options and verbs of tools that people know, and what refit has in their place: docs/coming-from.md holds the same
//! tables, and a test compares both.

/// A tool, and the verbs of refit that stand for it.
struct Tool {
    name: &'static str,
    verbs: &'static [&'static str],
    /// What is typed there, in all its spellings, and what to do here.
    words: &'static [(&'static [&'static str], &'static str)],
}

const TOOLS: &[Tool] = &[
    Tool {
        name: "hyperfine",
        verbs: &["compare"],
        words: &[
            (
                &["--warmup", "-w"],
                "the first round pair is the warm-up, and does not count",
            ),
            (
                &["--runs", "-r", "--min-runs", "-m", "--max-runs", "-M"],
                "how many runs are needed follows from the noise, within --budget; --rounds N is the most",
            ),
            (
                &["--setup", "-s"],
                "do it before; --prepare COMMAND comes before each run, --fresh-copy DIR gives each run its own copy",
            ),
            (
                &["--cleanup", "-c"],
                "do it after; --conclude COMMAND comes after each run",
            ),
            (&["-p"], "--prepare COMMAND"),
            (&["-C"], "--conclude COMMAND"),
            (
                &[
                    "--parameter-scan",
                    "-P",
                    "--parameter-step-size",
                    "-D",
                    "--parameter-list",
                    "-L",
                ],
                "each variant is a word: env.N=1 env.N=2, and the command reads $N",
            ),
            (
                &["-S"],
                "--shell: the command is one word, run by the shell",
            ),
            (&["-N"], "nothing to do: without --shell no shell runs"),
            (
                &["--ignore-failure", "-i"],
                "a variant whose runs fail is disqualified; to allow it: sh -c 'COMMAND; true'",
            ),
            (
                &["--reference", "--reference-name"],
                "the baseline is the command as it is; program=PATH compares another executable with it",
            ),
            (
                &["--command-name"],
                "a variant has the name of its settings",
            ),
            (
                &["--style"],
                "NO_COLOR=1 for no colours, --quiet for no progress",
            ),
            (
                &["--sort"],
                "variants stay in the order in which they were typed",
            ),
            (
                &["--time-unit", "-u"],
                "the unit follows from the size; --json FILE has nanoseconds",
            ),
            (&["--export-json"], "--json FILE"),
            (&["--export-csv"], "--csv FILE, one line for each run"),
            (
                &["--export-markdown", "--export-asciidoc", "--export-orgmode"],
                "--md FILE",
            ),
            (
                &["--show-output", "--output"],
                "refit run -- COMMAND shows it; --same-output compares it",
            ),
        ],
    },
    Tool {
        name: "strace",
        verbs: &["run", "watch"],
        words: &[
            (
                &[
                    "-c",
                    "-C",
                    "--summary",
                    "--summary-only",
                    "-w",
                    "--summary-wall-clock",
                ],
                "refit run -- COMMAND counts and times the sync calls, and only those",
            ),
            (
                &["-f", "--follow-forks"],
                "nothing to do: the whole tree is followed, beneath exec and cleared environments too",
            ),
            (
                &["-e", "--trace"],
                "sync calls are what is seen (fsync, fdatasync, msync, O_SYNC …); refit run --trace-sync FILE writes each",
            ),
            (&["-o", "--output"], "refit run --trace-sync FILE"),
            (&["-p", "--attach"], "refit watch PID"),
            (
                &["-T", "--syscall-times", "-t", "-r", "--relative-timestamps"],
                "refit run --trace-sync FILE has when each call ended, and how long it took",
            ),
            (
                &["-y", "--decode-fds"],
                "refit run --trace-sync FILE has the path of each call's file",
            ),
            (
                &["--inject", "--fault"],
                "disk=fail:EIO,every=N, a setting: sync calls fail",
            ),
            (&["-E", "--env"], "env.NAME=VALUE, a setting"),
            (
                &["-P", "--trace-path"],
                "sync@/PATH/=off, a scope of a setting",
            ),
        ],
    },
    Tool {
        name: "heaptrack",
        verbs: &["run", "watch"],
        words: &[
            (
                &["-p", "--pid"],
                "refit watch PID; what malloc gave out is counted from the start only: refit run --heap",
            ),
            (
                &["-o", "--output", "-r", "--raw", "--record-only"],
                "refit run --heap --heap-stacks FILE; FILE.svg is a flame graph",
            ),
            (
                &["-a", "--analyze", "-i", "--interpret"],
                "nothing to do: refit run --heap prints who has what",
            ),
        ],
    },
    Tool {
        name: "TuneD",
        verbs: &[],
        words: &[
            (
                &["list"],
                "refit recipes lists services and what to try on them; refit run --explain SETTING, what one does",
            ),
            (&["active"], "refit status"),
            (
                &["profile"],
                "refit apply SERVICE SETTINGS; refit plan shows it first",
            ),
            (&["profile_info"], "refit plan SERVICE SETTINGS"),
            (
                &["recommend"],
                "refit tune RECIPE measures what to take; refit run -- COMMAND observes",
            ),
            (&["verify"], "refit status --exit-code"),
            (&["off"], "refit revert SERVICE"),
        ],
    },
    Tool {
        name: "sqldef",
        verbs: &["plan", "apply", "status", "revert"],
        words: &[
            (&["--dry-run"], "refit plan, which changes nothing"),
            (&["--apply"], "refit apply"),
            (
                &["--enable-drop", "--enable-drop-table"],
                "what destroys data needs --accept loses-data; the rest is dropped",
            ),
            (
                &["--file", "-f"],
                "refit plan postgresql/DATABASE schema=FILE, or schema=-",
            ),
            (
                &["--export"],
                "refit status postgresql/DATABASE --export schema",
            ),
        ],
    },
];

/// What to do in place of a word that refit does not know, by each tool that does.
pub fn hints(verb: Option<&str>, typed: &str) -> Vec<String> {
    let is_asked = |tool: &&Tool| match verb {
        Some(verb) if !tool.verbs.is_empty() => tool.verbs.contains(&verb),
        _ => true,
    };
    let of_tool = |tool: &Tool| {
        let mut words = tool.words.iter();
        let (_, hint) = words.find(|(spellings, _)| spellings.contains(&typed))?;
        Some(format!("{}'s {typed}: {hint}", tool.name))
    };
    TOOLS.iter().filter(is_asked).filter_map(of_tool).collect()
}
