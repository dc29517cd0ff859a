//! The risk of a change: somebody accepts it by name, and a result shows gain and loss.

use refit_knobs::{Class, Setting};

use crate::{Accepted, Change, Error, Evidence};

/// On what a risk is accepted.
#[derive(Clone, Copy)]
pub enum Basis<'a> {
    /// On nothing, as it was asked for.
    DoneWithout,
    /// On this.
    Named(Option<&'a Evidence>),
}

/// The consent to what a change destroys.
///
/// # Errors
/// [`Error::Destroys`].
pub fn of_destroyed(change: &Change, accept: Option<Class>) -> Result<Option<Accepted>, Error> {
    let class = Class::LosesData;
    if accept == Some(class) {
        let evidence = false;
        return Ok(Some(Accepted { class, evidence }));
    }
    let losses = change.declared.iter().flat_map(|one| one.losses());
    Err(Error::Destroys {
        service: change.service.clone(),
        what: losses.map(|loss| loss.what.clone()).collect(),
    })
}

/// The risk that is accepted; `None` where none of its settings, each of its class, risks data.
///
/// Each setting counts: `changes-behaviour` stands above `loses-on-crash`, so the highest class
/// of all would hide a risk.
///
/// # Errors
/// [`Error::NotAccepted`], [`Error::NoEvidence`].
pub fn judged<'a>(
    settings: impl Iterator<Item = (&'a Setting, &'a Class)>,
    accept: Option<Class>,
    evidence: Basis,
) -> Result<Option<Accepted>, Error> {
    let risky = settings.filter(|(_, class)| class.risks_data());
    let Some((setting, class)) = risky.max_by_key(|(_, class)| **class) else {
        return Ok(None);
    };
    let lacks = match evidence {
        Basis::DoneWithout => String::new(),
        Basis::Named(None) => "no --from RESULT was named".to_owned(),
        Basis::Named(Some(evidence)) => evidence.lacks.join("; "),
    };
    let accepted = accept.filter(|accept| accept.risks_data());
    if accepted.is_none_or(|accept| accept < *class) {
        return Err(Error::NotAccepted {
            setting: setting.to_string(),
            class: *class,
            meaning: match class {
                Class::BoundedLoss => {
                    "a power cut can take what the service acknowledged in the last moments"
                }
                _ => "a power cut can take what the service acknowledged, and damage its data",
            },
            next: if lacks.is_empty() {
                format!("a result shows gain and loss; to accept it: --accept {class}")
            } else {
                format!(
                    "measure and cut first, then: refit apply --from RESULT --accept {class}\n  \
                     or without evidence: --accept {class} --no-evidence"
                )
            },
        });
    }
    let class = *class;
    if !lacks.is_empty() {
        return Err(Error::NoEvidence { class, lacks });
    }
    Ok(Some(Accepted {
        class,
        evidence: matches!(evidence, Basis::Named(_)),
    }))
}
