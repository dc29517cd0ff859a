//! What a knob is, and what each of its values can do.

use std::fmt;

use crate::explain::{Class, Prose};
use crate::ground::Ground;
use crate::launch::Launch;
use crate::scope::Scope;

/// One part beneath a program that can be swapped.
#[derive(Debug)]
pub struct Knob {
    /// Its name.
    pub name: &'static str,
    /// How a setting of it is written: `sync[@exe:NAME|@/PATH]=on|off`.
    pub form: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// A setting that most people would start with.
    pub example: &'static str,
    /// Whether `@exe:NAME` or `@/PATH` can follow the name.
    pub scoped: bool,
    /// Whether `.NAME` has to follow the name.
    pub(crate) has_members: bool,
    /// Whether one command may hold it (or each of its members) only once.
    pub(crate) once: bool,
    /// The setting that can be made permanent, as it is written: `sync=off`. With `=` at the end every value can be.
    pub(crate) permanent: &'static str,
    /// Where these can act.
    pub(crate) grounds: &'static [Ground],
    /// Values to choose from, given what is typed of one.
    pub(crate) values: fn(&str) -> Vec<String>,
    /// Names that others use for it; suggested, never accepted.
    pub(crate) aliases: &'static [&'static str],
    /// Names whose "on" is our "off": the example is suggested, whatever the value.
    pub(crate) opposites: &'static [&'static str],
}

impl PartialEq for Knob {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Knob {}

/// What each knob's value type can do. Display is the text after the `=`.
pub(crate) trait Behaviour: fmt::Display {
    /// The knob that it is a value of.
    fn knob(&self) -> &'static Knob;
    /// What follows the dot in `env.NAME`.
    fn member(&self) -> Option<&str> {
        None
    }
    fn class(&self) -> Class;
    fn prose(&self, scope: Option<&Scope>) -> Prose;
    fn apply(&self, scope: Option<&Scope>, launch: &mut Launch);
}
