//! The plan: two catalogs, the way between them, and a trial of it.

use crate::way::Way;
use crate::{Catalog, Client, Declared, Key, Kind, Object, Private, SchemaError, Server};

/// A file of statements that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// As it was typed.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// Makes an empty database in a private instance.
pub type Empty<'a> = dyn Fn() -> Result<Box<dyn Private>, String> + 'a;

fn asked(what: &str) -> impl Fn(String) -> SchemaError + '_ {
    move |output| SchemaError::Asked {
        what: what.to_owned(),
        output,
    }
}

const PRIVATE: &str = "the private instance";

/// What a file makes of a database; the way is empty where it has all of that.
///
/// # Errors
/// [`SchemaError`].
pub fn plan(
    server: &dyn Server,
    database: &dyn Client,
    empty: &Empty,
    file: &File,
) -> Result<Declared, SchemaError> {
    let now = server.read(database).map_err(asked("the database"))?;
    let private = empty().map_err(asked(PRIVATE))?;
    let loaded = private.load(&file.text);
    loaded.map_err(|reason| SchemaError::NotLoaded {
        path: file.path.clone(),
        reason,
    })?;
    let mut wanted = server.read(&*private).map_err(asked(PRIVATE))?;
    drop(private);
    let mut before = now.clone();
    let (mut found, mut again) = (Catalog::default(), Catalog::default());
    if server.prints_otherwise() && !now.is_as(&wanted) {
        // What cannot be is told before anything that rests on it.
        server.way(&now, &wanted)?;
        wanted = printed_again(server, empty, &wanted)?;
        before = printed_again(server, empty, &now)?;
        for difference in now.differences(&before) {
            let key = difference.key;
            let add = |to: &mut Catalog, object: Option<&Object>| {
                to.0.extend(object.map(|object| (key.clone(), object.clone())));
            };
            add(&mut found, difference.from);
            add(&mut again, difference.to);
        }
    }
    let way = server.way(&before, &wanted)?;
    let after = expected(&before, &wanted, &way, &found);
    for (key, object) in &mut before.0 {
        if let (Some(now), Some(after)) = (found.get(key), after.get(key))
            && now == after
        {
            object.clone_from(now);
        }
    }
    let mut declared = Declared {
        text: file.text.clone(),
        before,
        found,
        again,
        after,
        back: Way::default(),
        no_way_back: String::new(),
        way,
    };
    if declared.way.steps.is_empty() {
        return Ok(declared);
    }
    for condition in &declared.way.conditions {
        let rows = database.count(&condition.count);
        if rows.map_err(asked("the database"))? != 0 {
            return Err(SchemaError::NoWay {
                what: condition.what.clone(),
                reason: condition.otherwise.clone(),
            });
        }
    }
    let mut losses = Vec::new();
    for loss in std::mem::take(&mut declared.way.losses) {
        let is_none = loss.only_if_any && {
            let rows = database.count(&loss.count);
            rows.map_err(asked("the database"))? == 0
        };
        losses.extend((!is_none).then_some(loss));
    }
    declared.way.losses = losses;
    match server.way(&declared.after, &declared.before) {
        Ok(back) => declared.back = back,
        Err(error) => declared.no_way_back = error.to_string(),
    }
    try_it(server, empty, &declared)?;
    Ok(declared)
}

/// The catalog that a database has which was loaded with what another one prints.
fn printed_again(
    server: &dyn Server,
    empty: &Empty,
    catalog: &Catalog,
) -> Result<Catalog, SchemaError> {
    let private = empty().map_err(asked(PRIVATE))?;
    let loaded = private.load(&server.export(catalog));
    loaded.map_err(|output| SchemaError::Refused { output })?;
    let mut again = server.read(&*private).map_err(asked(PRIVATE))?;
    again.0.retain(|key, _| key.kind != Kind::Other);
    let others = catalog.of_kind(Kind::Other);
    again
        .0
        .extend(others.map(|(key, object)| (key.clone(), object.clone())));
    Ok(again)
}

/// The catalog that a way leads to: that of the file, with what is left as it is. What is `found` printed otherwise, and is
/// not changed, stays printed so.
fn expected(now: &Catalog, wanted: &Catalog, way: &Way, found: &Catalog) -> Catalog {
    let mut after = wanted.clone();
    for (key, object) in &now.0 {
        match after.0.get_mut(key) {
            // As it is printed there, and in its place.
            Some(same) if same.is_as(object) => *same = found.get(key).unwrap_or(object).clone(),
            Some(_) => {}
            None if way.left.contains(&key.to_string()) => {
                after.0.insert(key.clone(), object.clone());
            }
            None => {}
        }
    }
    after
}

/// Goes the way, and the way back, in the private instance, which has no rows.
fn try_it(server: &dyn Server, empty: &Empty, declared: &Declared) -> Result<(), SchemaError> {
    let private = empty().map_err(asked(PRIVATE))?;
    let before = server.export(&declared.before);
    let refused = |output| SchemaError::Refused { output };
    private.load(&before).map_err(refused)?;
    let leads_to = |way: &Way, expected: &Catalog| {
        server.go(&*private, way).map_err(refused)?;
        let found = server.read(&*private).map_err(asked(PRIVATE))?;
        let mut differences = found.differences(expected);
        let is_printed_otherwise = |key: &Key| declared.found.get(key).is_some();
        differences.retain(|one| one.key.kind != Kind::Other && !is_printed_otherwise(one.key));
        match differences.is_empty() {
            true => Ok(()),
            false => Err(SchemaError::Elsewhere {
                differences: differences.iter().map(ToString::to_string).collect(),
            }),
        }
    };
    leads_to(&declared.way, &declared.after)?;
    if declared.no_way_back.is_empty() {
        leads_to(&declared.back, &declared.before)?;
    }
    Ok(())
}

/// The schema of a database as a file that makes it from nothing.
///
/// # Errors
/// What the database reports.
pub fn exported(server: &dyn Server, database: &dyn Client) -> Result<String, String> {
    Ok(server.export(&server.read(database)?))
}
