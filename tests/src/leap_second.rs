//! The recipe leap-second: what Debian 12's programs answer today, exactly.

use std::fs;

use serde_json::Value;

use crate::compared::{list, printed, variant};
use crate::recipe_folder::{finish, refit};
use crate::recipes::require;
use crate::remains::{base, nothing_left};
use crate::runner::{Outcome, Test};
use crate::schema::expect_valid;
use crate::test;
use crate::test_env::{TestEnv, expect_code};

pub const TESTS: &[Test] =
    &[test!(a_zone_with_leap_seconds_changes_what_it_should).limit_seconds(180)];

/// A question, its answer in Japan's usual zone, and in the one with leap seconds.
const TABLE: &[[&str; 3]] = &[
    [
        "date 2012-07-01 08:59:60",
        "date: invalid date '2012-07-01 08:59:60'",
        "2012-07-01 08:59:60",
    ],
    [
        "ruby Time.parse(\"2012-07-01 08:59:60\").to_i",
        "1341100800",
        "1341100824",
    ],
    [
        "ruby Time.at(Time.parse(\"2012-07-01 08:59:60\").to_i)",
        "2012-07-01 09:00:00 +0900",
        "2012-07-01 08:59:60 +0900",
    ],
    [
        "ruby Time.iso8601(\"2016-12-31T23:59:60Z\")",
        "2017-01-01 00:00:00 UTC",
        "2016-12-31 23:59:60 UTC",
    ],
    [
        "python datetime.fromtimestamp(1341100824)",
        "2012-07-01 09:00:24",
        "2012-07-01 08:59:59",
    ],
    [
        "mariadb SELECT UNIX_TIMESTAMP('2012-07-01 08:59:60')",
        "NULL",
        "NULL",
    ],
    [
        "mariadb SELECT FROM_UNIXTIME(1341100824)",
        "2012-07-01 09:00:24",
        "2012-07-01 08:59:59",
    ],
    ["postgres SHOW timezone", "Japan", "Etc/GMT-9"],
    [
        "postgres SET timezone = 'right/Japan'",
        "ERROR:  time zone \"right/Japan\" appears to use leap seconds",
        "ERROR:  time zone \"right/Japan\" appears to use leap seconds",
    ],
];

fn a_zone_with_leap_seconds_changes_what_it_should(env: &TestEnv) -> Outcome {
    let base = base(env);
    let args = [
        "compare",
        "--json",
        "result.json",
        "--dir",
        &base,
        "leap-second",
        "tz=right/Japan",
    ];
    let output = finish(refit(env, &args).env_remove("TZ"));
    require(env, "leap-second", &output);
    expect_code(&output, 0);
    let result = fs::read_to_string(env.path("result.json")).expect("it was written");
    let result: Value = serde_json::from_str(&result).expect("it is JSON");
    expect_valid(&result);
    for (name, column) in [("baseline", 1), ("tz=right/Japan", 2)] {
        let answers = list(&variant(&result, name).1["answers"]);
        assert_eq!(answers.len(), 25);
        for row in TABLE {
            let found = answers.iter().find(|answer| answer["question"] == row[0]);
            let found = found.unwrap_or_else(|| panic!("nobody asked {}", row[0]));
            assert_eq!(found["answer"], row[column], "{name}: {}", row[0]);
        }
    }
    let shown = printed(&output);
    assert!(
        shown.contains("NULL  tz=right/Japan  ≠ then: 0\n"),
        "{shown}"
    );
    assert!(shown.contains("1 of 7 answers differ today"), "{shown}");
    nothing_left(env, "leap-second");
    Outcome::Pass
}
