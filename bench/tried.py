"""What was tried for each goal, told where it is missed. Figures are of the commits that are named."""

FSYNC = ("the whole path of a suppressed call in one function, and one unlocked addition to count it (728dab9, d10cb7a): "
         "0.679 to 0.61–0.66; the question to the kernel whether the descriptor is good is 0.54 alone, and no cheaper call "
         "was found that looks at one")
LAUNCH = ("only the libraries that a run needs are placed (3cad17d); compared in pieces, without the page faults of a copy: "
          "1.85 instead of 2.19 ms of processor time (20a97e0); no symbol lookups, no CPUID: 0.11 ms (aa83b52); the "
          "guardian starts beside the rest, or not at all (d9a15f2); the search for system calls reads eight bytes at once "
          "(ba78254). glibc's start of a static program executes CPUID 43 times, and a virtual machine traps each: built "
          "with musl a prototype of refit started 0.34 ms sooner, but Rust's library for musl does not come with the "
          "toolchain. env(1) in this table is what a second exec alone "
          "takes; the report adds a session, its reading and a file")
STARTS = ("filters that a program inherited are looked for only before a call that depends on them: 1.06–1.08 of eatmydata "
          "to 1.01 without a report (452e859); no symbol lookups: 0.06 ms a start (aa83b52); with a report each program "
          "makes and maps a file of its own for its counters")
OPEN = "an open without O_SYNC, O_DSYNC and O_DIRECT is not counted, and makes no further system call"
PROGRAM = ("what is left is starts, not syncs: refit's own (see `launch`) and, with a report, each program's (see `starts`); "
           "a suppressed sync itself costs less than eatmydata's (see `fsync`)")
NOTIFICATION = ("directories of threads below /proc stay open, and one session is shared: 9.1 to 5.1 µs on a day when a bare "
                "notification took 2.3 (591b5f8); the executable and the descriptor can change between two calls and are "
                "read at each")
RECORDING = ("the image and the record are kept by a thread of their own, in batches of 1 MiB (dff4a47); each write still "
             "crosses FUSE")
