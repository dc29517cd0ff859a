//! Changes of the object, each with its operation and with what takes it back.

use serde_json::{Value, json};

use super::Building;

impl Building {
    /// Nothing where there is none.
    pub(super) fn get(&self, pointer: &str) -> Value {
        self.after.pointer(pointer).cloned().unwrap_or_default()
    }

    /// A variable of a container by its name.
    pub(super) fn variable_at(&self, container: &str, name: &str) -> Option<(usize, Value)> {
        let all = self.get(&format!("{container}/env"));
        let mut all = all.as_array()?.iter().enumerate();
        let (index, found) = all.find(|(_, variable)| variable["name"] == name)?;
        Some((index, found.clone()))
    }

    /// At the end of a list of `parent`, which may not be there. Taken back it leaves an empty list, which the API server
    /// leaves out.
    pub(super) fn append(&mut self, parent: &str, list: &str, value: Value) {
        let path = format!("{parent}/{list}");
        let length = self.get(&path).as_array().map(Vec::len);
        let at = format!("{path}/{}", length.unwrap_or(0));
        match length {
            None => self.put(&path, json!([value])),
            Some(_) => self.put(&at, value.clone()),
        }
        self.inverse.push(json!({"op": "remove", "path": at}));
        if list == "initContainers" {
            // The API server adds defaults to it.
            for key in ["image", "name"] {
                let path = format!("{at}/{key}");
                self.inverse
                    .push(json!({"op": "test", "path": path, "value": value[key]}));
            }
        } else {
            self.inverse
                .push(json!({"op": "test", "path": at, "value": value}));
        }
    }

    /// What was not there.
    pub(super) fn add(&mut self, path: &str, value: Value) {
        self.put(path, value.clone());
        self.inverse.push(json!({"op": "remove", "path": path}));
        self.inverse
            .push(json!({"op": "test", "path": path, "value": value}));
    }

    fn put(&mut self, path: &str, value: Value) {
        set(&mut self.after, path, value.clone());
        self.operations
            .push(json!({"op": "add", "path": path, "value": value}));
    }

    /// What was there.
    pub(super) fn replace(&mut self, path: &str, value: Value) {
        let old = self.get(path);
        set(&mut self.after, path, value.clone());
        self.operations
            .push(json!({"op": "test", "path": path, "value": old}));
        self.operations
            .push(json!({"op": "replace", "path": path, "value": value}));
        self.inverse
            .push(json!({"op": "replace", "path": path, "value": old}));
        self.inverse
            .push(json!({"op": "test", "path": path, "value": value}));
    }
}

/// Puts a value at a place, at the end of a list too.
pub(super) fn set(object: &mut Value, path: &str, value: Value) {
    let (parent, key) = path.rsplit_once('/').unwrap_or(("", path));
    match object.pointer_mut(parent) {
        Some(Value::Object(map)) => drop(map.insert(key.to_owned(), value)),
        Some(Value::Array(list)) => match key.parse::<usize>() {
            Ok(index) if index < list.len() => list[index] = value,
            _ => list.push(value),
        },
        _ => {}
    }
}
