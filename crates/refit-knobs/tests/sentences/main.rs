//! Which words are accepted, and the sentence for each that is not.

mod accepted;
mod disk;
mod other_names;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use refit_knobs::{Setting, SettingError, Settings};

fn parse(words: &str) -> Result<Settings, SettingError> {
    Settings::parse(words.split(' ').map(OsString::from))
}

#[test]
fn each_refusal_has_its_sentence() {
    for (word, sentence) in [
        (
            "env.A",
            "`env.A` is not a setting (no `=`); write it as in `env.NAME=VALUE`, or for the command: refit run … -- env.A",
        ),
        (
            "a/b=c",
            "unknown setting `a/b` (there are sync, odirect, disk, malloc, thp, program, tz, env, preload, schema, conf, load); write it as in `sync=off`",
        ),
        (
            "ls",
            "`ls` is not a setting (no `=`); a command goes after `--`: refit run … -- ls",
        ),
        (
            "sync",
            "`sync` is not a setting (no `=`); write it as in `sync=off`, or for the command: refit run … -- sync",
        ),
        (
            "",
            "an empty word is not a setting; write a setting as in `sync=off`, or the command after `--`",
        ),
        (
            "sync=off+malloc=jemalloc",
            "`sync=off+malloc=jemalloc` joins several settings where one is expected; write `sync=off` alone",
        ),
        (
            "syn=drop",
            "unknown setting `syn`; did you mean `sync=off`?",
        ),
        (
            "sync=of",
            "`sync` cannot be `of`: expected `on` or `off`; did you mean `sync=off`?",
        ),
        (
            "sync@exe:a=drop",
            "`sync` cannot be `drop`: expected `on` or `off`; did you mean `sync@exe:a=off`?",
        ),
        (
            "sync=defer:1s",
            "`sync` cannot be `defer:1s`: expected `on` or `off`; write it as in `sync=off`",
        ),
        (
            "sync=",
            "`sync=` has no value: expected `on` or `off`; write it as in `sync=off`",
        ),
        (
            "sync@incoming/=off",
            "`@incoming/` is not a scope: programs are `@exe:NAME`, files are `@/PATH`, which begins with `/`; write it as in `sync@/PATH/incoming/=off`",
        ),
        (
            "sync@cleanup=off",
            "`@cleanup` is not a scope: programs are `@exe:NAME`, files are `@/PATH`, which begins with `/`; did you mean `sync@exe:cleanup=off`?",
        ),
        (
            "sync@path:/a/=off",
            "`@path:/a/` is not a scope: programs are `@exe:NAME`, files are `@/PATH`, which begins with `/`; did you mean `sync@/a/=off`?",
        ),
        (
            "sync@EXE:cleanup=of",
            "`@EXE:cleanup` is not a scope: programs are `@exe:NAME`, files are `@/PATH`, which begins with `/`; did you mean `sync@exe:cleanup=off`?",
        ),
        (
            "disk@=8ms",
            "`@` is not a scope: programs are `@exe:NAME`, files are `@/PATH`, which begins with `/`; write it as in `disk@exe:NAME=8ms`",
        ),
        (
            "sync@/a//b/../c=off",
            "`/a//b/../c` would match no file: the kernel's own paths hold no `//`; write `sync@/a/c=off`",
        ),
        (
            "sync@/a/../=off",
            "`/a/../` would match no file: the kernel's own paths hold no `..`; write `sync@/=off`",
        ),
        (
            "disk@/a/./b=8",
            "`/a/./b` would match no file: the kernel's own paths hold no `.`; write `disk@/a/b=8ms`",
        ),
        (
            "tz@/a/=UTC",
            "`tz` takes no scope, and `@/a/` was given; write `tz=UTC`",
        ),
        (
            "sync@/a=b/=off",
            r"`sync` cannot be `b/=off`, and the first `=` ended the scope (write `\=` for one that is part of it); did you mean `sync@/a\=b/=off`?",
        ),
        (
            "disk@/a=b/=c=p50=4ms,p99=30ms",
            r"`disk` cannot be `b/=c=p50=4ms,p99=30ms`, and the first `=` ended the scope (write `\=` for one that is part of it); did you mean `disk@/a\=b/\=c=p50=4ms,p99=30ms`?",
        ),
        (
            r"sync@/a\=off",
            r"`sync@/a\=off` is not a setting: `\=` is part of the scope, and no `=` ends the scope; did you mean `sync@/a=off`?",
        ),
        (
            "sync@/a",
            "`sync@/a` is not a setting (no `=`); write it as in `sync=off`, or for the command: refit run … -- sync@/a",
        ),
        (
            "sync@/a+b/=off+maloc=jemalloc",
            "unknown setting `maloc`; did you mean `malloc=jemalloc`?",
        ),
        (
            "disk@/a/=8",
            "`disk` cannot be `8`: expected a latency of more than 0 and at most 60s, such as `8ms` or `500us`; percentiles (`p50=4ms,p99=30ms`), the absolute path of a profile, `fail:EIO` or `real`; did you mean `disk@/a/=8ms`?",
        ),
        (
            "disk@exe:x=~/slow",
            r#"`disk` needs the absolute path of a profile, not `~/slow` (in a shell: "$HOME/slow"); write it as in `disk@exe:x=/PATH/slow`"#,
        ),
        (
            "sync@exe:/usr/sbin/cleanup=off",
            "`/usr/sbin/cleanup` cannot be the name of an executable: it is the last part of /proc/self/exe, which has no `/`; \
             did you mean `sync@exe:cleanup=off`?",
        ),
        (
            "sync@exe:=off",
            "`` cannot be the name of an executable: it is empty; write it as in `sync@exe:NAME=off`",
        ),
        (
            "sync.a=off",
            "`sync` has no parts, and `.a` was given; write `sync=off`",
        ),
        (
            "tz@exe:ruby=UTC",
            "`tz` takes no scope, and `@exe:ruby` was given; write `tz=UTC`",
        ),
        (
            "env.A@exe:ruby=1",
            "`env` takes no scope, and `@exe:ruby` was given; write `env.A=1`",
        ),
        (
            "env=A=1",
            "`env` needs the name of a variable; did you mean `env.A=1`?",
        ),
        (
            "env.MY-VAR=1",
            "`MY-VAR` is not a variable's name (letters, digits and `_`, no digit first); did you mean `env.MY_VAR=1`?",
        ),
        (
            "env.1A=1",
            "`1A` is not a variable's name (letters, digits and `_`, no digit first); write it as in `env.NAME=VALUE`",
        ),
        (
            "env.LD_PRELOAD=/x.so",
            "`env.LD_PRELOAD` would take the place of refit's own library; write `preload=/x.so`",
        ),
        (
            "env.REFIT_SESSION=1",
            "`REFIT_SESSION` cannot be set: names that begin with `REFIT_` are refit's own; choose another name, \
             as in `env.NAME=VALUE`",
        ),
        (
            "preload=x.so",
            "`preload` needs an absolute path, not `x.so`; write it as in `preload=/abs/path.so`",
        ),
        (
            "malloc=./x.so",
            "`malloc` needs an absolute path, not `./x.so`; write it as in `malloc=/abs/path.so`",
        ),
        (
            "preload=/a.so:/b.so",
            "`/a.so:/b.so` cannot be preloaded: ld.so splits its list at ':'; choose a path without it, \
             as in `preload=/abs/path.so`",
        ),
        (
            "malloc=je",
            "`malloc` cannot be `je`: expected `glibc`, `jemalloc`, `mimalloc`, `tcmalloc` or `/path/lib.so`; \
             did you mean `malloc=jemalloc`?",
        ),
        (
            "malloc=glibc:MALLOC_ARENA_MAX=2",
            "glibc has no option `MALLOC_ARENA_MAX`; did you mean `malloc=glibc:arena_max=2`?",
        ),
        (
            "malloc=glibc:zzz=2",
            "glibc has no option `zzz` (it has arena_max, arena_test, mmap_max, mmap_threshold, trim_threshold, \
             top_pad, perturb, check, tcache_max, tcache_count, tcache_unsorted_limit, mxfast, hugetlb); \
             write it as in `malloc=glibc:arena_max=1`",
        ),
        (
            "malloc=glibc:arena_max=two",
            "glibc's `arena_max` cannot be `two`: expected a whole number of 1 or more; \
             write it as in `malloc=glibc:arena_max=1`",
        ),
        (
            "malloc=jemalloc:dss",
            "jemalloc's `dss` has no value: expected `disabled`, `primary` or `secondary`; \
             write it as in `malloc=jemalloc:dss:disabled`",
        ),
        (
            "malloc=glibc:",
            "`glibc:` has an empty option; write `malloc=glibc`",
        ),
        (
            "malloc=jemalloc:zero:true,zero:false",
            "jemalloc's `zero` is given twice in `malloc=jemalloc:zero:true,zero:false`; keep one of them",
        ),
        (
            "thp=off",
            "`thp` cannot be `off`: expected `never`, `madvise` or `always`; did you mean `thp=never`?",
        ),
        (
            "tz=",
            "`tz=` has no value: expected a time zone; write it as in `tz=right/Japan`",
        ),
    ] {
        assert_eq!(
            word.parse::<Setting>().expect_err(word).to_string(),
            sentence,
            "{word}"
        );
    }
}

