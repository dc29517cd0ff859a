//! The seccomp profile of `sync=off`, in the JSON that container runtimes read.
//!
//! Promises: what a given profile blocks stays blocked, and a call that is not a sync is decided as before.

use refit_run::arch::SECCOMP_NAMES;
use refit_services::sync_filter::CALLS;
use serde_json::{Map, Value, json};
use thiserror::Error;

/// A profile under which syncs return 0.
#[derive(Debug)]
pub struct Profile {
    /// To be written.
    pub json: Value,
    /// Calls that the given profile decides by itself, which it still does.
    pub kept: Vec<&'static str>,
}

/// Why a file is not taken for a profile.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ProfileError {
    /// It has not the form of one.
    #[error("it is not a seccomp profile: {0}")]
    Form(&'static str),
    /// Nothing would be swapped.
    #[error("it blocks every sync call by itself: sync=off would change nothing")]
    AllBlocked,
}

/// Everything else is allowed.
pub fn allow_all() -> Value {
    json!({
        "defaultAction": "SCMP_ACT_ALLOW",
        // 32-bit programs have to be named too: a filter kills what is of another architecture.
        "architectures": SECCOMP_NAMES,
        "syscalls": [answered(&CALLS, &Map::new())],
    })
}

/// The given profile, in which sync calls that it lets through return 0.
///
/// # Errors
/// [`ProfileError`].
pub fn beneath(mut profile: Value) -> Result<Profile, ProfileError> {
    let form = ProfileError::Form;
    let lets_all = lets_through(&profile["defaultAction"]);
    if !profile["defaultAction"].is_string() {
        return Err(form("it has no defaultAction"));
    }
    let Some(Value::Array(rules)) = profile.get_mut("syscalls") else {
        return Err(form("it has no list `syscalls`"));
    };
    for rule in rules.iter() {
        let names = names(rule).ok_or(form("one of its `syscalls` has no names"))?;
        if names.is_empty() || !rule["action"].is_string() {
            return Err(form("one of its `syscalls` has no name or no action"));
        }
    }
    // Where any rule blocks a call, even if only with some arguments, all of them are left as they are.
    let is_blocked = |call: &&str| {
        let blocks = |rule: &&Value| !lets_through(&rule["action"]);
        let mut naming = rules.iter().filter(|rule| is_named(rule, call));
        let any_blocks = naming.clone().any(|rule| blocks(&rule));
        any_blocks || (!lets_all && naming.next().is_none())
    };
    let (kept, ours): (Vec<&str>, Vec<&str>) = CALLS.into_iter().partition(is_blocked);
    if ours.is_empty() {
        return Err(ProfileError::AllBlocked);
    }
    let mut all = Vec::new();
    for rule in rules.drain(..) {
        let names = names(&rule).unwrap_or_default();
        let is_ours = |name: &&String| ours.contains(&name.as_str());
        let (swapped, rest): (Vec<&String>, Vec<&String>) = names.iter().partition(is_ours);
        let Value::Object(rule) = &rule else { continue };
        if !rest.is_empty() {
            let mut rule = rule.clone();
            rule.remove("name");
            rule.insert("names".to_owned(), json!(rest));
            all.push(Value::Object(rule));
        }
        // Under the same conditions as before.
        if !swapped.is_empty() && !lets_all {
            all.push(answered(&swapped, rule));
        }
    }
    if lets_all {
        all.push(answered(&ours, &Map::new()));
    }
    *rules = all;
    Ok(Profile {
        json: profile,
        kept,
    })
}

/// A rule by which these calls return 0, under the conditions of another one.
fn answered(calls: &[impl serde::Serialize], conditions: &Map<String, Value>) -> Value {
    let mut rule = conditions.clone();
    for of_another_action in ["name", "errno", "comment"] {
        rule.remove(of_another_action);
    }
    rule.insert("names".to_owned(), json!(calls));
    rule.insert("action".to_owned(), json!("SCMP_ACT_ERRNO"));
    rule.insert("errnoRet".to_owned(), json!(0));
    Value::Object(rule)
}

fn lets_through(action: &Value) -> bool {
    action == "SCMP_ACT_ALLOW" || action == "SCMP_ACT_LOG"
}

/// Older profiles have one name for each rule.
fn names(rule: &Value) -> Option<Vec<String>> {
    let all: Option<Vec<&str>> = match (rule.get("names"), rule.get("name")) {
        (Some(Value::Array(names)), _) => names.iter().map(Value::as_str).collect(),
        (_, Some(name)) => name.as_str().map(|name| vec![name]),
        _ => None,
    };
    Some(all?.into_iter().map(str::to_owned).collect())
}

