use refit_servers::risk;

use super::*;
use crate::folder::{FolderFile, shipped_names};

const SMALL: &str = "name = \"small\"\nquestion.en = \"?\"\n[load]\ncommand = \"true\"\noperations = 1\nunit = \"run\"\n[check]\ncommand = \"true\"\n";

fn read(text: &str) -> Result<Recipe, RecipeError> {
    Recipe::new(Folder {
        origin: Some("/r".into()),
        files: vec![FolderFile {
            path: "recipe.toml".into(),
            bytes: text.into(),
            executable: false,
        }],
    })
}

fn refused(text: &str) -> String {
    read(text).map(|_| text).unwrap_err().to_string()
}

#[test]
fn the_smallest_recipe_is_a_load_and_a_check() {
    let recipe = read(SMALL).unwrap();
    assert!(recipe.service.is_none());
    assert_eq!(recipe.main(), "rate");
    assert_eq!(recipe.commands().len(), 2);
}

#[test]
fn an_unknown_key_is_named_with_its_line() {
    let error = refused(&format!("{SMALL}\n[service]\nstrat = \"x\"\n"));
    assert!(
        error.contains("line 11") && error.contains("strat"),
        "{error}"
    );
    let error = refused(&format!(
        "{SMALL}[conf.a.b]\nclass = \"safe\"\nfiel = \"x\"\n"
    ));
    assert!(
        error.contains("line 11") && error.contains("fiel"),
        "{error}"
    );
    for (more, line, words) in [
        (
            "[load.metrics.p99]\nregex = '(a)'\nunit = 'mm'\n",
            "line 11",
            "`mm`",
        ),
        ("[load]\n", "line 9", "load"),
        (
            "[service]\nready-timeout = 'soon'\n",
            "line 10",
            "`soon`; write it as 90s",
        ),
        (
            "[conf.a.b]\nclass = 'harmless'\n",
            "line 10",
            "`harmless`, expected one of `safe`",
        ),
    ] {
        let error = refused(&format!("{SMALL}{more}"));
        assert!(error.contains(line) && error.contains(words), "{error}");
    }
    let error = refused("name = \"x\"\n");
    assert!(error.contains("question"), "{error}");
}

#[test]
fn what_contradicts_itself_is_named_by_its_key() {
    for (more, key) in [
        (
            "[load.metrics.p99]\nregex = 'a'\nunit = 'ms'\n",
            "load.metrics.p99.regex",
        ),
        (
            "[load.metrics.pss]\nregex = '(a)'\nunit = 'ms'\n",
            "load.metrics.pss",
        ),
        ("[load.metrics.a]\nunit = 'ms'\n", "load.metrics.a"),
        (
            "[load.metrics.a]\npointer = 'b'\nunit = 'ms'\n",
            "load.metrics.a.pointer",
        ),
        ("[service]\nstart = 'x'\n", "service.ready"),
        (
            "[service]\nstart = 'x'\nready = { tcp = 'http' }\n",
            "service.ready.tcp",
        ),
        (
            "[service]\nstart = 'x'\nready = { tcp = 'a', unix = 'b' }\n",
            "service.ready",
        ),
        ("[service]\nstop = 'x'\n", "service.stop"),
        ("[service]\nready-timeout = '1s'\n", "service.ready-timeout"),
        ("[service]\nkeep = true\n", "service.keep"),
        (
            "[service]\nkeep = true\nstart = 'x'\nready = { unix = 's' }\n[conf.a.b]\nclass = 'safe'\nfile = 'f'\nto = 'x'\n",
            "conf.a.b",
        ),
        ("[service]\nports = ['A B']\n", "service.ports"),
        ("[needs]\nfiles = ['etc/x']\n", "needs.files"),
        ("[conf.a.b]\nclass = 'safe'\ncommand = 'a'\n", "conf.a.b"),
        ("[[series]]\ntitle = 't'\nmetrics = []\n", "series `t`"),
        ("[[series]]\ntitle = 't'\nmetrics = ['p9']\n", "series `t`"),
        (
            "[[series]]\ntitle = 't'\nmetrics = ['rate', 'wall']\nat = [1]\n",
            "series `t`",
        ),
        (
            "[[series]]\ntitle = 't'\nmetrics = ['rate', 'wall']\nat = [2, 1]\n",
            "series `t`",
        ),
        (
            "[[series]]\ntitle = 't'\nmetrics = ['rate', 'wall']\nat = [0, 1]\n",
            "series `t`",
        ),
    ] {
        let error = refused(&format!("{SMALL}{more}"));
        assert!(error.contains(&format!(" {key}: ")), "{more}: {error}");
    }
    for (line, more, sentence) in [
        (
            "name = \"small\"",
            "main = \"speed\"",
            "main: the runs have no metric `speed`",
        ),
        // A service has it, and a load that is the program has not.
        (
            "name = \"small\"",
            "main = \"pss\"",
            "main: the runs have no metric `pss`",
        ),
        ("operations = 1", "brief = 0", "load.brief: 0"),
    ] {
        let error = refused(&SMALL.replace(line, &format!("{line}\n{more}")));
        assert!(error.contains(sentence), "{error}");
    }
    let good = "[[series]]\ntitle = 't'\nmetrics = ['rate', 'wall']\nat = [0.5, 2]\n";
    let recipe = read(&format!("{SMALL}{good}")).unwrap();
    assert_eq!(recipe.record().series[0].at, [0.5, 2.0]);
    let read = "operations = { regex = \"([0-9]+)\" }\nbrief = 1";
    let error = refused(&SMALL.replace("operations = 1", read));
    assert!(error.contains("load.brief: "), "{error}");
}

