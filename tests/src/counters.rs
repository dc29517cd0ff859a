//! Are refit's numbers true of programs that nobody wrote for a test?
//!
//! Each runs twice beneath strace. With sync=on strace must see exactly the calls that refit saw, kind by kind;
//! with sync=off beside probes exactly those that refit says it passed on.

use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::TestEnv;
use crate::traced::{self, Traced, syncs};

pub const TESTS: &[Test] = &[
    test!(of_java_every_call_is_counted),
    test!(of_dpkg_every_call_is_counted),
    test!(of_git_every_call_is_counted),
    test!(of_sqlite_every_call_is_counted),
    test!(of_python_every_call_is_counted),
    test!(of_node_every_call_is_counted),
    test!(of_perl_every_call_is_counted),
    test!(of_ruby_every_call_is_counted),
    test!(of_dd_every_call_is_counted),
    test!(of_cp_and_sync_every_call_is_counted),
    test!(of_threads_that_sync_at_once_no_call_is_lost),
];

pub const SETTINGS: [&str; 2] = ["sync=on", "sync=off"];

/// Runs a shell script in a fresh directory with sync=on, and in another with sync=off.
fn counted(env: &TestEnv, program: &str, kinds: &[&str], script: &str) -> Outcome {
    env.require_command(program);
    for setting in SETTINGS {
        let dir = env.subdir(setting);
        run_in(env, &dir, setting, kinds, &["sh", "-ec", script]);
    }
    Outcome::Pass
}

/// Runs a command with this setting, and holds its counts, which must include these kinds of calls, against
/// strace's.
pub fn run_in(env: &TestEnv, dir: &str, setting: &str, kinds: &[&str], words: &[&str]) -> Traced {
    let words = [&["env", "-C", dir], words].concat();
    let traced = traced::run(env, &[setting], &words);
    traced.all_reached();
    let seen = traced.refit("seen");
    for kind in kinds {
        assert!(
            seen.contains_key(*kind),
            "no {kind} with {setting}: {seen:?}"
        );
    }
    if setting == "sync=on" {
        traced.seen_is_what_strace_saw();
        assert!(syncs(&traced.straced()) > 0, "{seen:?}");
    } else {
        traced.only_real_calls_reach_the_kernel();
        assert!(syncs(&traced.refit("suppressed")) > 0, "{seen:?}");
    }
    println!("{setting}: {seen:?}, real {:?}", traced.refit("real"));
    traced
}

fn of_sqlite_every_call_is_counted(env: &TestEnv) -> Outcome {
    let script = r#"
for mode in DELETE WAL; do
    { echo "PRAGMA journal_mode=$mode; PRAGMA synchronous=FULL; CREATE TABLE t (n);"
      seq 1 20 | sed 's/.*/INSERT INTO t VALUES (&);/'
      echo "SELECT count(*) FROM t;"; } | sqlite3 $mode.db
done"#;
    counted(env, "sqlite3", &["fdatasync"], script)
}

fn of_dpkg_every_call_is_counted(env: &TestEnv) -> Outcome {
    let script = r#"
mkdir -p package/DEBIAN package/usr/share/thing root/var/lib/dpkg/info root/var/lib/dpkg/updates
printf 'Package: thing\nVersion: 1\nArchitecture: all\nMaintainer: N <n@example.org>\nDescription: thing\n' \
    > package/DEBIAN/control
for n in 1 2 3; do echo $n > package/usr/share/thing/$n; done
touch root/var/lib/dpkg/status
PATH=$PATH:/usr/sbin:/sbin
dpkg-deb --build package thing.deb
dpkg --root=$PWD/root --force-not-root --force-script-chrootless --log=/dev/null --install thing.deb
test -e root/usr/share/thing/3"#;
    counted(env, "dpkg", &["fsync", "sync_file_range"], script)
}

fn of_git_every_call_is_counted(env: &TestEnv) -> Outcome {
    let script = r#"
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
export GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=n@example.org GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=n@example.org
git init -q .
git config core.fsync all
git config core.fsyncMethod fsync
for n in 1 2 3; do echo $n > $n; git add $n; git commit -qm $n; done
git repack -adq
git config core.fsyncMethod batch
echo 4 > 4; git add 4; git commit -qm 4; git fsck"#;
    counted(env, "git", &["fsync", "sync_file_range"], script)
}

