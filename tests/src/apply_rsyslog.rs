//! `refit apply` on rsyslog of a tree (`--root`).

use std::fs;
use std::path::Path;

use crate::apply::{SETTINGS, listing, words};
use crate::locations::source_dir;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code, expect_message, expect_printed};

pub const TESTS: &[Test] = &[
    test!(the_dash_of_each_rule_is_one_byte),
    test!(what_wins_over_refits_file_is_named),
    test!(the_settings_of_its_recipes_are_known),
];

pub const CONFIG: &str = "etc/rsyslog.conf";
pub const MORE: &str = "etc/rsyslog.d/50-more.conf";
pub const OWN: &str = "etc/rsyslog.d/00-refit.conf";
pub const APPLY: [&str; 4] = ["--yes", "rsyslog", SETTINGS[0], "conf.sync=on"];
const RISK: [&str; 2] = ["--accept=loses-on-crash", "--no-evidence"];

/// No newline at its end. `~` is a dash, and `+` none.
const TEXT: &str = "# a -/comment\n$WorkDirectory /var/spool\n$IncludeConfig /etc/rsyslog.d/*.conf\n\
                    /* mail.* -/no\n */\n*.*;auth.none\t\t~/var/log/syslog # -/no\n\
                    auth,authpriv.*\t+/var/log/auth.log;Format\n:msg, contains, \"a -/no\" ~/x\n\
                    *.=info;\\\n\tmail.none\t~?Dynamic\nif ($msg contains '-/no') then ~/y\n\
                    *.* |/dev/xconsole\n*.* action(type=\"omfile\"\n file=\"/z\")\n*.emerg :omusrmsg:*";
const MORE_TEXT: &str = "mail.err\t~/var/log/mail.err\n& +/var/log/too\n";

fn text(marked: &str, dash: &str, none: &str) -> String {
    marked.replace('~', dash).replace('+', none)
}

/// A tree with rsyslog; its path.
pub fn tree(env: &TestEnv, name: &str) -> String {
    let root = crate::apply::tree(env, name);
    let at = |path: &str| Path::new(&root).join(path);
    fs::create_dir_all(at("etc/rsyslog.d")).expect("the tree is ours");
    let unit = "[Service]\nExecStart=/usr/sbin/rsyslogd -n -iNONE\n";
    fs::write(at("usr/lib/systemd/system/rsyslog.service"), unit).expect("likewise");
    fs::write(at(CONFIG), text(TEXT, "-", "")).expect("likewise");
    fs::write(at(MORE), text(MORE_TEXT, "-", "")).expect("likewise");
    root
}

fn the_dash_of_each_rule_is_one_byte(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    let before = listing(&root);
    let read = |path: &str| fs::read_to_string(Path::new(&root).join(path)).expect("there");
    let revert = words("revert", &root, &["rsyslog"]);
    let batch = "main_queue(queue.dequeueBatchSize=\"1\")\n$ActionFileEnableSync on\n";
    for (setting, own, [dash, none]) in [
        ("conf.sync=on", "$ActionFileEnableSync on\n", ["", ""]),
        ("conf.sync=each", batch, ["", ""]),
        ("conf.sync=dash", "$ActionFileEnableSync on\n", ["-", "-"]),
        ("conf.sync=off", "$ActionFileEnableSync off\n", ["-", ""]),
        (
            "conf.queue=direct",
            "main_queue(queue.type=\"Direct\")\n",
            ["-", ""],
        ),
    ] {
        let all = [&["--yes", "rsyslog", setting, SETTINGS[0]], &RISK[..]].concat();
        let apply = words("apply", &root, &all);
        expect_code(&env.refit(&apply), 0);
        expect_printed(&env.refit(&apply), 0, "nothing to do");
        assert_eq!(read(CONFIG), text(TEXT, dash, none), "{setting}");
        assert_eq!(read(MORE), text(MORE_TEXT, dash, none), "{setting}");
        assert_eq!(read(OWN).split_once('\n').expect("a comment").1, own);
        expect_code(&env.refit(&words("status", &root, &["--exit-code"])), 0);
        expect_code(&env.refit(&revert), 0);
        assert_eq!(listing(&root), before, "{setting}");
    }
    let plan = env.refit(&words("plan", &root, &["rsyslog", "conf.sync=on"]));
    expect_printed(&plan, 0, "0 of 7 rules that write to files sync now");
    expect_printed(&plan, 0, "but not /etc/rsyslog.conf:13\n");
    expect_code(&env.refit(&words("apply", &root, &APPLY)), 0);
    // The edited line is somebody else's now.
    fs::write(Path::new(&root).join(MORE), "mail.crit\t/x\n").expect("ours");
    expect_code(&env.refit(&words("status", &root, &["--exit-code"])), 1);
    let now = listing(&root);
    expect_code(&env.refit(&revert), 3);
    assert_eq!(listing(&root), now);
    Outcome::Pass
}