#[test]
fn every_recipe_that_refit_carries_can_be_read() {
    for name in shipped_names() {
        let recipe = Recipe::find(name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(recipe.name(), name);
        assert!(recipe.file.question.ja.is_some(), "{name}");
    }
}

const PROMISE: &str =
    "[promise]\nabout = 'a'\nacknowledged = 'b'\ncheck = 'log:l'\nlength = '1s'\n";

#[test]
fn a_promise_says_how_it_acknowledges_and_how_large_its_disk_is() {
    let recipe = read(&format!("{SMALL}{PROMISE}ack = 'fd:1'\nsize = '64M'\n")).unwrap();
    let promise = recipe.promise().unwrap();
    assert_eq!(promise.size.map(|size| size.0), Some(64 << 20));
    assert!(
        recipe
            .commands()
            .contains(&("promise.check".to_owned(), "log:l"))
    );
    for (more, words) in [
        ("", "promise: write either `ack` or `ack-regex`"),
        ("ack = 'fd:1'\nack-regex = 'x'\n", "promise: write either"),
        ("ack-regex = '('\n", "promise.ack-regex"),
        ("ack = 'fd:1'\ncuts = 0\n", "promise.cuts"),
        ("ack = 'fd:1'\nsize = '1T'\n", "512M or 2G"),
        ("ack = 'fd:1'\nalso = ['sync=of']\n", "promise.also"),
    ] {
        let error = refused(&format!("{SMALL}{PROMISE}{more}"));
        assert!(error.contains(words), "{more}: {error}");
    }
    let kept = "ack = 'fd:1'\n[service]\nkeep = true\nstart = 'x'\nready = { unix = 's' }\n";
    let error = refused(&format!("{SMALL}{PROMISE}{kept}"));
    assert!(error.contains("service.keep"), "{error}");
    let error = read(SMALL).unwrap().promise().unwrap_err().to_string();
    assert!(
        error.contains("no [promise]") && error.contains("append-log"),
        "{error}"
    );
}

#[test]
fn a_shipped_recipe_has_the_classes_of_its_server() {
    let mut held = 0;
    for folder in shipped_names().filter_map(Folder::shipped) {
        let recipe = Recipe::new(folder).unwrap();
        let risks = match recipe.file.applies_to.as_deref() {
            Some("postgresql") => risk::POSTGRESQL,
            Some("mariadb") => risk::MARIADB,
            Some("redis-server") => risk::REDIS,
            Some("rsyslog") => risk::RSYSLOG,
            _ => continue,
        };
        for (name, conf) in &recipe.file.conf {
            for (value, entry) in &conf.values {
                // The recipe's baseline syncs nothing, so that a dash takes nothing away.
                let known = risk::class(risks, name, value).filter(|_| value != "dash");
                held += usize::from(known.is_some());
                let class = entry.class;
                assert_eq!(
                    known.unwrap_or(class),
                    class,
                    "{}: {name}={value}",
                    recipe.name()
                );
            }
        }
    }
    assert!(held > 10, "only {held} values are of a server");
}

#[test]
fn a_value_that_cannot_be_tried_says_why() {
    let value = "class = 'safe'\nfile = 'f'\nto = 'x'\n";
    let recipe = read(&format!(
        "{SMALL}[conf.a.old]\n{value}needs = 'echo; echo too old >&2; exit 3'\n\
         [conf.a.silent]\n{value}needs = 'false'\n[conf.a.new]\n{value}needs = 'echo fine'\n\
         [conf.a.any]\n{value}"
    ));
    let recipe = recipe.unwrap();
    for (name, why) in [
        ("old", Some("too old")),
        ("silent", Some("`false` fails")),
        ("new", None),
        ("any", None),
    ] {
        assert_eq!(recipe.unmet("a", name).as_deref(), why, "{name}");
    }
    let commands = recipe.commands();
    assert!(commands.contains(&("conf.a.silent.needs".to_owned(), "false")));
}

#[test]
fn sizes_have_a_unit_or_are_bytes() {
    for (text, bytes) in [
        ("4096", 4096),
        ("64K", 64 << 10),
        ("512M", 512 << 20),
        ("2G", 2 << 30),
    ] {
        assert_eq!(crate::parse_size(text), Ok(bytes));
    }
    for text in ["", "0", "1000", "1T", "M", "-4096", "99999999999G"] {
        let error = crate::parse_size(text).unwrap_err();
        assert!(error.contains("512M or 2G"), "{text}: {error}");
    }
}
