//! Programs that other suppressors of syncs are known to break: under refit each says what it says without, and
//! what it is known to sync is suppressed.

use std::fs;
use std::path::Path;

use crate::locations::{allocator_file, system_library};
use crate::ran::number;
use crate::runner::{Outcome, Test};
use crate::test_env::{TestEnv, described, expect_code, refit_path};
use crate::{places, test};

pub const TESTS: &[Test] = &[
    test!(tar_extracts_the_same_tree),
    test!(cpythons_own_tests_of_what_syncs_say_the_same).limit_seconds(180),
    test!(a_bad_descriptor_is_bad_in_every_language).limit_seconds(120),
    test!(an_allocator_of_the_users_own_stays_beside_us).limit_seconds(180),
    test!(a_sanitized_program_says_the_same),
    test!(fakeroot_builds_the_same_package),
    test!(fakechroot_finds_the_same_files),
];

/// What refit is told; the first words of `refit run`.
const MODES: &[&[&str]] = &[&["sync=on"], &["sync=off"], &["sync=off", "odirect=off"]];

/// And root can tell it to leave the preload out.
const ROOTS_MODES: &[&[&str]] = &[&["--backend", "seccomp", "sync=off"]];

/// A shell script that must succeed in a directory of its own, without refit and then in each mode: what `shown` makes
/// of its stdout and stderr must be the same each time. Where sync is off, calls of these kinds must have been
/// suppressed.
pub struct Script<'a> {
    pub name: &'a str,
    pub text: &'a str,
    pub kinds: &'a [&'a str],
    pub shown: fn(&str) -> String,
}

pub fn same(
    env: &TestEnv,
    name: &str,
    script: &str,
    kinds: &[&str],
    shown: fn(&str) -> String,
) -> String {
    let script = Script {
        name,
        text: script,
        kinds,
        shown,
    };
    let bare = script.bare(env);
    for mode in modes(env, MODES) {
        let got = script.beneath(env, mode);
        assert!(got == bare, "{mode:?}: {got}\nwithout refit: {bare}");
    }
    bare
}

/// The same with all modes at once: for what waits, and has nothing in common.
pub fn same_at_once(env: &TestEnv, some: &[&[&str]], script: &Script) -> String {
    std::thread::scope(|scope| {
        let bare = scope.spawn(|| script.bare(env));
        let modes = modes(env, some);
        let others: Vec<_> = modes
            .map(|mode| scope.spawn(move || (mode, script.beneath(env, mode))))
            .collect();
        let bare = bare.join().expect("its assertions hold");
        for other in others {
            let (mode, got) = other.join().expect("its assertions hold");
            assert!(got == bare, "{mode:?}: {got}\nwithout refit: {bare}");
        }
        bare
    })
}

fn modes<'a>(env: &TestEnv, some: &'a [&'a [&'a str]]) -> impl Iterator<Item = &'a [&'a str]> {
    let roots = ROOTS_MODES.iter().filter({
        let as_root = env.as_root();
        move |_| as_root
    });
    some.iter().chain(roots).copied()
}

impl Script<'_> {
    fn run(&self, env: &TestEnv, mode: &str, before: &[&str]) -> String {
        let dir = env.subdir(&format!("{}-{mode}", self.name));
        let words = [before, &["env", "-C", &dir, "sh", "-ec", self.text]].concat();
        let output = env.run(&words);
        expect_code(&output, 0);
        let shown = |bytes: &[u8]| (self.shown)(&String::from_utf8_lossy(bytes));
        let [out, err] = [&output.stdout, &output.stderr].map(|bytes| shown(bytes));
        format!("{out}--- stderr\n{err}").replace(&dir, "DIRECTORY")
    }

    fn bare(&self, env: &TestEnv) -> String {
        self.run(env, "bare", &[])
    }

    fn beneath(&self, env: &TestEnv, mode: &[&str]) -> String {
        let (refit, name) = (refit_path(), mode.join("+"));
        let json = env.path(&format!("{}-{name}.json", self.name));
        let options = [&refit, "run", "--quiet", "--json", &json];
        let got = self.run(env, &name, &[&options[..], mode, &["--"]].concat());
        let text = fs::read_to_string(&json).expect("refit wrote its report");
        let report: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
        for kind in self.kinds {
            let suppressed = number(&report["totals"][kind]["suppressed"]);
            let is_off = mode.contains(&"sync=off");
            assert_eq!(suppressed > 0, is_off, "{kind}, {mode:?}: {report:#}");
        }
        got
    }
}

pub fn all(text: &str) -> String {
    text.to_owned()
}

