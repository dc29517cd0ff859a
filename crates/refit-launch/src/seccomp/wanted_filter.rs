//! Which filter the settings of a program ask for.

use refit_knobs::{Launch, SwitchRule};

use crate::filter::{Filter, Rings, Syncs};

/// What reaches the program's calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// The preload, and seccomp for what it cannot reach.
    #[default]
    Auto,
    /// The preload alone.
    Preload,
    /// Seccomp alone: the guardian answers each call.
    Seccomp,
}

/// How a program's calls are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Preload, seccomp, or both.
    pub backend: Backend,
    /// How io_uring_setup is answered.
    pub rings: Rings,
    /// no_new_privs may be set, which takes the privileges of setuid programs.
    pub no_new_privs: bool,
}

impl Default for Reach {
    /// Preload and seccomp, without no_new_privs.
    fn default() -> Reach {
        Reach {
            backend: Backend::Auto,
            rings: Rings::Leave,
            no_new_privs: false,
        }
    }
}

/// The filter for these settings; `None` where none is of use.
#[must_use]
pub fn wanted(launch: &Launch, reach: &Reach) -> Option<Filter> {
    let Reach { backend, rings, .. } = *reach;
    let filter = |syncs| Filter {
        syncs,
        rings,
        listened: true,
    };
    match (backend, switched(&launch.sync)) {
        (Backend::Preload, _) => None,
        (Backend::Seccomp, _) => Some(filter(Syncs::Ask)),
        (Backend::Auto, _) if launch.disk.is_some() => Some(filter(Syncs::Ask)),
        (Backend::Auto, Switched::Off) => Some(filter(Syncs::Succeed)),
        (Backend::Auto, Switched::Some) => Some(filter(Syncs::Ask)),
        (Backend::Auto, Switched::On) if rings == Rings::Deny => Some(filter(Syncs::Ask)),
        (Backend::Auto, Switched::On) => None,
    }
}

/// The filter for those variants of a comparison whose own settings need none. It costs what the
/// filter of another variant costs, so that the overhead is the same in all of them, and
/// suppresses nothing: every call is real. `None` if no variant needs a filter.
#[must_use]
pub fn ground<'a>(launches: impl Iterator<Item = &'a Launch>, reach: &Reach) -> Option<Filter> {
    let filters: Vec<Filter> = launches.filter_map(|one| wanted(one, reach)).collect();
    let asks = filters.iter().any(|filter| filter.syncs == Syncs::Ask);
    filters.first().map(|filter| Filter {
        syncs: if asks { Syncs::Ask } else { Syncs::Leave },
        ..*filter
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Switched {
    /// Every sync is real.
    On,
    /// None is.
    Off,
    /// It depends on the file or the executable.
    Some,
}

/// A rule for everything hides those before it; the last match wins.
fn switched(rules: &[SwitchRule]) -> Switched {
    let base = rules.iter().rposition(|rule| rule.scope.is_none());
    let on = base.is_none_or(|base| rules[base].on);
    let after = &rules[base.map_or(0, |base| base + 1)..];
    match (on, after.iter().any(|rule| rule.on != on)) {
        (_, true) => Switched::Some,
        (true, false) => Switched::On,
        (false, false) => Switched::Off,
    }
}

/// This filter as the policy holds it, for the preload to install where it does
/// not reach; `None` where a guardian is asked about syncs.
#[must_use]
pub(crate) fn at_exec(filter: &Filter) -> Option<Vec<u64>> {
    let alone = Filter {
        listened: false,
        ..*filter
    };
    let instructions = alone.instructions().into_iter();
    (filter.syncs != Syncs::Ask).then(|| instructions.map(crate::filter::to_policy).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use refit_knobs::Settings;

    fn launch(words: &[&str]) -> Launch {
        let words: Vec<_> = words.iter().map(std::ffi::OsString::from).collect();
        Settings::parse(words).unwrap().launch()
    }

    #[test]
    fn the_ground_of_a_comparison_is_the_most_that_a_variant_has() {
        for (variants, expected) in [
            (&[&[][..], &["malloc=glibc"]][..], None),
            (&[&[], &["sync=off"]], Some(Syncs::Leave)),
            (&[&[], &["sync=off"], &["disk=8ms"]], Some(Syncs::Ask)),
            (&[&[], &["sync@exe:a=off"]], Some(Syncs::Ask)),
        ] {
            let launches: Vec<Launch> = variants.iter().map(|words| launch(words)).collect();
            let ground = ground(launches.iter(), &Reach::default());
            assert_eq!(ground.map(|filter| filter.syncs), expected, "{variants:?}");
        }
    }

    #[test]
    fn only_a_plain_off_is_answered_by_the_kernel_alone() {
        for (words, expected) in [
            (&[][..], None),
            (&["sync=on"], None),
            (&["malloc=glibc"], None),
            (&["sync=off"], Some(Syncs::Succeed)),
            (&["sync@exe:a=off"], Some(Syncs::Ask)),
            (&["sync@/var/=off"], Some(Syncs::Ask)),
            (&["sync@exe:a=on"], None),
            (&["sync=off", "sync@exe:a=on"], Some(Syncs::Ask)),
            (&["disk=8ms"], Some(Syncs::Ask)),
        ] {
            let syncs = |backend| {
                let reach = Reach {
                    backend,
                    ..Reach::default()
                };
                wanted(&launch(words), &reach).map(|filter| filter.syncs)
            };
            assert_eq!(syncs(Backend::Auto), expected, "{words:?}");
            assert_eq!(syncs(Backend::Preload), None);
            assert_eq!(syncs(Backend::Seccomp), Some(Syncs::Ask));
        }
    }
}
