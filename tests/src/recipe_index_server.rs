//! A recipe of a server's database, from the missing index to the statement that makes it and back.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::compared::{effect, number, printed};
use crate::recipe_folder::{finish, refit};
use crate::recipe_index::new;
use crate::remains::{base, nothing_left};
use crate::schema::expect_valid;
use crate::schema_server::Server;
use crate::test_env::{TestEnv, described, expect_code, expect_message, expect_printed};

/// The index that a person would choose.
pub const NAME: &str = "orders_customer_id_at_idx";

/// What is asked of a database with orders, and what is to be found.
pub struct Missing<'a> {
    /// Six statements, of which three can be run; the last would make the file `ran`.
    pub queries: &'a str,
    /// The end of a path: the copy.
    pub archive: &'a str,
    pub ddl: &'a str,
    pub told: &'a [&'a str],
    /// What is nowhere to be seen.
    pub secrets: &'a [&'a str],
}

fn all_text(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).expect("it is ours") {
        let path = entry.expect("readable").path();
        match path.is_dir() {
            true => all.extend(all_text(&path)),
            false => {
                let bytes = fs::read(&path).expect("it is ours");
                all.push((path.display().to_string(), bytes));
            }
        }
    }
    all
}

pub fn contains(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|part| part == text.as_bytes())
}

/// The server is only read, its password stays out, and the index is found, measured and handed over.
pub fn found_and_handed_over(env: &TestEnv, server: &Server, address: &str, missing: &Missing) {
    let before = server.dump();
    let output = new(env, "shop", address, missing.queries);
    expect_code(&output, 0);
    let shown = printed(&output);
    for text in [&[missing.ddl], missing.told].concat() {
        assert!(shown.contains(text), "{text}\n{}", described(&output));
    }
    assert!(!Path::new(&env.path("ran")).exists());
    // Only read, and nobody else reads the copy; the password stays out of everything.
    assert_eq!(server.dump(), before);
    let folder = env.path("shop");
    let mode = fs::metadata(&folder).expect("it was written").permissions();
    assert_eq!(mode.mode() & 0o777, 0o700);
    let files = all_text(Path::new(&folder));
    assert!(
        files
            .iter()
            .any(|(path, _)| path.ends_with(missing.archive))
    );
    for secret in missing.secrets {
        assert!(!contains(&output.stdout, secret), "{}", described(&output));
        assert!(!contains(&output.stderr, secret), "{}", described(&output));
        let with = files.iter().find(|(_, bytes)| contains(bytes, secret));
        assert!(with.is_none(), "{secret} in {}", with.expect("one").0);
    }

    let base = base(env);
    let args = ["recipes", "check", "./shop", "--dir", &base];
    let output = finish(&mut refit(env, &args));
    let checked = format!("ok      shop: conf.index={NAME}: 3 statements");
    expect_printed(&output, 0, &checked);
    let options = ["--rounds", "8", "--json", "result.json"];
    let args = [&["compare", "./shop", "--dir", &base], &options[..]].concat();
    let output = finish(&mut refit(env, &args));
    expect_code(&output, 0);
    let text = fs::read_to_string(env.path("result.json")).expect("it was written");
    let result: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    expect_valid(&result);
    assert_eq!(
        result["recipe"]["applied"][format!("conf.index={NAME}")],
        format!("conf.index.{NAME}=customer_id,at")
    );
    let effect = effect(&result, &format!("conf.index={NAME}"), "q1");
    // Twenty rows are read and not all: seen in few rounds, whatever else the machine does. Their interval is too wide then.
    assert!(number(&effect["change"]) < -0.5, "{effect}");
    nothing_left(env, "shop");

    // What was printed is what the database takes, both ways; with it, nothing is left to be proposed.
    server.sql(missing.ddl);
    assert_ne!(server.dump(), before);
    let output = new(env, "shop2", address, missing.queries);
    expect_message(&output, 2, "no index is proposed for these 3 queries");
    assert!(!Path::new(&env.path("shop2")).exists());
    let inverse = fs::read_to_string(env.path(&format!("shop/indexes/index-{NAME}.inverse.sql")));
    server.sql(&inverse.expect("it was written"));
    assert_eq!(server.dump(), before);
}