fn tar_extracts_the_same_tree(env: &TestEnv) -> Outcome {
    let script = r#"
mkdir -p tree/a/b out
for n in $(seq 50); do echo $n > tree/a/$n; done
ln -s ../a/1 tree/a/link; ln tree/a/2 tree/a/b/hard; mkfifo tree/fifo; chmod 0701 tree/a/b
tar -cf tree.tar tree
tar -xf tree.tar -C out
cd out
find . -printf '%p %y %m %s %n %l\n' | sort
cat tree/a/[0-9]*"#;
    env.require_command("tar");
    let messages = same(env, "tar", script, &[], all);
    assert!(messages.contains("./tree/a/link l 777"), "{messages}");
    Outcome::Pass
}

/// What broke under nspawn's suppression: `os.fsync` of a bad descriptor has to fail.
fn cpythons_own_tests_of_what_syncs_say_the_same(env: &TestEnv) -> Outcome {
    let has_tests = ["/usr/bin/python3", "-c", "import test.test_os"];
    if !Path::new(has_tests[0]).exists() || !env.run(&has_tests).status.success() {
        env.skip("the tests of Python are not installed (libpython3.*-testsuite)");
    }
    // Without those of timers, which fail on a busy machine, and the one that CPython 3.14 skips where LD_PRELOAD is set.
    let script = "
exec /usr/bin/python3 -c '
import unittest
import test.test_fileio
import test.test_os
vars(test.test_os).pop(\"TimerfdTests\", None)
if hasattr(test.test_fileio.AutoFileTests, \"test_syscalls_read\"):
    del test.test_fileio.AutoFileTests.test_syscalls_read
modules = \"os posix mmap fileio gzip dbm_dumb mailbox tempfile\".split()
unittest.main(None, argv=[\"tests\", \"-q\", *(f\"test.test_{name}\" for name in modules)])
'";
    let verdict = |text: &str| {
        let lines = text.lines().filter(|line| {
            line.starts_with("Ran ") || line.starts_with("OK") || line.starts_with("FAILED")
        });
        // Without how long it took.
        lines
            .map(|line| format!("{}\n", line.split(" in ").next().unwrap_or_default()))
            .collect()
    };
    let messages = same(env, "python", script, &["fsync", "msync"], verdict);
    println!("{messages}");
    let ran = messages
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .next();
    assert!(ran > Some(1000), "{messages}");
    Outcome::Pass
}

fn a_bad_descriptor_is_bad_in_every_language(env: &TestEnv) -> Outcome {
    const PYTHON: &str = r#"
python3 - <<'END'
import os
read, write = os.pipe()
for call in os.fsync, os.fdatasync:
    for fd in 900, read, write, os.open(".", os.O_PATH), os.open("/dev/null", os.O_WRONLY), os.open("f", 65):
        try:
            print(call.__name__, call(fd))
        except OSError as error:
            print(call.__name__, error)
END"#;
    const PERL: &str = r#"
perl -MIO::Handle -e '
pipe(my $r, my $w) or die;
open(my $null, ">", "/dev/null") or die;
open(my $file, ">", "file") or die;
for my $handle ($r, $w, $null, $file) { print $handle->sync ? "synced\n" : "$!\n"; }
close $file;
print $file->sync ? "synced\n" : "$!\n";
'"#;
    const RUBY: &str = r#"
ruby -e '
read, write = IO.pipe
[read, write, File.open("/dev/null", "w"), File.open("f", "w")].each do |io|
    %i[fsync fdatasync].each { |call| begin puts io.send(call) rescue puts $!.class end }
end'"#;
    const NODE: &str = r#"
node -e '
const fs = require("fs");
for (const fd of [900, fs.openSync("/dev/null", "w"), fs.openSync(".", "r"), fs.openSync("f", "w")])
    for (const call of ["fsyncSync", "fdatasyncSync"])
        try { console.log(call, fs[call](fd)); } catch (error) { console.log(call, error.code); }
fs.fsync(900, (error) => console.log(error.code));
'"#;
    const JAVA: &str = r#"
cat > Bad.java <<'END'
import java.io.*;
class Bad {
    public static void main(String[] args) throws Exception {
        for (String name : new String[] {"/dev/null", "file"})
            try (var file = new FileOutputStream(name)) {
                file.getFD().sync();
                System.out.println("synced " + name);
                file.getChannel().force(true);
                System.out.println("forced " + name);
            } catch (IOException error) {
                System.out.println(error);
            }
    }
}
END
java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC Bad.java"#;
    const COREUTILS: &str = r#"
for file in /dev/null missing . ; do sync $file 2>&1 || echo $?; done
dd if=/dev/zero of=/dev/null count=1 conv=fsync status=none 2>&1 || echo $?
dd if=/dev/zero of=file count=1 conv=fsync status=none"#;
    let mut tried = 0;
    for (program, script) in [
        ("python3", PYTHON),
        ("perl", PERL),
        ("ruby", RUBY),
        ("node", NODE),
        ("javac", JAVA),
        ("dd", COREUTILS),
    ] {
        let path = std::env::var_os("PATH").unwrap_or_default();
        if !std::env::split_paths(&path).any(|dir| dir.join(program).is_file()) {
            println!("{program} is not installed");
            continue;
        }
        let messages = same(env, program, script, &["fsync"], all);
        println!("{program}: {messages}");
        let wrong = ["nvalid argument", "EINVAL", "EBADF", "sync failed"];
        assert!(
            wrong.iter().any(|word| messages.contains(word)),
            "{program}: {messages}"
        );
        tried += 1;
    }
    assert!(tried > 0, "no language is installed");
    Outcome::Pass
}

/// Each allocator preloaded by the user, and by refit's knob: suppressors that look functions up while one starts
/// hang with it.
fn an_allocator_of_the_users_own_stays_beside_us(env: &TestEnv) -> Outcome {
    let (program, refit) = (env.program("threads_fsync"), refit_path());
    let mut tried = 0;
    for name in ["jemalloc", "mimalloc", "tcmalloc"] {
        let library = system_library(allocator_file(name));
        if !Path::new(&library).exists() {
            println!("{name} is not installed");
            continue;
        }
        tried += 1;
        let (json, knob) = (env.path("report.json"), format!("malloc={name}"));
        let preload = format!("LD_PRELOAD={library}");
        // jemalloc has a thread of its own then, started in its constructor.
        let environment = &["env", "MALLOC_CONF=background_thread:true"][..];
        let run = &[&refit, "run", "--quiet", "--json", &json, "sync=off"][..];
        let file = env.path("file");
        let command = &["--", &program, "8", "25", &file][..];
        let by_user = [environment, &[&preload], run, command].concat();
        let by_knob = [environment, run, &[&knob], command].concat();
        for words in [by_user, by_knob] {
            for _ in 0..20 {
                let output = env.run(&words);
                expect_code(&output, 0);
                assert!(output.stderr.is_empty(), "{}", described(&output));
                let text = fs::read_to_string(&json).expect("refit wrote its report");
                let report: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
                assert_eq!(
                    report["totals"]["fsync"]["suppressed"], 200,
                    "{name}: {report:#}"
                );
                let serves = report["executables"][0]["malloc_object"].to_string();
                assert!(serves.contains(name), "{name}: {serves}");
            }
        }
    }
    assert!(tried > 0, "no allocator is installed");
    Outcome::Pass
}

/// Its runtime refuses to start where another library is preloaded before it.
fn a_sanitized_program_says_the_same(env: &TestEnv) -> Outcome {
    let program = env.program("asan_fsync");
    same(env, "asan", &format!("exec {program} file"), &[], all);
    let script = format!("ASAN_OPTIONS=verify_asan_link_order=0 {program} file; ls");
    same(env, "any-order", &script, &[], all);
    Outcome::Pass
}

fn fakeroot_builds_the_same_package(env: &TestEnv) -> Outcome {
    env.require_command("fakeroot");
    env.require_command("dpkg-deb");
    let script = r#"
mkdir -p package/DEBIAN package/usr/share/thing
printf 'Package: thing\nVersion: 1\nArchitecture: all\nMaintainer: N <n@example.org>\nDescription: thing\n' \
    > package/DEBIAN/control
echo x > package/usr/share/thing/file
chmod -R u=rwX,go=rX package
find package -exec touch -d @1 {} +
fakeroot sh -ec '
    chown -R 5:6 package/usr
    mknod package/usr/share/thing/null c 1 3
    SOURCE_DATE_EPOCH=1 dpkg-deb --uniform-compression -Zgzip --build package thing.deb
    tar -C package -cf owners.tar usr
    sync thing.deb'
dpkg-deb -c thing.deb
tar -tvf owners.tar --numeric-owner | cut -c1-30
cksum < thing.deb"#;
    let messages = same(env, "fakeroot", script, &["fsync"], all);
    assert!(messages.contains("5/6"), "{messages}");
    Outcome::Pass
}

/// It wraps the same opens as we do, and gives them another path.
fn fakechroot_finds_the_same_files(env: &TestEnv) -> Outcome {
    env.require_command("fakechroot");
    let programs = [
        "/bin/sh",
        "/bin/cat",
        "/bin/sync",
        &env.program("fsync_once"),
    ];
    let root = places::chroot(env, "root", &programs);
    let script = format!(
        "cp -r {root} root\n\
         fakechroot chroot $PWD/root /fsync_once /synced\n\
         test -s root/synced && test ! -e /synced\n\
         echo inside > root/file\n\
         fakechroot chroot $PWD/root /cat /file\n\
         fakechroot chroot $PWD/root /sh -c '/sync /file; exec /cat /file'"
    );
    let messages = same(env, "fakechroot", &script, &["fsync"], all);
    assert!(messages.contains("inside\ninside\n"), "{messages}");
    Outcome::Pass
}