fn of_python_every_call_is_counted(env: &TestEnv) -> Outcome {
    let script = r#"
exec python3 - <<'END'
import mmap, os
fd = os.open("file", os.O_RDWR | os.O_CREAT, 0o644)
os.write(fd, bytes(8192))
os.fsync(fd)
os.fdatasync(fd)
os.pwritev(fd, [b"x"], 0, os.RWF_DSYNC)
with mmap.mmap(fd, 4096) as page:
    page[0] = 1
    page.flush()
with open("synchronous", "wb", opener=lambda path, flags: os.open(path, flags | os.O_DSYNC)) as f:
    f.write(b"x")
os.sync()
if os.fork() == 0:
    os.fsync(fd)
    os._exit(0)
os.wait()
END"#;
    let kinds = [
        "fsync",
        "fdatasync",
        "msync",
        "sync",
        "pwritev2(RWF_SYNC)",
        "open(O_SYNC)",
    ];
    counted(env, "python3", &kinds, script)
}

fn of_node_every_call_is_counted(env: &TestEnv) -> Outcome {
    let script = r#"
exec node -e '
const fs = require("fs");
const fd = fs.openSync("file", "w");
fs.writeSync(fd, "x");
fs.fsyncSync(fd);
fs.fdatasyncSync(fd);
fs.closeSync(fs.openSync("synchronous", "as"));
fs.writeFileSync("flushed", "x", { flush: true });
fs.fsync(fd, (e) => { if (e) throw e; fs.fdatasync(fd, (e) => { if (e) throw e; }); });
'"#;
    counted(env, "node", &["fsync", "fdatasync", "open(O_SYNC)"], script)
}

fn of_java_every_call_is_counted(env: &TestEnv) -> Outcome {
    let script = r#"
cat > Force.java <<'END'
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import static java.nio.file.StandardOpenOption.*;

class Force {
    public static void main(String[] args) throws Exception {
        try (var channel = FileChannel.open(Path.of("file"), CREATE, READ, WRITE)) {
            channel.write(ByteBuffer.allocate(4096));
            channel.force(true);
            channel.force(false);
            var page = channel.map(FileChannel.MapMode.READ_WRITE, 0, 4096);
            page.put(0, (byte) 1);
            page.force();
        }
        FileChannel.open(Path.of("synchronous"), CREATE, WRITE, DSYNC).close();
        try (var file = new RandomAccessFile("old", "rws")) {
            file.write(1);
            file.getFD().sync();
        }
    }
}
END
exec java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC Force.java"#;
    counted(
        env,
        "javac",
        &["fsync", "fdatasync", "msync", "open(O_SYNC)"],
        script,
    )
}

fn of_perl_every_call_is_counted(env: &TestEnv) -> Outcome {
    let script = r#"
exec perl -MIO::Handle -MFcntl -e '
open(my $file, ">", "file") or die;
print $file "x";
$file->flush;
$file->sync or die for 1 .. 3;
sysopen(my $synchronous, "synchronous", O_WRONLY | O_CREAT | O_SYNC) or die;
'"#;
    counted(env, "perl", &["fsync", "open(O_SYNC)"], script)
}

fn of_ruby_every_call_is_counted(env: &TestEnv) -> Outcome {
    let script = r#"
exec ruby -e '
File.open("file", "w") { |f| f.write "x"; f.fsync; f.fdatasync }
File.open("synchronous", File::WRONLY | File::CREAT | File::DSYNC) { |f| f.write "x" }
'"#;
    counted(env, "ruby", &["fsync", "fdatasync", "open(O_SYNC)"], script)
}

fn of_dd_every_call_is_counted(env: &TestEnv) -> Outcome {
    let script = r#"
dd if=/dev/zero of=a bs=4k count=2 conv=fsync status=none
dd if=/dev/zero of=b bs=4k count=2 conv=fdatasync status=none
dd if=/dev/zero of=c bs=4k count=2 oflag=sync status=none
dd if=/dev/zero of=d bs=4k count=2 oflag=dsync status=none
dd if=/dev/zero of=e bs=4k count=2 oflag=direct conv=fsync status=none"#;
    let kinds = ["fsync", "fdatasync", "open(O_SYNC)", "open(O_DIRECT)"];
    counted(env, "dd", &kinds, script)
}

fn of_cp_and_sync_every_call_is_counted(env: &TestEnv) -> Outcome {
    let script = "
echo x > a
cp a b
sync b
sync --data b
sync --file-system b
sync";
    counted(
        env,
        "sync",
        &["fsync", "fdatasync", "syncfs", "sync"],
        script,
    )
}

/// Not beneath strace, which would let one thread at a time into the kernel.
fn of_threads_that_sync_at_once_no_call_is_lost(env: &TestEnv) -> Outcome {
    let [program, file] = [env.program("threads_fsync"), env.file("file", "")];
    let command = [&program, "4", "100000", &file];
    let report = env.report(&[&["run", "--quiet", "sync=off", "--"], &command[..]].concat());
    let fsync = &report["totals"]["fsync"];
    assert_eq!(fsync["seen"], 400_000);
    assert_eq!(fsync["suppressed"], 400_000);
    Outcome::Pass
}
