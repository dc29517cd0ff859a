//! What the instances of a recipe have of their own where root runs them, so that no other user of the machine reaches
//! them, and they nothing of the machine's: accounts, and a network.
//!
//! A server that root may not run changes to an account of its package, as `postgres`, to which the machine's own
//! databases belong. In a mount namespace the accounts of that name have other numbers, to which nothing belongs. In
//! a network namespace other users cannot connect to its ports.

use std::collections::BTreeSet;
use std::fs::{self, Permissions, read_to_string};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::process::{Command, Stdio};

use refit_run::namespaces::{Outside, own_mounts, own_network};
use rustix::mount::{MountFlags, mount, mount_bind};
use rustix::process::geteuid;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::file::RecipeFile;
use crate::user::find_user;

/// Numbers for accounts that exist while something runs: https://systemd.io/UIDS-GIDS.
const RANGE: std::ops::RangeInclusive<u32> = 61_184..=65_519;

const PASSWD: &str = "/etc/passwd";
const GROUP: &str = "/etc/group";

/// This process is in it until it is dropped, and so is all that it starts.
#[derive(Debug)]
pub struct Room {
    outside: Outside,
    accounts: Vec<Account>,
}

/// An account whose number is refit's own.
#[derive(Debug)]
struct Account {
    name: String,
    id: u32,
    /// An abstract socket of the network outside: refits of all users see it, and the kernel removes it whatever kills
    /// refit (unix(7)).
    _claim: UnixListener,
}

impl Room {
    /// Enters one, where this is root and the recipe needs it. `directory`: of root's alone.
    ///
    /// # Errors
    /// Why none can be made here. This process is where it was then.
    pub fn enter(recipe: &RecipeFile, directory: &Path) -> Result<Option<Room>, String> {
        let names: BTreeSet<&str> = accounts(recipe)
            .filter(|name| find_user(name).is_some())
            .collect();
        let network = has_own_network(recipe);
        if !geteuid().is_root() || (names.is_empty() && !network) {
            return Ok(None);
        }
        let outside = Outside::here().map_err(|error| error.to_string())?;
        let accounts = claim(&names).map_err(|error| format!("accounts: {error}"))?;
        let room = Room { outside, accounts };
        if !names.is_empty() {
            room.own_accounts(directory)?;
        }
        if network {
            own_network().map_err(|error| format!("no network namespace: {error}"))?;
        }
        Ok(Some(room))
    }

    fn own_accounts(&self, directory: &Path) -> Result<(), String> {
        let accounts = &self.accounts;
        own_mounts().map_err(|error| format!("no mount namespace: {error}"))?;
        let passwd = read_to_string(PASSWD).map_err(|error| format!("{PASSWD}: {error}"))?;
        let group = read_to_string(GROUP).map_err(|error| format!("{GROUP}: {error}"))?;
        let (passwd, group) = renumbered(&passwd, &group, accounts);
        for (path, text) in [(PASSWD, passwd), (GROUP, group)] {
            let copy = directory.join("accounts");
            // Everybody reads it, whatever the umask; it stays mounted without its name.
            fs::write(&copy, text)
                .and_then(|()| fs::set_permissions(&copy, Permissions::from_mode(0o644)))
                .map_err(|error| format!("cannot write {}: {error}", copy.display()))?;
            mount_bind(&copy, path)
                .map_err(Into::into)
                .and_then(|()| fs::remove_file(&copy))
                .map_err(|error: io::Error| format!("{path}: {error}"))?;
        }
        // nscd(8) would be asked first, and answers from the files outside.
        if Path::new("/run/nscd").exists() {
            mount("tmpfs", "/run/nscd", "tmpfs", MountFlags::NODEV, None)
                .map_err(|error| format!("/run/nscd: {error}"))?;
        }
        for Account { name, id, .. } in accounts {
            let answer = Command::new("id")
                .args(["-u", name])
                .stderr(Stdio::null())
                .output();
            let answer = answer.map_err(|error| format!("id: {error}"))?;
            let answer = String::from_utf8_lossy(&answer.stdout);
            if answer.trim() != id.to_string() {
                return Err(format!(
                    "the account {name} is known elsewhere than in {PASSWD}"
                ));
            }
        }
        Ok(())
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // What cannot be left is gone with this process.
        let _ = self.outside.return_to_network();
        let _ = self.outside.return_to_mounts();
    }
}

/// The accounts that the service's processes have.
fn accounts(recipe: &RecipeFile) -> impl Iterator<Item = &str> {
    let service = &recipe.service;
    service
        .user
        .iter()
        .chain(&service.accounts)
        .map(|name| &**name)
}

/// Whether nobody but the instance itself has to do with its ports.
pub fn has_own_network(recipe: &RecipeFile) -> bool {
    !recipe.service.ports.is_empty() && !recipe.needs.network
}