/// File, setting, content, message.
const REFUSED: &str = "
99.conf | sync=off | $ActionFileEnableSync on | 99.conf:1 sets $ActionFileEnableSync to `on`
99.conf | sync=on | $ActionFileEnableSync off\\n*.* /x | 99.conf:1 sets $ActionFileEnableSync to `off`
00-a.conf | sync=off | $actionfileenablesync ON\\n*.* /x | 00-a.conf:1 sets $ActionFileEnableSync to `on`
99.conf | sync=off | action(type=\"omfile\" file=\"/x\" sync=\"on\") | 99.conf:1 sets sync of an action() to `on`
99.conf | sync=dash | *.* action( type='omfile' sync = 'on') | 99.conf:1 sets sync of an action() to `on`
99.conf | queue=direct | $MainMsgQueueSize 9 | 99.conf:1 sets the main queue already
99.conf | sync=each | main_queue(queue.size=\"9\") | 99.conf:1 sets the main queue already
99.conf | sync=on | include(text=\"*.* /x\") | refit cannot follow the include at
00-refit.conf | sync=on | # mine | is not refit's
../rsyslog.conf | sync=on | *.* -/x | includes no /etc/rsyslog.d/00-refit.conf
../rsyslog.conf | sync=on | include(file=\"/etc/rsyslog.d/0*.conf\")\\n*.* @h | no rule of the traditional format
99.conf | sync=maybe | # | conf.sync=on, each, dash or off
99.conf | other=1 | # | conf.sync=on, each, dash or off
99.conf | queue=default | # | take such lines out
";

fn what_wins_over_refits_file_is_named(env: &TestEnv) -> Outcome {
    for line in REFUSED.trim().lines() {
        let fields: Vec<&str> = line.split(" | ").collect();
        let [file, setting, content, named] = fields[..] else {
            panic!("{line}");
        };
        let root = tree(env, "tree");
        let place = Path::new(&root).join("etc/rsyslog.d").join(file);
        fs::write(place, content.replace("\\n", "\n") + "\n").expect("ours");
        let before = listing(&root);
        let setting = format!("conf.{setting}");
        let all = [&["--yes", "rsyslog", &setting], &RISK[..]].concat();
        expect_message(&env.refit(&words("apply", &root, &all)), 2, named);
        assert_eq!(listing(&root), before, "{line}");
        fs::remove_dir_all(&root).expect("ours");
    }
    // A dash wins over each directive.
    let root = tree(env, "tree");
    let late = Path::new(&root).join("etc/rsyslog.d/99.conf");
    fs::write(late, "$ActionFileEnableSync on\n").expect("ours");
    let plan = |setting| words("plan", &root, &["rsyslog", setting]).join(" ");
    let dash = plan("conf.sync=dash");
    let dash: Vec<&str> = dash.split(' ').collect();
    expect_message(&env.refit(&dash), 2, "is loses-on-crash");
    expect_code(&env.refit(&[&dash[..], &RISK].concat()), 0);
    Outcome::Pass
}

/// So that the winner of one can be planned.
fn the_settings_of_its_recipes_are_known(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    let mut known = 0;
    for recipe in ["rsyslog-sync", "rsyslog-lease"] {
        let path = source_dir()
            .join("recipes")
            .join(recipe)
            .join("recipe.toml");
        let text = fs::read_to_string(path).expect("there");
        for line in text.lines().filter(|line| line.matches('.').count() == 2) {
            let Some(name) = line
                .strip_prefix("[conf.")
                .and_then(|line| line.strip_suffix(']'))
            else {
                continue;
            };
            let setting = format!("conf.{}", name.replace('.', "="));
            let plan = [&["rsyslog", &setting], &RISK[..]].concat();
            let plan = env.refit(&words("plan", &root, &plan));
            match name {
                "queue.default" => expect_message(&plan, 2, "that is what it has"),
                _ => expect_code(&plan, 0),
            }
            known += 1;
        }
    }
    assert_eq!(known, 7);
    Outcome::Pass
}
