//! `refit apply sysctl`: in a tree (`--root`), and on the running kernel in namespaces of the test's
//! own, where net.* is its own too. The machine's sysctls are not touched.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Output, Stdio};

use crate::apply::{listing, words};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code, expect_message, expect_printed, refit_path};

pub const TESTS: &[Test] = &[
    test!(sysctls_are_set_in_a_tree_and_taken_back),
    test!(the_kernel_has_the_values_and_those_before),
];

pub const FILE: &str = "etc/sysctl.d/90-refit.conf";
pub const APPLY: [&str; 4] = [
    "--yes",
    "sysctl",
    "conf.vm.swappiness=10",
    "conf.net.ipv4.ip_local_port_range=20000 \t30000",
];

/// A tree with sysctls of a distribution and of an administrator; its path.
pub fn tree(env: &TestEnv, name: &str) -> String {
    let root = env.subdir(name);
    fs::create_dir_all(Path::new(&root).join("var/lib")).expect("the tree is ours");
    for (path, text) in [
        (
            "usr/lib/sysctl.d/50-default.conf",
            "vm.swappiness = 30\nnet.*.x = 1\n",
        ),
        (
            "etc/sysctl.d/99-own.conf",
            "-kernel/printk=4 4\nvm.max_map_count=65530\n",
        ),
        (
            "etc/sysctl.conf",
            "#vm.swappiness=1\nvm.overcommit_memory=0\n",
        ),
    ] {
        let path = Path::new(&root).join(path);
        fs::create_dir_all(path.parent().expect("it has one")).expect("the tree is ours");
        fs::write(path, text).expect("likewise");
    }
    root
}

/// Setting, message.
const REFUSED: &str = "
conf.swappiness=1 | a key has dots
conf.vm..a=1 | a key has dots
conf.vm.swappiness= | has no value
conf.vm.swappiness=1\\n | not one line
conf.net.ipv4.conf.//.a=1 | a key has dots
malloc=jemalloc | conf.KEY=VALUE
conf.kernel.printk=1 1 | 99-own.conf:1 sets kernel.printk to `4 4`, and wins
conf.vm.overcommit_memory=1 | /etc/sysctl.conf:2 sets
conf.net.ipv4.ip_forward=1 | changes other keys too
conf.vm.drop_caches=1 | does something
conf.kernel.modules_disabled=1 | does not let it be set back
";

fn sysctls_are_set_in_a_tree_and_taken_back(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    let before = listing(&root);
    for line in REFUSED.trim().lines() {
        let (setting, named) = line.split_once(" | ").expect("two");
        let setting = setting.replace("\\n", "\n");
        let all = ["--yes", "sysctl", &setting];
        expect_message(&env.refit(&words("apply", &root, &all)), 2, named);
        assert_eq!(listing(&root), before, "{setting}");
    }
    let both = [
        "--yes",
        "sysctl",
        "conf.vm.dirty_bytes=1",
        "conf.vm.dirty_ratio=1",
    ];
    expect_message(&env.refit(&words("apply", &root, &both)), 2, "keeps one");
    // The same value in a later file is none of ours.
    let same = ["sysctl", "conf.vm.max_map_count=65530"];
    expect_printed(&env.refit(&words("plan", &root, &same)), 0, "90-refit.conf");
    let plan = env.refit(&words("plan", &root, &APPLY[1..]));
    expect_printed(
        &plan,
        0,
        "50-default.conf:1 sets vm.swappiness to `30`; /etc",
    );

    let apply = words("apply", &root, &APPLY);
    expect_code(&env.refit(&apply), 0);
    expect_printed(&env.refit(&apply), 0, "nothing to do");
    let text = fs::read_to_string(Path::new(&root).join(FILE)).expect("there");
    let meant = "\nvm.swappiness = 10\nnet.ipv4.ip_local_port_range = 20000 \t30000\n";
    assert!(text.ends_with(meant), "{text}");
    expect_code(
        &env.refit(&words("status", &root, &["--exit-code", "sysctl"])),
        0,
    );
    fs::write(Path::new(&root).join(FILE), text.clone() + "#\n").expect("ours");
    expect_code(&env.refit(&words("status", &root, &["--exit-code"])), 1);
    let revert = words("revert", &root, &["sysctl"]);
    expect_code(&env.refit(&revert), 3);
    fs::write(Path::new(&root).join(FILE), text).expect("ours");
    expect_code(&env.refit(&revert), 0);
    assert_eq!(listing(&root), before);

    // Until it is confirmed it lies where a reboot takes it away.
    let trial = [&["--confirm-within=1h"], &APPLY[..]].concat();
    expect_code(&env.refit(&words("apply", &root, &trial)), 0);
    let unconfirmed = listing(&root);
    assert!(unconfirmed.contains_key("run/sysctl.d/90-refit.conf"));
    assert!(!unconfirmed.contains_key(FILE));
    expect_code(&env.refit(&words("confirm", &root, &["sysctl"])), 0);
    assert!(listing(&root).contains_key(FILE));
    expect_code(&env.refit(&revert), 0);
    let after = listing(&root);
    let left: Vec<_> = after
        .keys()
        .filter(|path| !before.contains_key(*path))
        .collect();
    assert!(
        left.iter().all(|path| !path.contains("refit.conf")),
        "{left:?}"
    );
    Outcome::Pass
}

