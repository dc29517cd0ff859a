//! Why a setting was not in effect: what was seen of a run, and the words for it.

use std::fmt::{self, Display};

use refit_session::{UnreachedProgram, grouped};
use serde::{Deserialize, Serialize};

/// At most this many programs are named.
const MOST: usize = 3;

/// What was seen that a setting was not in effect on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WhyNot {
    /// The program made no sync call that refit could see.
    NoSyncCall,
    /// It made sync calls, and none could be suppressed.
    NoneSuppressed,
    /// It opened nothing with O_DIRECT.
    NoDirectOpen,
    /// It opened files with O_DIRECT, and the flag could be removed from none.
    DirectNotRemoved,
    /// Nothing matched the scope of the setting: `sync@exe:NAME`.
    NothingMatched(String),
    /// Durable calls reached a disk, and refit did not count them.
    Uncounted {
        /// How many, at least.
        calls: u64,
        /// The filesystems that the kernel watched.
        filesystems: Vec<String>,
        /// Who made them.
        callers: Vec<UncountedCaller>,
    },
    /// Another allocator than the wanted one served malloc in a program.
    OtherMalloc(MallocServer),
    /// Programs that were started and not reached.
    NotReached(Vec<UnreachedProgram>),
}

/// Who made durable calls that refit did not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UncountedCaller {
    /// Its executable; `None` if that is not known.
    pub executable: Option<String>,
    /// A kernel thread of its io_uring made them.
    pub io_uring_worker: bool,
}

/// Who served malloc in a program in place of the wanted allocator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MallocServer {
    /// The executable.
    pub executable: String,
    /// The object that served it: a library, or the executable itself.
    pub object: String,
    /// Whether the C library's own was wanted, which comes after every library that the program links.
    pub libc_wanted: bool,
    /// The C library, which comes first where `malloc=` names its path; `None` where it was not looked for or not found.
    pub libc: Option<String>,
}

/// Reasons in the order in which they are told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Reasons(pub Vec<WhyNot>);

impl Reasons {
    /// Whether all that is known is that no sync call was seen.
    #[must_use]
    pub fn is_no_sync_call(&self) -> bool {
        self.0 == [WhyNot::NoSyncCall]
    }
}

impl From<WhyNot> for Reasons {
    fn from(reason: WhyNot) -> Reasons {
        Reasons(vec![reason])
    }
}

/// `not reached: ldconfig (static); elsewhere no sync call was seen`.
impl Display for Reasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut servers = 0;
        let told = self.0.iter().enumerate().filter(|(_, reason)| {
            servers += usize::from(matches!(reason, WhyNot::OtherMalloc(_)));
            servers <= MOST || !matches!(reason, WhyNot::OtherMalloc(_))
        });
        let mut separator = "";
        for (at, reason) in told {
            f.write_str(separator)?;
            separator = "; ";
            // It is true of the processes that were reached.
            let is_of_the_rest = matches!(
                reason,
                WhyNot::NoSyncCall
                    | WhyNot::NoneSuppressed
                    | WhyNot::NoDirectOpen
                    | WhyNot::DirectNotRemoved
                    | WhyNot::NothingMatched(_)
            );
            if is_of_the_rest && matches!(self.0[..at], [.., WhyNot::NotReached(_)]) {
                f.write_str("elsewhere ")?;
            }
            write!(f, "{reason}")?;
        }
        Ok(())
    }
}

impl Display for WhyNot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WhyNot::NoSyncCall => f.write_str("no sync call was seen"),
            WhyNot::NoneSuppressed => {
                f.write_str("none of the program's sync calls could be suppressed")
            }
            WhyNot::NoDirectOpen => f.write_str("nothing was opened with O_DIRECT"),
            WhyNot::DirectNotRemoved => {
                f.write_str("O_DIRECT could be removed from none of the open files")
            }
            WhyNot::NothingMatched(scope) => write!(f, "nothing matched {scope}"),
            WhyNot::Uncounted {
                calls,
                filesystems,
                callers,
            } => write!(
                f,
                "{} durable call{} that refit did not count reached {} ({})",
                grouped(*calls),
                if *calls == 1 { "" } else { "s" },
                filesystems.join(", "),
                first(callers),
            ),
            WhyNot::OtherMalloc(server) => write!(f, "{server}"),
            WhyNot::NotReached(programs) => {
                let named = programs.iter().take(MOST);
                let named: Vec<String> = named
                    .map(|one| format!("{} ({})", file_name(&one.name), one.reason))
                    .collect();
                write!(f, "not reached: {}", named.join(", "))
            }
        }
    }
}

