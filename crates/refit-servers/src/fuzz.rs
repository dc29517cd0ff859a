//! Configurations of somebody else.

use refit_fuzz::Target;

use crate::postgresql::conf;
use crate::{mariadb, postfix, redis, rsyslog};

#[test]
fn configurations() {
    Target::new(env!("CARGO_MANIFEST_DIR"), "configurations")
        .seeds([
            "a = 'it''s\\t\\101' # b\ninclude_dir 'conf.d'\n",
            "[mysqld]\na-b = \"x # \\\"y\" # z\n!includedir /d\n",
            "a =\n b\n# c\nsmtp inet n - y - -\n smtpd -o a=b\n",
            "*.*;a.none\t-/x;T # y\naction(type=\"omfile\" # (\n file=\"/y\")\nif $a == 'b' then /z\n",
        ])
        .words(["'", "\"", "\\", "\n", "#", "/*", "*/", "action(", ")", " then", "!include ", "="])
        .run(|input| {
            let text = String::from_utf8_lossy(input);
            for line in text.lines() {
                let _ = (conf::meaning(line), mariadb::meaning(line), redis::words(line));
                let (filter, action) = rsyslog::split(line);
                assert_eq!([filter, action].concat(), line);
            }
            let pieces = rsyslog::pieces(&text);
            let whole: String = pieces.iter().map(|piece| piece.text).collect();
            assert_eq!(whole, text);
            assert_eq!(postfix::joined(&text).lines().count(), text.lines().count());
            for entry in postfix::entries(text.as_bytes()) {
                assert_eq!(&text[entry.command_at.clone()], entry.command());
            }
        });
}
