//! Results that can be drawn: a text in one may have come from a program, a recipe or a file of others, and be of any
//! length. `--json` keeps it whole.

use std::borrow::Cow;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Characters of a text that are shown: more than any command that a person typed.
const MOST: usize = 8_192;
/// Of a longer one, the last of them: names differ at their ends.
const AT_THE_END: usize = 512;

/// The result with its long texts cut, each with how much was left out.
pub fn bounded<T: Serialize + DeserializeOwned + Clone>(result: &T) -> Cow<'_, T> {
    let Ok(mut value) = serde_json::to_value(result) else {
        return Cow::Borrowed(result);
    };
    if !cut(&mut value) {
        return Cow::Borrowed(result);
    }
    // A text that is read as something, a gate for example, may not be readable when it was cut.
    serde_json::from_value(value).map_or(Cow::Borrowed(result), Cow::Owned)
}

/// Whether anything was.
fn cut(value: &mut Value) -> bool {
    match value {
        Value::String(text) => match shortened(text) {
            Some(short) => {
                *text = short;
                true
            }
            None => false,
        },
        Value::Array(all) => all.iter_mut().fold(false, |any, one| cut(one) | any),
        Value::Object(all) => {
            let mut any = all.values_mut().fold(false, |any, one| cut(one) | any);
            if all.keys().any(|key| key.len() > MOST) {
                any = true;
                let old: Map<String, Value> = std::mem::take(all);
                all.extend(
                    old.into_iter()
                        .map(|(key, value)| (shortened(&key).unwrap_or(key), value)),
                );
            }
            any
        }
        _ => false,
    }
}

fn shortened(text: &str) -> Option<String> {
    let length = (text.len() > MOST).then(|| text.chars().count())?;
    let left_out = length.checked_sub(MOST).filter(|left_out| *left_out > 0)?;
    let head: String = text.chars().take(MOST - AT_THE_END).collect();
    let tail: String = text.chars().skip(length - AT_THE_END).collect();
    Some(format!(
        "{head} … ({left_out} characters left out) … {tail}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_long_text_is_cut_and_says_so_wherever_it_is() {
        let long = "é".repeat(MOST + 7) + "end";
        let whole: BTreeMap<String, Vec<String>> = [
            ("short".to_owned(), vec![long.clone(), "x".repeat(MOST)]),
            (long, vec![String::new()]),
        ]
        .into();
        let shown = bounded(&whole);
        let cut = &shown["short"][0];
        assert!(cut.contains("é … (10 characters left out) … é") && cut.ends_with("end"));
        assert_eq!(shown["short"][1], whole["short"][1]);
        assert!(shown.contains_key(cut));
        let plain: BTreeMap<String, Vec<String>> = [("a".to_owned(), Vec::new())].into();
        assert!(matches!(bounded(&plain), Cow::Borrowed(_)));
    }
}
