//! `refit recipes`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Services under load, as folders: list, show, copy, check
///
/// `refit compare NAME` runs one.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct RecipesArgs {
    #[command(subcommand)]
    pub verb: Option<RecipesVerb>,
}

#[derive(Subcommand)]
pub enum RecipesVerb {
    /// What there is, and what of it can run here
    List,
    Show(RecipeNameArgs),
    Copy(RecipeCopyArgs),
    Check(RecipeCheckArgs),
}

/// Question, answer, variants, and every command that it runs
#[derive(Args)]
pub struct RecipeNameArgs {
    /// A name, or a folder (./NAME)
    #[arg(value_name = "RECIPE")]
    pub name: String,
}

/// Write a folder of your own, to be changed
#[derive(Args)]
pub struct RecipeCopyArgs {
    /// A name that `refit recipes` lists
    #[arg(value_name = "NAME")]
    pub name: String,

    /// Where to; it must not exist yet [default: ./NAME]
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// Run each variant once, briefly: does it work here?
///
/// Exits with 0, with 1 when a variant failed, and with 2 when something is
/// missing.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct RecipeCheckArgs {
    /// Names, or folders (./NAME); without any all that refit carries
    #[arg(value_name = "RECIPE")]
    pub names: Vec<String>,

    /// Instances lie in a new directory below this one
    #[arg(long, value_name = "DIR", default_value = refit_lab::DEFAULT_BASE)]
    pub dir: PathBuf,

    /// Run the commands of a recipe that refit does not carry without asking
    #[arg(long)]
    pub yes: bool,

    /// Look for allocators here first
    #[arg(long, value_name = "DIR")]
    pub allocator_dir: Option<PathBuf>,
}
