//! A private instance of the recipe that is being written: where the copy is read.

use std::fs;
use std::path::Path;
use std::time::Duration;

use refit_knobs::Launch;
use refit_recipe::{
    DEFAULT_BASE, Folder, FolderFile, Hook, InstanceDirectory, InstanceError, Recipe, Service,
    quoted, remove_abandoned_instances,
};
use refit_run::{Options, Prepared, count_interruptions, interruptions, prepare};

use crate::copy::write;
use crate::error::{IndexError, at};
use crate::recipe_text::Server;

/// One question to the copy, or all queries once.
const TIMEOUT: Duration = Duration::from_secs(3600);

/// A directory for the copy of a database, with the scripts of its recipe `name`. Nobody else may
/// enter it. It is removed with this value; where this refit is killed, by the next one.
///
/// # Errors
/// [`IndexError`]: it cannot be made, or what the recipe needs is not installed.
pub fn directory(name: &str, server: &Server) -> Result<(Recipe, InstanceDirectory), IndexError> {
    let text = format!(
        "name = {}\nquestion.en = \"Which indexes do its queries need?\"\n{}\n\
         [load]\ncommand = \"true\"\noperations = 1\nunit = \"query\"\ntimeout = \"1h\"\n\n\
         [check]\ncommand = \"true\"\n",
        quoted(name),
        server.keys()
    );
    let file = |(path, text): &(&str, &str)| FolderFile {
        path: path.into(),
        bytes: text.as_bytes().to_vec(),
        executable: false,
    };
    let files = [("recipe.toml", &*text)];
    let recipe = Recipe::new(Folder {
        origin: None,
        files: files.iter().chain(server.scripts).map(file).collect(),
    })?;
    if let Some(missing) = recipe.missing("recipes new") {
        return Err(IndexError::Needs(missing));
    }
    let base = Path::new(DEFAULT_BASE);
    remove_abandoned_instances(base);
    let directory = InstanceDirectory::create(base, &recipe).map_err(at(base))?;
    Ok((recipe, directory))
}

/// A server with the copy. Ends with this value.
pub struct Instance {
    instance: refit_recipe::Instance,
    started: Option<(Service, Prepared)>,
    directory: InstanceDirectory,
}

impl Instance {
    /// Lays out the recipe's files; nothing runs. From here on Ctrl-C is an error of what runs, and the directory goes.
    ///
    /// # Errors
    /// Those of [`directory`].
    pub fn new(name: &str, server: &Server) -> Result<Instance, IndexError> {
        let (recipe, mut directory) = directory(name, server)?;
        count_interruptions();
        Ok(Instance {
            instance: directory.instance(&recipe, false)?,
            started: None,
            directory,
        })
    }

    /// Writes a file of the recipe.
    ///
    /// # Errors
    /// [`IndexError::File`].
    pub fn put(&self, name: &str, bytes: &[u8]) -> Result<(), IndexError> {
        write(&self.directory.recipe().join(name), bytes)
    }

    /// Runs a shell command as the recipe would; what it printed.
    ///
    /// # Errors
    /// [`IndexError::Instance`].
    pub fn run(&self, command: &str, what: &str) -> Result<String, IndexError> {
        let ran = self
            .instance
            .run_command(what, command, TIMEOUT, unless_asked);
        self.answered(ran.map(drop))?;
        let path = &self.instance.hook_output;
        let printed = fs::read(path).map_err(at(path))?;
        Ok(String::from_utf8_lossy(&printed).into_owned())
    }

    /// Makes the copy and starts the server.
    ///
    /// # Errors
    /// [`IndexError::Instance`].
    pub fn start(&mut self) -> Result<(), IndexError> {
        self.answered(self.instance.run_hook(Hook::Setup, unless_asked).map(drop))?;
        let instance = &self.instance;
        let launch = Launch {
            env: instance.env().to_vec(),
            ..Launch::default()
        };
        let words: Vec<_> = instance.program().into_iter().map(Into::into).collect();
        let mut prepared = prepare(&launch, &Options::default(), &words)?;
        let service = Service::start(instance, &mut prepared, instance.service_files()?)?;
        let (service, _) = self.started.insert((service, prepared));
        let ready = service.wait_ready(&self.instance, || {});
        self.answered(ready.map(drop))
    }

    /// A person who asked for the end reads of that, and not of what it ended.
    fn answered(&self, result: Result<(), InstanceError>) -> Result<(), IndexError> {
        match result {
            Err(_) if !unless_asked() => Err(InstanceError::Interrupted.into()),
            result => Ok(result?),
        }
    }
}

/// Whether nobody asked for the end.
fn unless_asked() -> bool {
    interruptions() == 0
}

impl Drop for Instance {
    fn drop(&mut self) {
        if let Some((mut service, prepared)) = self.started.take() {
            service.abort(&self.instance, || {});
            prepared.session.remove();
        }
    }
}
