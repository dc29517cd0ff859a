//! The rules of a session's policy, and what each is for, from a launch.

use refit_knobs::{Launch, Scope, SwitchRule};
use refit_session::{Knob, Rule};

use crate::scope;

/// Rules of the policy from those of a switch knob.
pub fn rules(knob: Knob, switches: &[SwitchRule]) -> impl Iterator<Item = Rule> {
    switches.iter().map(move |switch| {
        let (exe, path) = match &switch.scope {
            None => (None, None),
            Some(Scope::Exe(name)) => (Some(name.to_string()), None),
            Some(Scope::Path(pattern)) => (None, Some(scope::resolved(pattern))),
        };
        Rule {
            knob,
            exe,
            path,
            on: switch.on,
        }
    })
}

/// What each rule of the policy is for, in its order.
pub fn scopes(launch: &Launch) -> Vec<Option<String>> {
    let switches = |knob, rules: &[SwitchRule]| {
        let all = rules
            .iter()
            .map(|rule| scope_text(knob, rule.scope.as_ref()));
        all.collect::<Vec<_>>()
    };
    let disk = launch.disk.iter();
    [
        switches("sync", &launch.sync),
        switches("odirect", &launch.odirect),
        disk.map(|rule| scope_text("disk", rule.scope.as_ref()))
            .collect(),
    ]
    .concat()
}

fn scope_text(knob: &str, scope: Option<&Scope>) -> Option<String> {
    scope.map(|scope| format!("{knob}@{scope}"))
}
