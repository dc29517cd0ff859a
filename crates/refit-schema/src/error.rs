//! Why a schema is not changed.

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// The file of statements cannot be read.
    #[error(
        "{path}: {cause}\n  name a file of statements, or - for the standard input: schema=FILE"
    )]
    File {
        /// As it was typed.
        path: String,
        /// The kernel's error.
        cause: std::io::Error,
    },
    /// The private instance refuses the file.
    #[error("{path}:{reason}\n  nothing was changed; mend the file, then plan again")]
    NotLoaded {
        /// As it was typed.
        path: String,
        /// The line, and what the server reports.
        reason: String,
    },
    /// The database or the private instance cannot be asked.
    #[error("{what}: {output}")]
    Asked {
        /// What was asked.
        what: String,
        /// What it reports.
        output: String,
    },
    /// The way needs an object of which only the name is compared.
    #[error(
        "the file needs {what}, which refit knows by its name only and neither makes nor changes\n  make it by hand as the file has it, then plan again"
    )]
    NotKnown {
        /// Which.
        what: String,
    },
    /// The way cannot be gone.
    #[error("{what}: {reason}")]
    NoWay {
        /// Which object.
        what: String,
        /// Why, and what to type.
        reason: String,
    },
    /// The statements lead elsewhere.
    #[error(
        "tried in a private instance, the statements do not lead to the schema of the file, so nothing was changed:\n  {}",
        differences.join("\n  ")
    )]
    Elsewhere {
        /// What would be different.
        differences: Vec<String>,
    },
    /// A statement is refused in the private instance.
    #[error(
        "tried in a private instance, a statement was refused, so nothing was changed: {output}"
    )]
    Refused {
        /// What the server reports.
        output: String,
    },
}