/// The first callers: `raw, sh, io_uring worker`.
fn first(callers: &[UncountedCaller]) -> String {
    let named = callers.iter().take(MOST).map(|one| {
        let name = one.executable.as_deref().map_or("?", file_name);
        let worker = if one.io_uring_worker {
            ", io_uring worker"
        } else {
            ""
        };
        format!("{name}{worker}")
    });
    named.collect::<Vec<_>>().join(", ")
}

impl Display for MallocServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = file_name(&self.executable);
        if self.object == self.executable {
            return write!(
                f,
                "{name} has a malloc of its own, which no library can replace"
            );
        }
        let object = file_name(&self.object);
        // musl's INSTALL.
        if object == "libc.so" || object.starts_with("ld-musl-") {
            return write!(f, "malloc is served by musl in {name}");
        }
        if !self.libc_wanted {
            return write!(f, "malloc is served by {object} in {name}");
        }
        write!(f, "malloc is served by {object}, which {name} links")?;
        match &self.libc {
            Some(libc) => write!(f, "; malloc={libc} puts the C library before it"),
            None => Ok(()),
        }
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn not_reached(name: &str) -> WhyNot {
        WhyNot::NotReached(vec![UnreachedProgram {
            name: name.to_owned(),
            reason: "static".to_owned(),
            count: 1,
        }])
    }

    fn server(executable: &str, object: &str) -> MallocServer {
        MallocServer {
            executable: executable.to_owned(),
            object: object.to_owned(),
            libc_wanted: false,
            libc: None,
        }
    }

    #[test]
    fn what_is_true_of_the_rest_is_told_so() {
        let reasons = |reasons: &[WhyNot]| Reasons(reasons.to_vec()).to_string();
        let uncounted = WhyNot::Uncounted {
            calls: 1_200,
            filesystems: vec!["ext4".to_owned(), "xfs".to_owned()],
            callers: vec![
                UncountedCaller {
                    executable: Some("/bin/raw".to_owned()),
                    io_uring_worker: true,
                },
                UncountedCaller {
                    executable: None,
                    io_uring_worker: false,
                },
            ],
        };
        let told = [
            (vec![WhyNot::NoSyncCall], "no sync call was seen"),
            (
                vec![not_reached("/sbin/ldconfig"), WhyNot::NoneSuppressed],
                "not reached: ldconfig (static); elsewhere none of the program's sync calls could be suppressed",
            ),
            (
                vec![not_reached("/sbin/ldconfig"), uncounted],
                "not reached: ldconfig (static); 1,200 durable calls that refit did not count reached ext4, xfs (raw, \
                 io_uring worker, ?)",
            ),
        ];
        for (typed, words) in told {
            assert_eq!(reasons(&typed), words);
        }
    }

    #[test]
    fn who_serves_malloc_is_told_with_what_would_help() {
        let mut redis = server("/bin/redis", "/lib/libjemalloc.so.2");
        let told = "malloc is served by libjemalloc.so.2";
        assert_eq!(redis.to_string(), format!("{told} in redis"));
        redis.libc_wanted = true;
        assert_eq!(redis.to_string(), format!("{told}, which redis links"));
        redis.libc = Some("/lib/libc.so.6".to_owned());
        let help = "; malloc=/lib/libc.so.6 puts the C library before it";
        assert_eq!(
            redis.to_string(),
            format!("{told}, which redis links{help}")
        );
        assert_eq!(
            server("/bin/own", "/bin/own").to_string(),
            "own has a malloc of its own, which no library can replace"
        );
        for musl in ["/lib/ld-musl-x86_64.so.1", "/usr/lib/musl/lib/libc.so"] {
            assert_eq!(
                server("/bin/small", musl).to_string(),
                "malloc is served by musl in small"
            );
        }
        let many: Vec<WhyNot> = ["a", "b", "c", "d"]
            .map(|name| WhyNot::OtherMalloc(server(name, "/lib/x.so")))
            .into();
        let many = Reasons([many, vec![not_reached("e")]].concat()).to_string();
        assert!(
            many.contains("in c; not reached: e") && !many.contains("in d"),
            "{many}"
        );
    }
}