fn is_named(rule: &Value, call: &str) -> bool {
    names(rule).is_some_and(|names| names.iter().any(|name| name == call))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(names: &[&str], action: &str) -> Value {
        json!({"names": names, "action": action})
    }

    fn profile(default: &str, rules: &[Value]) -> Value {
        json!({"defaultAction": default, "archMap": [], "syscalls": rules})
    }

    const ALLOW: &str = "SCMP_ACT_ALLOW";
    const ERRNO: &str = "SCMP_ACT_ERRNO";

    #[test]
    fn what_is_allowed_returns_0_and_the_rest_is_as_before() {
        let given = profile(
            ERRNO,
            &[
                rule(
                    &[
                        "read",
                        "fsync",
                        "fdatasync",
                        "sync",
                        "syncfs",
                        "sync_file_range",
                    ],
                    ALLOW,
                ),
                rule(&["write"], ALLOW),
            ],
        );
        let made = beneath(given.clone()).unwrap();
        assert!(made.kept.is_empty());
        assert_eq!(
            made.json["syscalls"],
            json!([
                rule(&["read"], ALLOW),
                {"names": ["fsync", "fdatasync", "sync", "syncfs", "sync_file_range"], "action": ERRNO, "errnoRet": 0},
                rule(&["write"], ALLOW),
            ])
        );
        assert_eq!(made.json["archMap"], given["archMap"]);
    }

    #[test]
    fn what_is_blocked_stays_blocked() {
        let rules = [
            rule(&["fsync", "fdatasync", "sync", "read"], ALLOW),
            json!({"names": ["sync"], "action": "SCMP_ACT_KILL", "excludes": {"caps": ["CAP_SYS_ADMIN"]}}),
        ];
        let made = beneath(profile(ERRNO, &rules)).unwrap();
        // Named nowhere: the default blocks them.
        assert_eq!(made.kept, ["sync_file_range", "sync", "syncfs"]);
        assert_eq!(
            made.json["syscalls"],
            json!([
                rule(&["sync", "read"], ALLOW),
                {"names": ["fsync", "fdatasync"], "action": ERRNO, "errnoRet": 0},
                rules[1],
            ])
        );
        let none = profile(ERRNO, &[rule(&["read"], ALLOW), rule(&["fsync"], ERRNO)]);
        assert_eq!(beneath(none).unwrap_err(), ProfileError::AllBlocked);
    }

    #[test]
    fn the_conditions_of_a_rule_are_those_of_its_swap() {
        let conditional = json!({
            "names": ["fsync"], "action": ALLOW, "args": [{"index": 0, "value": 3, "op": "SCMP_CMP_EQ"}],
            "includes": {"caps": ["CAP_SYS_ADMIN"]}, "comment": "why", "errno": "EPERM",
        });
        let made = beneath(profile(ERRNO, std::slice::from_ref(&conditional))).unwrap();
        let swapped = &made.json["syscalls"][0];
        assert_eq!(made.json["syscalls"].as_array().unwrap().len(), 1);
        assert_eq!(swapped["args"], conditional["args"]);
        assert_eq!(swapped["includes"], conditional["includes"]);
        assert_eq!(
            (&swapped["action"], &swapped["errnoRet"]),
            (&json!(ERRNO), &json!(0))
        );
        assert!(swapped.get("errno").is_none());
    }

    #[test]
    fn a_default_that_allows_gets_one_rule() {
        let rules = [rule(&["fsync", "read"], ALLOW), rule(&["syncfs"], ERRNO)];
        let made = beneath(profile("SCMP_ACT_LOG", &rules)).unwrap();
        assert_eq!(made.kept, ["syncfs"]);
        assert_eq!(
            made.json["syscalls"],
            json!([
                rule(&["read"], ALLOW),
                rules[1],
                {"names": ["fsync", "fdatasync", "sync_file_range", "sync"], "action": ERRNO, "errnoRet": 0},
            ])
        );
    }

    #[test]
    fn an_older_form_has_one_name_for_each_rule() {
        let made = beneath(json!({
            "defaultAction": ERRNO,
            "syscalls": [{"name": "fsync", "action": ALLOW, "args": []}, {"name": "read", "action": ALLOW}],
        }));
        let rules = made.unwrap().json["syscalls"].clone();
        assert_eq!(
            rules,
            json!([
                {"names": ["fsync"], "action": ERRNO, "errnoRet": 0, "args": []},
                {"names": ["read"], "action": ALLOW},
            ])
        );
    }

    #[test]
    fn what_is_no_profile_is_refused() {
        for text in ["[]", "{}", "null", r#"{"defaultAction": "SCMP_ACT_ERRNO"}"#] {
            let error = beneath(serde_json::from_str(text).unwrap()).unwrap_err();
            assert!(matches!(error, ProfileError::Form(_)), "{text}");
        }
        for rule in [
            json!(1),
            json!({"action": ALLOW}),
            json!({"names": [1], "action": ALLOW}),
            json!({"names": []}),
        ] {
            let error = beneath(profile(ERRNO, std::slice::from_ref(&rule))).unwrap_err();
            assert!(matches!(error, ProfileError::Form(_)), "{rule}");
        }
    }
}
