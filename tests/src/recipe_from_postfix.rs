//! `refit recipes new --from /etc/postfix`: a private Postfix with an administrator's configuration, which sends nothing out.

use std::net::TcpListener;
use std::path::Path;

use crate::recipe_from::{
    asked, expect_texts, expect_untouched, expect_without, new, private_file,
};
use crate::recipes::{check, require};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_message};

pub const TESTS: &[Test] =
    &[test!(a_postfix_keeps_its_settings_and_sends_nothing_out).limit_seconds(300)];

fn a_postfix_keeps_its_settings_and_sends_nothing_out(env: &TestEnv) -> Outcome {
    let other = TcpListener::bind("127.0.0.2:0").expect("there is a port");
    other.set_nonblocking(true).expect("it is a socket");
    let port = other.local_addr().expect("it has one").port();
    let checks = env.file(
        "header_checks",
        &format!(
            "/^X-Nobody:/ WARN seen\n/^Subject:/\n  FILTER smtp:[127.0.0.2]:{port}\n/^From:/ redirect a@b\n"
        ),
    );
    let aliases = env.file("virtual", "sales@admin.test a@admin.test, b@admin.test\n");
    private_file(
        env,
        "canonical",
        "# password of before: hidden-two\nx@admin.test y@admin.test\n",
    );
    private_file(env, "sasl_passwd", "[mx.test] user:hidden-one\n");
    env.file(
        "main.cf",
        &format!(
            "# a comment\nmyhostname = mail.admin.test\nmessage_size_limit =\n# within\n  12345678\n\
             relayhost = [127.0.0.2]:{port}\ndefault_destination_concurrency_limit = 7\nheader_checks = regexp:{checks}\n\
             virtual_alias_maps = hash:{aliases}, mysql:/etc/postfix/db.cf, pcre:{checks}\n\
             canonical_maps = hash:{}\nsmtp_sasl_password_maps = hash:{}\n\
             smtpd_milters = inet:127.0.0.2:{port}\nalways_bcc = a@b\nsmtp_bind_address = 0.0.0.0\n\
             transport_maps = inline:{{ load.test=smtp:[127.0.0.2]:{port} }}\ndefault_transport = smtp:[127.0.0.2]:{port}\n\
             sender_dependent_relayhost_maps = static:[127.0.0.2]:{port}\n\
             smtp_fallback_relay = [127.0.0.2]:{port}\n\
             content_filter = smtp:[127.0.0.2]:{port}\nsmtpd_tls_key_file = /etc/ssl/private/key.pem\n\
             queue_directory = /var/spool/postfix\nmail_spool_directory = /var/mail\nmail_owner = other\n\
             mailbox_command = /usr/bin/procmail\nsmtp_connect_timeout = 9s\nin_flow_delay = 0s\n",
            env.path("canonical"),
            env.path("sasl_passwd"),
        ),
    );
    env.file(
        "master.cf",
        &format!(
            "smtp inet n - n - 5 smtpd\n  -o content_filter=smtp:[127.0.0.2]:{port}\n  -o smtpd_timeout=77s\n\
             submission inet n - y - - smtpd\ncleanup unix n - n - 0 cleanup\nsmtp unix - - n - 6 smtp\n  \
             -o smtp_fallback_relay=[127.0.0.2]:{port}\nqmgr unix n - n 60 1 /tmp/qmgr\n\
             filter unix - n n - - pipe\n  flags=F user=nobody argv=/bin/false\n"
        ),
    );
    let told = new(
        env,
        "mine",
        "--from",
        env.dir().to_str().expect("it is UTF-8"),
    );
    expect_texts(
        &told,
        &[
            &format!("  relayhost = [127.0.0.2]:{port} ("),
            "  queue_directory = /var/spool/postfix (",
            "  smtp_bind_address = 0.0.0.0 (",
            "  smtpd_milters: ",
            "  content_filter: ",
            "  transport_maps: ",
            "  smtp_fallback_relay: ",
            "  smtp_sasl_password_maps: ",
            "  smtpd_tls_key_file: ",
            "  mail_spool_directory: ",
            "  mail_owner: ",
            "  mailbox_command: ",
            "  virtual_alias_maps = mysql:/etc/postfix/db.cf: ",
            "canonical: not everybody may read it, and it holds a password",
            "  service submission inet smtpd: ",
            "  service filter unix pipe: ",
            "  service qmgr unix /tmp/qmgr: ",
            "  service smtp: content_filter (",
            "  service smtp: smtp_fallback_relay (",
            "  a check that changes mail, refuses it or sends it elsewhere (",
        ],
    );
    let hidden = [
        "hidden-one",
        "hidden-two",
        "FILTER",
        "redirect a@b",
        "/tmp/qmgr",
    ];
    expect_without(Path::new(&env.path("mine/root")), &hidden);
    if !env.as_root() {
        let output = check(env, "./mine", &[]);
        require(env, "postfix-cleanup", &output);
        expect_message(&output, 2, "needs root");
        return Outcome::Pass;
    }
    let question = "postconf -c conf -h message_size_limit default_destination_concurrency_limit relayhost \
                    smtp_bind_address header_checks virtual_alias_maps transport_maps queue_directory | \
                    sed -e s,:$REFIT_PORT_SINK,:SINK, -e s,$REFIT_DIR,DIR,g && \
                    postconf -c conf -M cleanup/unix smtp/unix | tr -s ' ' && \
                    postconf -c conf -P */inet/smtpd_timeout | sed 's/.*inet/INET/' && \
                    postmap -c conf -q sales@admin.test $(postconf -c conf -h virtual_alias_maps)";
    let answers = asked(env, "mine", "postfix-cleanup", question);
    expect_texts(
        &answers,
        &[&format!(
            "12345678 7 [127.0.0.1]:SINK 127.0.0.1 regexp:DIR/root{checks} hash:DIR/root{aliases} DIR/queue \
             cleanup unix n - n - 0 cleanup smtp unix - - n - 6 smtp INET/smtpd_timeout = 77s a@admin.test, b@admin.test"
        )],
    );
    expect_untouched(&other);
    Outcome::Pass
}