#[test]
fn settings_that_cannot_both_hold_are_refused() {
    for (words, sentence) in [
        (
            "malloc=glibc malloc=jemalloc",
            "`malloc` is given twice, `malloc=glibc` and `malloc=jemalloc`; keep one of them",
        ),
        (
            "thp=never sync=off thp=never",
            "`thp` is given twice, `thp=never` and `thp=never`; keep one of them",
        ),
        (
            "tz=UTC tz=Japan",
            "`tz` is given twice, `tz=UTC` and `tz=Japan`; keep one of them",
        ),
        (
            "disk=8ms disk@/srv/=fail:EIO",
            "`disk` is given twice, `disk=8ms` and `disk@/srv/=fail:EIO`; keep one of them",
        ),
        (
            "disk=real disk=real",
            "`disk` is given twice, `disk=real` and `disk=real`; keep one of them",
        ),
        (
            "env.A=1 env.A=2",
            "`env.A` is given twice, `env.A=1` and `env.A=2`; keep one of them",
        ),
        (
            "tz=UTC env.TZ=Japan",
            "`tz=UTC` and `env.TZ=Japan` both set TZ; keep one of them",
        ),
        (
            "env.MALLOC_CONF=x malloc=jemalloc:zero:true",
            "`env.MALLOC_CONF=x` and `malloc=jemalloc:zero:true` both set MALLOC_CONF; keep one of them",
        ),
    ] {
        assert_eq!(
            parse(words).expect_err(words).to_string(),
            sentence,
            "{words}"
        );
    }
    for words in [
        "sync=off sync=on sync@exe:a=off",
        "preload=/a.so preload=/a.so",
        "env.A=1 env.B=1",
        "env.MALLOC_CONF=x malloc=jemalloc",
    ] {
        assert_eq!(parse(words).expect(words).to_string(), words);
    }
}

