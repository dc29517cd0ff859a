//! Where a redis service has its configuration, and how it is asked.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use refit_servers::redis;

use super::client::Client;
use crate::systemd::Unit;
use crate::{Error, FileError, System};

/// The user that a file of root is read as.
const NOBODY: (u32, u32) = (65534, 65534);

/// A redis server.
pub struct Server {
    /// The program.
    pub program: String,
    /// Its configuration file.
    pub config: String,
    port: u16,
    socket: Option<String>,
    address: String,
    password: Option<String>,
}

impl Server {
    /// The server that a unit starts; `None` where it starts another program, or one without a
    /// configuration file.
    ///
    /// # Errors
    /// Where the unit or the file cannot be read.
    pub fn of(system: &System, unit: &Unit) -> Result<Option<Server>, Error> {
        let Some((program, words)) = unit.starts(&["redis-server"]) else {
            return Ok(None);
        };
        let Some(config) = words.into_iter().find(|word| word.starts_with('/')) else {
            return Ok(None);
        };
        let text = system.read(&config)?.unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let last = |name: &str| redis::last(&text, name);
        let bind = last("bind").unwrap_or_default();
        let address = bind.split_whitespace().find(|word| !word.starts_with('-'));
        let address = address.filter(|word| !["*", "0.0.0.0", "::"].contains(word));
        Ok(Some(Server {
            program,
            port: last("port")
                .and_then(|port| port.parse().ok())
                .unwrap_or(6379),
            socket: last("unixsocket"),
            address: address.unwrap_or("127.0.0.1").to_owned(),
            password: last("requirepass"),
            config,
        }))
    }

    /// The file of refit's that the configuration includes.
    pub fn own_file(&self) -> String {
        let stem = self.config.strip_suffix(".conf").unwrap_or(&self.config);
        format!("{stem}.refit.conf")
    }

    /// Who may read the configuration, by user and group.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn user(&self) -> Result<(u32, u32), Error> {
        let path = Path::new(&self.config);
        let meta = std::fs::metadata(path).map_err(FileError::at(path))?;
        Ok(match meta.uid() {
            0 => NOBODY,
            uid => (uid, meta.gid()),
        })
    }

    /// A connection to the running server.
    ///
    /// # Errors
    /// Why there is none.
    pub fn client(&self) -> Result<Client, String> {
        let connected = match &self.socket {
            Some(socket) => Client::unix(Path::new(socket)),
            None => Client::tcp(&self.address, self.port),
        };
        let at = self.socket.clone();
        let at = at.unwrap_or_else(|| format!("{}:{}", self.address, self.port));
        let mut client = connected.map_err(|error| format!("{at}: {error}"))?;
        if let Some(password) = self.password.as_deref().filter(|word| !word.is_empty()) {
            client.ask(&["AUTH", password])?;
        }
        Ok(client)
    }
}
