//! Where a program may find itself: in a chroot, among mounts of its own, as another user.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::test_env::{TestEnv, expect_code};

/// What nobody's commands find in their environment, and nothing else.
const NOBODYS: &str = "\
exec setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all \
env -i PATH=\"$PATH\" HOME=/nonexistent LC_ALL=C REFIT_TEST_ENV_DIR=\"$REFIT_TEST_ENV_DIR\" \"$@\"";

/// A directory with these dynamic programs in it, and all the libraries that they need.
pub fn chroot(env: &TestEnv, name: &str, programs: &[&str]) -> String {
    let root = env.subdir(name);
    for program in programs {
        let output = env.run(&["ldd", program]);
        expect_code(&output, 0);
        let stdout = String::from_utf8_lossy(&output.stdout);
        let libraries = stdout
            .split_whitespace()
            .filter(|word| word.starts_with('/'))
            .map(|path| (path, format!("{root}{path}")));
        let file = Path::new(program).file_name().expect("a program is a file");
        let itself = format!("{root}/{}", file.to_string_lossy());
        for (from, to) in libraries.chain([(*program, itself)]) {
            let dir = Path::new(&to).parent().expect("it lies below the root");
            fs::create_dir_all(dir).expect("the test's directory is ours");
            fs::copy(from, &to).unwrap_or_else(|error| panic!("copy {from} to {to}: {error}"));
        }
    }
    root
}

/// Words to put before a command that needs a privilege over its own processes only, such as chroot. Skips the
/// test where this user cannot have it.
pub fn privileged(env: &TestEnv) -> &'static [&'static str] {
    let words: &[&str] = if env.as_root() {
        &[]
    } else {
        &["unshare", "--map-root-user"]
    };
    if !env.run(&[words, &["true"]].concat()).status.success() {
        env.skip("neither root nor user namespaces");
    }
    words
}

/// A shell script, run by root among mounts that nobody else sees, in the test's directory, which is seen as
/// /mnt too: other mounts may hide it. Skips the test unless it runs as root.
pub fn in_own_mounts(env: &TestEnv, script: &str) -> Command {
    env.require_root();
    env.require_command("setpriv");
    env.require_namespaces(&["--mount"]);
    let script = format!(
        "set -e\nmount --rbind . /mnt\ncd /mnt\n\
         nobody() {{ ( {NOBODYS} ) }}\n{script}"
    );
    let mut command = env.command("unshare");
    command.args(["-m", "--", "sh", "-c", &script]);
    command
}

/// A copy in the test's directory, which every user can read; its path.
pub fn public(env: &TestEnv, file: &str) -> String {
    let name = Path::new(file).file_name().expect("it is a file");
    let copy = env.path(&name.to_string_lossy());
    fs::copy(file, &copy).unwrap_or_else(|error| panic!("copy {file}: {error}"));
    copy
}