/// Namespaces of its own, with directories of its own where refit writes. They end with it.
struct Apart {
    child: Child,
}

impl Drop for Apart {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Apart {
    fn new(env: &TestEnv) -> Apart {
        let script = "for dir in /etc/sysctl.d /var/lib /run; do mount -t tmpfs own $dir; done; \
                      echo 'net.core.somaxconn = 77' >/etc/sysctl.d/20-own.conf; \
                      echo 500 >/proc/sys/net/core/somaxconn; echo ready; exec cat";
        let words = [
            "--net",
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-ec",
            script,
        ];
        let mut command = env.command("unshare");
        command
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut apart = Apart {
            child: command.spawn().expect("unshare is there"),
        };
        let mut line = [0; 6];
        let out = apart.child.stdout.as_mut().expect("it is piped");
        out.read_exact(&mut line).expect("the namespaces are made");
        assert_eq!(&line, b"ready\n");
        apart
    }

    fn run(&self, env: &TestEnv, words: &[&str]) -> Output {
        let target = self.child.id().to_string();
        let mut command = env.command("nsenter");
        command.args(["--target", &target, "--net", "--mount"]);
        command.args(words).output().expect("nsenter is there")
    }

    fn refit(&self, env: &TestEnv, words: &[&str]) -> Output {
        self.run(env, &[&[&*refit_path()], words].concat())
    }

