//! `refit recipes new --from /etc/rsyslog.conf`: a private rsyslogd with an administrator's configuration, which sends
//! nothing out.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;

use crate::recipe_folder::{finish, refit};
use crate::recipe_from::{asked, expect_texts, expect_untouched, expect_without, new, trap};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_message};

pub const TESTS: &[Test] = &[
    test!(an_rsyslog_keeps_its_rules_and_sends_nothing_out).limit_seconds(300),
    test!(what_may_send_lines_elsewhere_is_left_out),
    test!(what_is_not_understood_is_refused),
];

fn an_rsyslog_keeps_its_rules_and_sends_nothing_out(env: &TestEnv) -> Outcome {
    let (other, port) = trap();
    let udp = UdpSocket::bind(("127.0.0.1", 0)).expect("there is a port");
    udp.set_nonblocking(true).expect("it is a socket");
    let udp_port = udp.local_addr().expect("it has one").port();
    let real = env.subdir("real");
    env.subdir("rsyslog.d");
    env.file(
        "rsyslog.d/10-remote.conf",
        &format!(
            "# password of before: hidden-one\n*.* @127.0.0.1:{udp_port}\n& @@127.0.0.1:{port}\n& stop\n\
             if $programname == 'none' and\n    $msg contains 'x' then {{\n  @127.0.0.1:{udp_port}\n  stop\n}}\n"
        ),
    );
    env.file("rsyslog.d/20 odd\nname.conf", "*.* @@127.0.0.1:1\n");
    let main = env.file(
        "rsyslog.conf",
        &format!(
            "module(load=\"imuxsock\")\nmodule(load=\"imklog\" permitnonkernelfacility=\"on\")\n$ModLoad imtcp\n\
             input(type=\"imtcp\"\n  port=\"514\")\n$InputTCPServerRun 514\n$FileOwner nobody\n$FileCreateMode 0640\n\
             $PrivDropToUser syslog\n$WorkDirectory /var/spool/rsyslog\n\
             $template PerHost,\"{real}/%HOSTNAME%/all.log\"\n\
             template(name=\"Line\" type=\"string\" string=\"own %syslogtag%%msg%\\n\")\n\
             main_queue(queue.size=\"77777\" queue.filename=\"q\" queue.spoolDirectory=\"/var/spool/rsyslog\")\n\
             *.*;auth,authpriv.none\t\t-{real}/syslog;Line\n*.* ?PerHost\nuser.* {real}/user.log\n\
             :msg, contains, \"of then @host\" {real}/found.log\nmail.* |/run/xconsole\n*.emerg :omusrmsg:*\n\
             ruleset(name=\"remote\" queue.type=\"LinkedList\") {{\n  action(type=\"omfwd\" target=\"127.0.0.1\"\n\
             port=\"{port}\" protocol=\"tcp\")\n  action(type=\"omfile\" file=\"{real}/remote.log\" fileOwner=\"nobody\")\n}}\n\
             *.* call remote\n$IncludeConfig {}/*.conf\n",
            env.path("rsyslog.d"),
        ),
    );
    let told = new(env, "mine", "--from", &main);
    expect_texts(
        &told,
        &[
            "  module imuxsock: ",
            "  module imklog: ",
            "  $ModLoad imtcp: ",
            "  input imtcp 514: ",
            "  $InputTCPServerRun 514: ",
            "  $FileOwner: ",
            "  $PrivDropToUser: ",
            "  $WorkDirectory: ",
            "  action |/run/xconsole: hands lines to a program (",
            "  action :omusrmsg:*: ",
            &format!("  action @127.0.0.1:{udp_port}: sends lines to another machine ("),
            &format!("  action @@127.0.0.1:{port}: sends lines to another machine ("),
            "  action omfwd 127.0.0.1: no line leaves the instance (",
            "name.conf: a configuration cannot name it",
            &format!("  {real}/user.log ("),
        ],
    );
    let hidden = ["hidden-one", &format!("127.0.0.1:{port}"), "omfwd"];
    expect_without(Path::new(&env.path("mine/root")), &hidden);
    let toml = fs::read_to_string(env.path("mine/recipe.toml")).expect("it was written");
    assert!(!toml.contains("main_queue"), "{toml}");
    let question = format!(
        "cd files{real} && for f in syslog refit/all.log user.log remote.log; do \
         echo $f $(grep -c 'load.*line .* of' $f) $(grep -c '^own load' $f); done && test ! -e found.log && echo none found"
    );
    let answers = asked(env, "mine", "rsyslog-sync", &question);
    expect_texts(
        &answers,
        &["syslog 500 500 refit/all.log 500 0 user.log 500 0 remote.log 500 0 none found"],
    );
    expect_untouched(&other);
    let came = udp.recv(&mut [0; 100]);
    assert!(came.is_err(), "the private instance sent {came:?} bytes");
    let written = fs::read_dir(&real).expect("it is the test's").count();
    assert_eq!(
        written, 0,
        "the instance wrote to the place of the real one"
    );
    Outcome::Pass
}

fn what_may_send_lines_elsewhere_is_left_out(env: &TestEnv) -> Outcome {
    for text in [
        "*.info weird |/bin/false\n",
        "*.* @@(o,z9)127.0.0.1:1\n",
        "if $msg contains 'x' then ^/bin/sh\n",
    ] {
        let main = env.file("rsyslog.conf", text);
        expect_texts(&new(env, "mine", "--from", &main), &["  action "]);
        let copy = fs::read_to_string(env.path(&format!("mine/root{main}")));
        let copy = copy.expect("it was written");
        assert!(copy.ends_with(" /dev/null\n"), "{copy}");
        assert!(!copy.contains(['|', '@', '^']), "{copy}");
        fs::remove_dir_all(env.path("mine")).expect("it is the test's");
    }
    Outcome::Pass
}

fn what_is_not_understood_is_refused(env: &TestEnv) -> Outcome {
    for text in ["weird @@127.0.0.1:1\n", "x /var/log/x\n"] {
        let main = env.file("rsyslog.conf", text);
        let output = finish(&mut refit(
            env,
            &["recipes", "new", "mine", "--from", &main],
        ));
        expect_message(&output, 2, "line 1 of ");
        expect_message(&output, 2, "leave it out of a copy");
        assert!(!Path::new(&env.path("mine")).exists());
    }
    Outcome::Pass
}