#[test]
fn an_executables_name_has_at_most_63_bytes() {
    let word = |bytes: usize| format!("sync@exe:{}=off", "x".repeat(bytes)).parse::<Setting>();
    assert!(word(63).is_ok());
    let sentence = word(64).expect_err("too long").to_string();
    assert!(
        sentence.contains("it has 64 bytes, and at most 63 fit"),
        "{sentence}"
    );
}

#[test]
fn a_path_has_at_most_4095_bytes() {
    let word = |bytes: usize| format!("sync@/{}=off", "x".repeat(bytes - 1)).parse::<Setting>();
    assert!(word(4095).is_ok());
    let sentence = word(4096).expect_err("too long").to_string();
    assert!(
        sentence.ends_with(
            "it has 4096 bytes, and a path at most 4095; write it as in `sync@/PATH=off`"
        ),
        "{sentence}"
    );
}

#[test]
fn a_hostile_word_is_judged_in_no_time() {
    let began = std::time::Instant::now();
    for piece in ["=b", "=//", "\\=", "/..", "+sync@/a", "p1=1,", "\\+disk=a"] {
        for head in ["sync@/a=", "disk@/a", "disk=p1=1,", "sync@"] {
            let word = head.to_owned() + &piece.repeat(10_000);
            if let Err(error) = word.parse::<Setting>() {
                assert!(error.to_string().contains('`'));
            }
        }
    }
    // Far less; but what grows with the square of the length takes minutes.
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
}

#[test]
fn words_that_are_not_utf8_or_hold_a_nul_are_named() {
    let words = [OsString::from_vec(b"env.A=\xff".to_vec())];
    let sentence = Settings::parse(words).expect_err("not UTF-8").to_string();
    assert_eq!(
        sentence,
        "`env.A=\u{fffd}` is not UTF-8, and a setting has to be; write it in UTF-8"
    );
    let sentence = "tz=a\0b".parse::<Setting>().expect_err("a NUL").to_string();
    assert_eq!(
        sentence,
        "`tz=a\\0b` holds a NUL byte, which neither a path nor a variable can; write it without"
    );
}

#[test]
fn values_are_checked_as_the_allocator_would() {
    for (option, accepted, refused) in [
        (
            "glibc:arena_max",
            &["1", "0x10", "18446744073709551615"][..],
            &["0", "-1", "two", "010", "0x", "18446744073709551616", "4K"][..],
        ),
        ("glibc:perturb", &["0", "255"], &["256"]),
        (
            "jemalloc:dirty_decay_ms",
            &["-1", "0"],
            &["-2", "", "--1", "+1"],
        ),
        ("jemalloc:narenas", &["2", "default"], &["0", "many"]),
        ("jemalloc:retain", &["true", "false"], &["1", "yes", "TRUE"]),
        ("jemalloc:prof_prefix", &["/tmp/a:b=c"], &[]),
        (
            "mimalloc:verbose",
            &["0", "1", "on", "yes"],
            &["0x1", "maybe"],
        ),
        ("mimalloc:reserve_huge_os_pages_at", &["-1", "3"], &[]),
        (
            "tcmalloc:release_rate",
            &["0", "2.5", "10"],
            &["-1", ".5", "5.", "1e3"],
        ),
    ] {
        for value in accepted {
            let word = format!("malloc={option}={value}");
            assert!(word.parse::<Setting>().is_ok(), "{word}");
        }
        for value in refused {
            let word = format!("malloc={option}={value}");
            assert!(word.parse::<Setting>().is_err(), "{word}");
        }
    }
}
