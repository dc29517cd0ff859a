//! What instances of a recipe have of their own where root runs them: accounts, and a network.

use std::fs;
use std::path::Path;

use crate::compared::printed;
use crate::intruder::{self, Found};
use crate::recipe_folder::{RecipeFolder, finish, refit};
use crate::recipes::require;
use crate::remains::base;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, refit_path};

pub const TESTS: &[Test] = &[
    test!(an_account_of_the_recipe_is_none_of_the_machine),
    test!(another_user_reaches_a_port_only_where_the_recipe_needs_the_network),
    test!(the_daemons_of_postfix_are_not_root).limit_seconds(240),
    test!(the_daemons_of_rsyslog_lease_are_not_root).limit_seconds(240),
    test!(where_no_namespaces_can_be_made_the_result_says_what_was_shared),
];

fn id(env: &TestEnv, option: &str) -> String {
    let output = env.run(&["id", option, "nobody"]);
    expect_code(&output, 0);
    printed(&output).trim().to_owned()
}

fn an_account_of_the_recipe_is_none_of_the_machine(env: &TestEnv) -> Outcome {
    env.require_root();
    env.require_namespaces(&["--mount", "--net"]);
    let real = id(env, "-u");
    let output = RecipeFolder::command(env, "account")
        .text("service.user", "nobody")
        .text(
            "check.command",
            "id -un; id -u; id -u nobody; stat -c %u numbers; id -G",
        )
        .check();
    expect_code(&output, 0);
    let text = printed(&output);
    let own: Vec<u32> = text
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|word| word.parse().ok())
        .filter(|number| (61_184..=65_519).contains(number))
        .collect();
    assert_eq!(own.len() % 4, 0, "{text}");
    assert!(
        own.len() >= 8 && own.iter().all(|number| *number == own[0]),
        "{text}"
    );
    assert!(!text.contains(&real), "{text}");
    assert_eq!(id(env, "-u"), real, "outside nothing has changed");
    Outcome::Pass
}

fn beside_a_service(env: &TestEnv, name: &str, needs: &str) -> Found {
    let folder = RecipeFolder::service(env, name)
        .set("needs.network", needs)
        .text("load.drain", &intruder::wait_until_tried(&base(env)))
        .write();
    let base = base(env);
    let work = || {
        finish(&mut refit(
            env,
            &["recipes", "check", &folder, "--yes", "--dir", &base],
        ))
    };
    let (output, found) = intruder::beside(Path::new(&base), work);
    expect_code(&output, 0);
    assert!(
        found.tried.iter().any(|way| way.starts_with("port ")),
        "{:?}",
        found.tried
    );
    found
}

fn another_user_reaches_a_port_only_where_the_recipe_needs_the_network(env: &TestEnv) -> Outcome {
    env.require_root();
    env.require_namespaces(&["--mount", "--net"]);
    let open = beside_a_service(env, "open", "true").entered;
    assert!(open.iter().any(|way| way.starts_with("port ")), "{open:?}");
    let closed = beside_a_service(env, "closed", "false").entered;
    assert!(closed.is_empty(), "{closed:?}");
    Outcome::Pass
}

/// The instance's processes, by their directory or their environment: a line of the effective user and the name.
const WORKING: &str = "for p in /proc/[0-9]*; do { readlink $p/cwd; cat $p/environ; } 2>/dev/null | \
    grep -qaF $REFIT_DIR && awk '/^Name/ { name = $2 } /^Uid/ { print $3, name }' $p/status; done; true";

/// A shipped recipe whose load ends with that look; whose the daemons of these names are.
fn expect_daemons(env: &TestEnv, recipe: &str, load: &str, daemons: &[&str]) {
    env.require_root();
    env.require_namespaces(&["--mount", "--net", "--user"]);
    let folder = env.path("copy");
    expect_code(&env.refit(&["recipes", "copy", recipe, &folder]), 0);
    let (file, seen) = (env.path("copy/recipe.toml"), env.path("seen"));
    let text = fs::read_to_string(&file).expect("it was copied");
    let looking = text.replacen(load, &format!("{load} && {{ {WORKING}; }} >>{seen}"), 1);
    assert_ne!(text, looking, "{recipe} has no such load");
    fs::write(&file, looking).expect("ours");
    let base = base(env);
    let words = ["recipes", "check", "./copy", "--yes", "--dir", &base];
    let output = finish(&mut refit(env, &words));
    require(env, recipe, &output);
    expect_code(&output, 0);
    let seen = fs::read_to_string(&seen).expect("the load looked");
    for daemon in daemons {
        let mut users = seen.lines().filter_map(|line| {
            let (user, name) = line.split_once(' ')?;
            (name == *daemon).then(|| user.parse::<u32>().expect("a number"))
        });
        let first = users.next();
        assert!(first.is_some(), "{daemon} is not in {seen}");
        assert!(
            first
                .into_iter()
                .chain(users)
                .all(|user| (61_184..=65_519).contains(&user)),
            "{daemon}: {seen}"
        );
    }
}

fn the_daemons_of_postfix_are_not_root(env: &TestEnv) -> Outcome {
    let load = "sh $REFIT_RECIPE/load.sh $REFIT_OPERATIONS load.test";
    expect_daemons(env, "postfix-cleanup", load, &["master", "qmgr", "cleanup"]);
    Outcome::Pass
}

fn the_daemons_of_rsyslog_lease_are_not_root(env: &TestEnv) -> Outcome {
    let load = "./ask $REFIT_PORT_LEASE load $REFIT_OPERATIONS";
    expect_daemons(env, "rsyslog-lease", load, &["rsyslogd", "lease"]);
    Outcome::Pass
}

fn where_no_namespaces_can_be_made_the_result_says_what_was_shared(env: &TestEnv) -> Outcome {
    env.require_root();
    let folder = RecipeFolder::service(env, "shared")
        .text("service.user", "nobody")
        .write();
    let base = base(env);
    let without = ["setpriv", "--bounding-set=-sys_admin", &refit_path()];
    let compare = ["compare", "--yes", "--rounds", "2", "--dir", &base, &folder];
    let output = env.run(&[&without[..], &compare].concat());
    expect_code(&output, 0);
    let shared = "the service ran as the machine's account nobody and was open to other users at its ports (line)";
    assert!(printed(&output).contains(shared), "{}", described(&output));
    Outcome::Pass
}