/// A number for each, which nobody uses.
fn claim(names: &BTreeSet<&str>) -> io::Result<Vec<Account>> {
    let mut used = in_use();
    let mut accounts = Vec::new();
    for name in names {
        let (id, claim) = free_number(&used)?;
        used.insert(id);
        accounts.push(Account {
            name: (*name).to_owned(),
            id,
            _claim: claim,
        });
    }
    Ok(accounts)
}

/// The numbers of all accounts, groups and processes of the machine.
fn in_use() -> BTreeSet<u32> {
    let number = |line: &str| line.split(':').nth(2)?.parse().ok();
    let files = [PASSWD, GROUP].map(|path| read_to_string(path).unwrap_or_default());
    let mut used: BTreeSet<u32> = files
        .iter()
        .flat_map(|text| text.lines().filter_map(number))
        .collect();
    // systemd's own of this kind: systemd.exec(5), DynamicUser=.
    let names = ["/proc", "/run/systemd/dynamic-uid"].map(fs::read_dir);
    for entry in names.into_iter().flatten().flatten().flatten() {
        used.extend(entry.metadata().map(|of| of.uid()));
        used.extend(
            entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse::<u32>().ok()),
        );
    }
    used
}

fn free_number(used: &BTreeSet<u32>) -> io::Result<(u32, UnixListener)> {
    let mut random = [0; 4];
    getrandom(&mut random, GetRandomFlags::empty())?;
    let count = RANGE.end() - RANGE.start() + 1;
    let first = u32::from_ne_bytes(random) % count;
    (0..count)
        .map(|n| RANGE.start() + (first + n) % count)
        .filter(|id| !used.contains(id))
        .find_map(|id| {
            let name = SocketAddr::from_abstract_name(format!("refit-account-{id}")).ok()?;
            Some((id, UnixListener::bind_addr(&name).ok()?))
        })
        .ok_or_else(|| io::Error::other("no number is free"))
}

/// The texts of both files with these accounts' numbers, their own group's too, and without their membership in others
/// (passwd(5), group(5)).
fn renumbered(passwd: &str, group: &str, accounts: &[Account]) -> (String, String) {
    let find = |name: &str| accounts.iter().find(|account| account.name == name);
    let mut groups = Vec::new();
    let mut lines = String::new();
    for line in passwd.lines() {
        let mut fields: Vec<&str> = line.split(':').collect();
        let id = find(fields[0]).map(|account| account.id.to_string());
        if let (Some(id), Some(_)) = (&id, fields.get(3)) {
            groups.push((fields[3].to_owned(), id.clone()));
            fields[2] = id;
            fields[3] = id;
        }
        lines += &fields.join(":");
        lines.push('\n');
    }
    let mut of_groups = String::new();
    for line in group.lines() {
        let mut fields: Vec<&str> = line.split(':').collect();
        let members = fields.get(3).map(|members| {
            let others = members.split(',').filter(|member| find(member).is_none());
            others.collect::<Vec<_>>().join(",")
        });
        if let Some(members) = &members {
            fields[3] = members;
            if let Some((_, id)) = groups.iter().find(|(gid, _)| gid == fields[2]) {
                fields[2] = id;
            }
        }
        of_groups += &fields.join(":");
        of_groups.push('\n');
    }
    (lines, of_groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(name: &str, id: u32) -> Account {
        Account {
            name: name.to_owned(),
            id,
            _claim: free_number(&BTreeSet::new()).unwrap().1,
        }
    }

    #[test]
    fn an_account_keeps_its_name_and_loses_what_belongs_to_it() {
        let passwd = "root:x:0:0:root:/root:/bin/bash\n\
                      postgres:x:107:115:PostgreSQL,,,:/var/lib/postgresql:/bin/bash\n+\n";
        let group = "root:x:0:\nssl-cert:x:114:postgres,www\npostgres:x:115:\n";
        let (passwd, group) = renumbered(passwd, group, &[account("postgres", 61_200)]);
        assert_eq!(
            passwd,
            "root:x:0:0:root:/root:/bin/bash\n\
             postgres:x:61200:61200:PostgreSQL,,,:/var/lib/postgresql:/bin/bash\n+\n"
        );
        assert_eq!(group, "root:x:0:\nssl-cert:x:114:www\npostgres:x:61200:\n");
    }

    #[test]
    fn two_accounts_have_numbers_that_nobody_has() {
        let names = BTreeSet::from(["nobody", "postfix"]);
        let (first, second) = (claim(&names).unwrap(), claim(&names).unwrap());
        let ids: BTreeSet<u32> = first
            .iter()
            .chain(&second)
            .map(|account| account.id)
            .collect();
        assert_eq!(ids.len(), 4);
        let used = in_use();
        assert!(
            used.contains(&0) && ids.is_disjoint(&used) && ids.iter().all(|id| RANGE.contains(id))
        );
    }
}
