//! Templates for new recipes. A template is a shipped recipe; the new recipe is a copy of it under
//! another name, where a comment before each part of recipe.toml tells what to change.

use crate::checker::invalid_name;
use crate::error::RecipeError;
use crate::folder::Folder;
use crate::recipe::Recipe;

/// Names of templates, and the shipped recipe that each is made of.
const TEMPLATES: &[(&str, &str)] = &[
    ("command", "append-log"),
    ("daemon", "redis-aof"),
    ("database", "postgres-pgbench"),
    ("mail", "postfix-cleanup"),
];

/// Beginnings of lines of recipe.toml, and the comment to write before the first such line.
const COMMENTS: &[(&str, &str)] = &[
    (
        "question.en",
        "What you want to know. Once you have measured it: answer.en = \"…\"",
    ),
    (
        "packages",
        "What has to be installed: your distribution's names of packages, or purposes; see refit help packages.",
    ),
    (
        "budget",
        "How long a comparison may take when --budget is not given.",
    ),
    (
        "[needs]",
        "What has to be installed; root = true where no other user can run it.",
    ),
    (
        "[service]",
        "A private instance, never the system's own: setup writes its configuration and data into $REFIT_DIR,\n\
         start stays in the foreground or becomes a daemon, ready is what to wait for. Every path lies below\n\
         $REFIT_DIR or $REFIT_TMPFS, and every port is one of service.ports.",
    ),
    (
        "[load]",
        "The measured window: its rate is operations divided by its time. `refit recipes check` makes `brief`.",
    ),
    (
        "[check]",
        "Fails where work was lost, and prints the same in every run.",
    ),
    (
        "[promise]",
        "For `refit crash` and `refit compare --prove`: what the program acknowledges, and how it is found again\n\
         after a power cut. Without power cuts leave the table out.",
    ),
    (
        "[conf.",
        "A setting of the service itself: an edit of a file in $REFIT_DIR, or a command with its inverse.",
    ),
    (
        "[[variant]]",
        "What is compared where the command line names no variant.",
    ),
];

/// Names of all templates.
pub fn template_names() -> impl Iterator<Item = &'static str> {
    TEMPLATES.iter().map(|(template, _)| *template)
}

/// The folder of a new recipe with the name `name`, made from `template`; `None` if there is no
/// template of that name.
///
/// # Errors
/// [`RecipeError::Key`] if `name` is not valid as the name of a recipe.
pub fn from_template(template: &str, name: &str) -> Option<Result<Folder, RecipeError>> {
    let (_, shipped) = TEMPLATES.iter().find(|(known, _)| *known == template)?;
    let mut folder = Folder::shipped(shipped)?;
    if let Some(problem) = invalid_name(name) {
        return Some(Err(RecipeError::Key {
            file: "recipe.toml".to_owned(),
            key: "name".to_owned(),
            problem,
        }));
    }
    // It reports what was measured with the shipped recipe.
    folder
        .files
        .retain(|file| !file.path.ends_with("README.md"));
    for file in &mut folder.files {
        if file.path.ends_with("recipe.toml") {
            let text = String::from_utf8_lossy(&file.bytes);
            file.bytes = commented(&text, template, name).into_bytes();
        }
    }
    Some(Recipe::new(folder.clone()).map(|_| folder))
}

fn commented(shipped: &str, template: &str, name: &str) -> String {
    let mut text = format!(
        "# From `refit recipes new {name} --template {template}`; docs/recipes.md describes each key.\n\
         # After a change: refit recipes check ./{name}\n\
         name = \"{name}\"\n"
    );
    let mut comments = COMMENTS.to_vec();
    let mut in_note = false;
    for line in shipped.lines() {
        in_note = line == "[note]" || in_note && !line.is_empty();
        let dropped = ["name ", "answer.", "question.ja"];
        if in_note || dropped.iter().any(|key| line.starts_with(key)) {
            continue;
        }
        if let Some(at) = comments.iter().position(|(key, _)| line.starts_with(key)) {
            let (_, comment) = comments.remove(at);
            comment
                .lines()
                .for_each(|line| text += &format!("# {line}\n"));
        }
        text = text + line + "\n";
    }
    text.replace("\n\n\n", "\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_is_a_recipe_of_that_name_without_what_others_measured() {
        assert!(template_names().count() > 0);
        for template in template_names() {
            let folder = from_template(template, "mine").unwrap().unwrap();
            let text = str::from_utf8(folder.file("recipe.toml").unwrap()).unwrap();
            let recipe = Recipe::new(folder.clone()).unwrap();
            assert_eq!(recipe.name(), "mine");
            assert!(
                recipe.file.answer.is_none() && recipe.file.note.is_none(),
                "{text}"
            );
            assert!(folder.file("README.md").is_none());
            for part in [
                "question.en",
                "[load]",
                "[check]",
                "[promise]",
                "[[variant]]",
            ] {
                let (_, comment) = COMMENTS.iter().find(|(key, _)| *key == part).unwrap();
                let comment = comment.replace('\n', "\n# ");
                assert!(
                    text.contains(&format!("# {comment}\n{part}")),
                    "{part}: {text}"
                );
            }
        }
    }

    #[test]
    fn a_name_that_cannot_be_one_is_refused() {
        for name in ["", "../x", "a b", "A", "a\"\nroot = true\n#"] {
            let error = from_template("command", name).unwrap().unwrap_err();
            assert!(error.to_string().contains("invalid name"), "{error}");
        }
        assert!(from_template("none", "mine").is_none());
    }
}
