//! What comparisons of recipes leave behind, as nobody should ever see it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::processes::status_line;
use crate::test_env::TestEnv;

/// Where the service of this name notes its starts, in the test's directory.
pub fn starts(name: &str) -> String {
    format!("starts.{name}")
}

/// Where instances lie: nobody else's do.
pub fn base(env: &TestEnv) -> String {
    let base = env.path("base");
    let _ = fs::create_dir(&base);
    base
}

/// What each start of a service noted: its pid, its directory, its directory on tmpfs.
pub fn started(env: &TestEnv, name: &str) -> Vec<(u32, PathBuf, PathBuf)> {
    let text = fs::read_to_string(env.path(&starts(name))).unwrap_or_default();
    text.lines()
        .map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let pid = words[0].parse().expect("a shell's pid");
            (pid, words[1].into(), words[2].into())
        })
        .collect()
}

/// Whatever happened: no process of an instance, no directory, no cgroup.
#[track_caller]
pub fn nothing_left(env: &TestEnv, name: &str) {
    let left = left_behind(env, name);
    assert!(left.is_empty(), "left behind: {}", left.join(", "));
}

/// What is left of a recipe's comparisons, as far as its services were started, and below the base.
pub fn left_behind(env: &TestEnv, name: &str) -> Vec<String> {
    let base = base(env);
    let mut left = processes_of(&base);
    let entries = fs::read_dir(&base).expect("the base is ours").flatten();
    left.extend(entries.map(|entry| entry.path().display().to_string()));
    for (pid, dir, tmpfs) in started(env, name) {
        // A number may be another one's by now; ours know the test's directory.
        if is_ours(pid, &base) {
            left.push(format!("process {pid}"));
        }
        left.extend(
            comparison_of(&tmpfs)
                .filter(|path| path.exists())
                .map(shown),
        );
        let cgroup = dir
            .parent()
            .and_then(Path::file_name)
            .and_then(|name| Some(own_cgroup()?.join(name)));
        left.extend(cgroup.filter(|path| path.exists()).map(shown));
    }
    left
}

fn shown(path: PathBuf) -> String {
    path.display().to_string()
}

/// The comparison's directory, from an instance's.
fn comparison_of(instance: &Path) -> impl Iterator<Item = PathBuf> {
    instance.parent().map(Path::to_owned).into_iter()
}

fn own_cgroup() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let mount = mounts.lines().find(|line| line.contains(" cgroup2 "))?;
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(Path::new(mount.split(' ').nth(1)?).join(own))
}

/// Living processes of instances below a base.
fn processes_of(base: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").expect("/proc is mounted").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| is_ours(*pid, base))
        .map(|pid| format!("process {pid} of an instance"))
        .collect()
}

fn is_ours(pid: u32, base: &str) -> bool {
    let lives = status_line(pid, "State").is_some_and(|state| !state.starts_with(['Z', 'X']));
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let mark = [b"REFIT_DIR=", base.as_bytes()].concat();
    lives
        && environment
            .split(|&byte| byte == 0)
            .any(|entry| entry.starts_with(&mark))
}

/// What could keep a session: its leader, and the processes that have its files.
pub fn users_of_session(session: &Path) -> String {
    let noted = fs::read_to_string(session.join("lock")).unwrap_or_default();
    let leader = noted.split_whitespace().next().unwrap_or_default();
    let status = fs::read_to_string(format!("/proc/{leader}/status"));
    let status = status.map(|text| text.lines().take(7).collect::<Vec<_>>().join(" "));
    let name = session.display().to_string();
    let processes = fs::read_dir("/proc").expect("it is mounted").flatten();
    let has = |dir: &Path| {
        let maps = fs::read_to_string(dir.join("maps")).unwrap_or_default();
        let open = fs::read_dir(dir.join("fd")).into_iter().flatten().flatten();
        let mut open = open.filter_map(|entry| fs::read_link(entry.path()).ok());
        maps.contains(&name) || open.any(|path| path.starts_with(session))
    };
    let users = processes.map(|entry| entry.path()).filter(|dir| has(dir));
    let users = users.map(|dir| {
        let command = fs::read_to_string(dir.join("cmdline")).unwrap_or_default();
        format!("{}: {}", dir.display(), command.replace('\0', " "))
    });
    let users: Vec<String> = users.collect();
    format!("noted {noted:?}, which is {status:?}; users {users:?}")
}