    fn print(&self, env: &TestEnv, words: &[&str]) -> String {
        let output = self.run(env, words);
        expect_code(&output, 0);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

fn the_kernel_has_the_values_and_those_before(env: &TestEnv) -> Outcome {
    env.require_root();
    env.require_namespaces(&["--net", "--mount"]);
    let of_machine = || {
        ["core/somaxconn", "ipv4/ip_local_port_range"]
            .map(|key| fs::read_to_string(format!("/proc/sys/net/{key}")).expect("readable"))
    };
    let machine = of_machine();
    let apart = Apart::new(env);
    let value = |key: &str| apart.print(env, &["sysctl", "--values", key]);
    let etc = || {
        apart.print(
            env,
            &[
                "sh",
                "-c",
                "ls -lR --full-time $(ls -d /etc/sysctl.d /etc/sysctl.conf 2>/dev/null)",
            ],
        )
    };
    let (files, range) = (etc(), value("net.ipv4.ip_local_port_range"));
    let apply = [
        "apply",
        "--yes",
        "sysctl",
        "conf.net.core.somaxconn=300",
        "conf.net.ipv4.ip_local_port_range=20000 30000",
    ];
    let check = ["status", "--exit-code", "sysctl"];
    let revert = ["revert", "sysctl"];

    let plan = apart.refit(env, &[&["plan"], &apply[2..]].concat());
    expect_printed(&plan, 0, "now            net.core.somaxconn is `500`\n");
    expect_printed(&plan, 0, "20-own.conf:1 sets net.core.somaxconn to `77`");
    assert_eq!(value("net.core.somaxconn"), "500\n");
    expect_code(&apart.refit(env, &apply), 0);
    expect_printed(&apart.refit(env, &apply), 0, "nothing to do");
    assert_eq!(value("net.core.somaxconn"), "300\n");
    assert_eq!(value("net.ipv4.ip_local_port_range"), "20000\t30000\n");
    let status = apart.refit(env, &check);
    expect_printed(&status, 0, "net.core.somaxconn at boot");

    // At boot each file is read: what refit wrote is what the loader reads.
    apart.print(env, &["sysctl", "--write", "net.core.somaxconn=301"]);
    let drift = apart.refit(env, &check);
    expect_printed(&drift, 1, "expected 300, found 301");
    apart.print(env, &["sysctl", "--load=/etc/sysctl.d/90-refit.conf"]);
    expect_code(&apart.refit(env, &check), 0);
    // A later file is drift of what a boot would load.
    let later = "echo net.core.somaxconn=9 >/etc/sysctl.d/95.conf";
    apart.print(env, &["sh", "-c", later]);
    expect_printed(&apart.refit(env, &check), 1, "95.conf:1");
    apart.print(env, &["rm", "/etc/sysctl.d/95.conf"]);

    // The file is gone, and so are its values; what somebody else set since stays.
    apart.print(env, &["sysctl", "--write", "net.core.somaxconn=301"]);
    expect_code(&apart.refit(env, &revert), 0);
    assert_eq!(value("net.core.somaxconn"), "301\n");
    assert_eq!(value("net.ipv4.ip_local_port_range"), range);
    apart.print(env, &["sysctl", "--write", "net.core.somaxconn=500"]);

    // What the kernel refuses, or makes something else of, is taken back, also the key before it.
    for (setting, named) in [
        (
            "conf.net.core.somaxconn=0x100",
            "the kernel made `256` of `0x100`",
        ),
        ("conf.net.core.somaxconn=many", "Invalid argument"),
        ("conf.net.ipv4.ip_local_port_range=7 5", "Invalid argument"),
    ] {
        let other = "conf.net.ipv4.tcp_syncookies=0";
        let output = apart.refit(env, &["apply", "--yes", "sysctl", other, setting]);
        expect_message(&output, 1, named);
        expect_message(&output, 1, "all was taken back");
        assert_eq!(value("net.core.somaxconn"), "500\n");
        assert_eq!(value("net.ipv4.ip_local_port_range"), range);
        assert_eq!(value("net.ipv4.tcp_syncookies"), "1\n");
        expect_printed(&apart.refit(env, &["status"]), 0, "nothing is applied");
    }
    for (setting, named) in [
        (
            "conf.net.core.nosuch=1",
            "there is no /proc/sys/net/core/nosuch",
        ),
        ("conf.net.core=1", "there is no /proc/sys/net/core"),
        ("conf.net.ipv4.route.flush=1", "Permission denied"),
        (
            "conf.net.ipv4.tcp_available_congestion_control=a",
            "Permission denied",
        ),
    ] {
        let output = apart.refit(env, &["apply", "--yes", "sysctl", setting]);
        expect_message(&output, 2, named);
    }
    // ls of the directories shows the same times: only /etc/sysctl.d itself was written to.
    let without_times = |text: String| -> Vec<String> {
        let lines = text.lines().filter(|line| line.contains(".conf"));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(without_times(etc()), without_times(files));
    assert_eq!(of_machine(), machine);
    Outcome::Pass
}
