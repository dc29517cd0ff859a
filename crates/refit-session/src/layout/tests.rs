//! The headers and their mirrors compared: every number, offset, size and text of
//! `sync/session.h`, `heap/heap_page.h` and `durability/file_event.h`, as a compiler has them, with those of this
//! crate.

use std::collections::BTreeMap;
use std::fs;
use std::mem::{offset_of, size_of};
use std::path::Path;
use std::process::Command;

use super::*;
use crate::file_events::OPERATIONS;
use crate::file_events::layout as file;
use crate::heap::layout as heap;
use crate::image::*;
use crate::page::*;
use crate::policy::*;
use crate::sys::lease::no_other_starts;

/// What there is, by name, as text: `REFIT_MAGIC`, `sizeof refit_rule`,
/// `refit_rule.exe at`, `refit_rule.exe size`, `call 0`.
type Table = BTreeMap<String, String>;

fn header() -> String {
    let headers = [
        "sync/session.h",
        "heap/heap_page.h",
        "durability/file_event.h",
    ]
    .map(|name| {
        let libraries = Path::new(env!("CARGO_MANIFEST_DIR")).join("../refit-preload");
        fs::read_to_string(libraries.join(name)).unwrap()
    });
    headers.concat()
}

fn size_of_field<T, F>(_: impl Fn(&T) -> &F) -> usize {
    size_of::<F>()
}

macro_rules! structs {
    ($table:ident: $($c:literal $rust:ty { $($field:ident)* })*) => {$(
        $table.insert(concat!("sizeof ", $c).to_owned(), size_of::<$rust>().to_string());
        $(
            let name = concat!($c, ".", stringify!($field));
            $table.insert(format!("{name} at"), offset_of!($rust, $field).to_string());
            let size = size_of_field(|it: &$rust| &it.$field);
            $table.insert(format!("{name} size"), size.to_string());
        )*
    )*};
}

/// `kind` and `when` as a policy writes them.
fn written(disk: Option<Disk>) -> (u64, u64) {
    let policy = Policy {
        disk,
        ..Policy::default()
    };
    let bytes = policy.disk_bytes();
    let field = |at| u64::from(get_u32(&bytes[..], at));
    (
        field(offset_of!(CDisk, kind)),
        field(offset_of!(CDisk, when)),
    )
}

fn mirror() -> Table {
    let mut table = Table::new();
    structs! { table:
        "refit_rule" CRule { knob on path pad exe }
        "refit_disk" CDisk { kind error when event_ring n seed latency_ns }
        "refit_queue" CQueue { device busy_ns from_ns }
        "refit_event" CEvent { turn at_ns took_ns pid call answer result executable path }
        "refit_flushes" CFlushes { number queues }
        "refit_event_ring" CEventRing { flushes events ring }
        "refit_policy" CPolicy {
            magic version flags rule_count library preloads session env seccomp_filters
            root_dev root_ino filter_length filter disk rules text
        }
        "refit_counter" CCounter { suppressed not_suppressed real waited_ns injected }
        "refit_slot" CSlot { pid pad32 pad calls }
        "refit_unreached" CUnreached { state reason count name }
        "refit_directory" CDirectory { state pad count waited_ns path }
        "refit_image" CImage {
            magic version pid flags unreached_lost forked departed execs path_unknown
            not_delayed matched rings_unseen executable malloc_object others other_object users slots unreached directories
        }
    }
    structs! { table:
        "refit_heap_class" heap::CClass { allocations frees requested usable }
        "refit_heap_slot" heap::CSlot {
            is_shared allocated pending_requested pending_usable pending_blocks
            sample_at sample_interval given classes
        }
        "refit_heap_small_sizes" heap::CSmallSizes { usable pad counts }
        "refit_heap_size" heap::CSize { requested usable blocks }
        "refit_heap_region" heap::CRegion { at size }
        "refit_heap_process" heap::CProcess {
            pid forked slots_used inherited unknown_frees untracked vanished small_slots live peak
            most_slack regions purge
        }
        "refit_heap_purge" heap::CPurge { asked purge pid pad state why }
        "refit_heap_ended" heap::CEnded { processes allocations frees allocated live peak }
        "refit_heap_sample" heap::CSample {
            is_complete requested usable interval instruction stack_pointer frame_pointer
            stack_bytes script_bytes script stack
        }
        "refit_heap_samples" heap::CSamples {
            interval lost is_listing objects_bytes owner pad objects sample
        }
        "refit_heap_header" heap::CHeader {
            magic flags lost forked ended executable malloc_object shadow
        }
    }
    structs! { table:
        "refit_file" file::CFile { device inode size changed_ns links mode }
        "refit_directory_id" file::CDirectoryId { device inode }
        "refit_file_event" file::CFileEvent {
            turn own_turn began image pid parent operation flags result descriptor open_flags pad
            file other directory old_directory at length instruction stack_pointer frame_pointer
            stack_bytes script_bytes path old_path script stack
        }
        "refit_file_events" file::CFileEvents {
            magic events read syncs lost images is_given_up acknowledges acknowledged pad ring
        }
    }
    let fails = |when| written(Some(Disk::Fail { error: 5, when })).1;
    let numbers = [
        ("REFIT_MAGIC", MAGIC),
        ("REFIT_VERSION", VERSION.into()),
        ("REFIT_COOKIE", COOKIE),
        ("REFIT_FILTER_IS_THERE", FILTER_IS_THERE.into()),
        ("REFIT_UNREACHED_FILTERED", FILTERED.into()),
        ("REFIT_CALL_COUNT", CALLS.len() as u64),
        ("REFIT_CALL_SLOTS", CALL_SLOTS as u64),
        ("REFIT_REASON_COUNT", REASONS.len() as u64),
        ("REFIT_OTHER_COUNT", OTHERS.len() as u64),
        ("REFIT_LATENCIES", LATENCIES as u64),
        ("REFIT_QUEUES", QUEUES as u64),
        ("REFIT_EVENTS", EVENTS as u64),
        ("REFIT_FILTER", FILTER as u64),
        ("REFIT_RULES", RULES as u64),
        ("REFIT_TEXT", TEXT as u64),
        ("REFIT_DIRECTORIES", DIRECTORIES as u64),
        ("REFIT_UNREACHED", UNREACHED as u64),
        ("REFIT_SLOTS", SLOTS as u64),
        ("REFIT_USERS", USERS as u64),
        ("REFIT_KNOB_SYNC", Knob::Sync as u64),
        ("REFIT_KNOB_ODIRECT", Knob::Odirect as u64),
        ("REFIT_KNOB_DISK", Knob::Disk as u64),
        ("REFIT_DISK_REAL", written(None).0),
        (
            "REFIT_DISK_LATENCY",
            written(Some(Disk::Latency(Box::new([0; LATENCIES])))).0,
        ),
        (
            "REFIT_DISK_FAIL",
            written(Some(Disk::Fail {
                error: 5,
                when: When::Always,
            }))
            .0,
        ),
        ("REFIT_WHEN_ALWAYS", fails(When::Always)),
        ("REFIT_WHEN_EVERY", fails(When::Every(1))),
        ("REFIT_WHEN_AFTER", fails(When::After(1))),
        ("REFIT_WHEN_CHANCE", fails(When::Chance(1))),
        ("REFIT_POLICY_COUNT", POLICY_COUNT.into()),
        ("REFIT_POLICY_FOLLOW", POLICY_FOLLOW.into()),
        ("REFIT_POLICY_NOTIFIED", POLICY_NOTIFIED.into()),
        ("REFIT_POLICY_TRACE", POLICY_TRACE.into()),
        ("REFIT_POLICY_DENY_IO_URING", POLICY_DENY_RINGS.into()),
        ("REFIT_POLICY_ANSWERED", POLICY_ANSWERED.into()),
        ("REFIT_POLICY_GUARDED", POLICY_GUARDED.into()),
        ("REFIT_IMAGE_SYNC_OFF", IMAGE_SYNC_OFF.into()),
        ("REFIT_IMAGE_ODIRECT_OFF", IMAGE_ODIRECT_OFF.into()),
        ("REFIT_IMAGE_DEEPBIND", IMAGE_DEEPBIND.into()),
        ("REFIT_IMAGE_OWN_SECCOMP", IMAGE_OWN_SECCOMP.into()),
        ("REFIT_IMAGE_SHARED_SLOT", IMAGE_SHARED_SLOT.into()),
        ("REFIT_IMAGE_NO_EVENT_RING", IMAGE_NO_EVENT_RING.into()),
        ("REFIT_IMAGE_UNFILTERED", IMAGE_UNFILTERED.into()),
        ("REFIT_IMAGE_FILTERED", IMAGE_FILTERED.into()),
        ("REFIT_HEAP_MAGIC", heap::MAGIC),
        ("REFIT_HEAP_PAGE", heap::PAGE as u64),
        ("REFIT_HEAP_LARGEST_PAGE", heap::LARGEST_PAGE as u64),
        ("REFIT_HEAP_CLASSES", heap::CLASSES as u64),
        ("REFIT_HEAP_SLOTS", heap::SLOTS as u64),
        ("REFIT_HEAP_PROCESSES", heap::PROCESSES as u64),
        ("REFIT_HEAP_REGIONS", heap::REGIONS as u64),
        ("REFIT_HEAP_FINE_CLASSES", heap::FINE_CLASSES as u64),
        ("REFIT_HEAP_FINE_BYTES", heap::FINE_BYTES),
        ("REFIT_HEAP_SAMPLES", heap::SAMPLES as u64),
        ("REFIT_HEAP_SCRIPT", heap::SCRIPT as u64),
        ("REFIT_HEAP_STACK", heap::STACK as u64),
        ("REFIT_HEAP_OBJECTS", heap::OBJECTS as u64),
        ("REFIT_HEAP_INTERVAL", heap::INTERVAL),
        ("REFIT_HEAP_LAG", heap::LAG),
        ("REFIT_HEAP_LAG_SHARE", heap::LAG_SHARE),
        ("REFIT_HEAP_LAG_MOST", heap::LAG_MOST),
        ("REFIT_HEAP_SMALL", heap::SMALL as u64),
        ("REFIT_HEAP_SMALL_UNKNOWN", heap::SMALL_UNKNOWN.into()),
        ("REFIT_HEAP_SMALL_FREE", heap::SMALL_FREE),
        ("REFIT_HEAP_OTHER_MALLOC", heap::OTHER_MALLOC.into()),
        ("REFIT_HEAP_NO_USABLE", heap::NO_USABLE.into()),
        ("REFIT_HEAP_LIMITED", heap::LIMITED.into()),
        ("REFIT_HEAP_OLD_KERNEL", heap::OLD_KERNEL.into()),
        ("REFIT_HEAP_NEW_UNSEEN", heap::NEW_UNSEEN.into()),
        ("REFIT_HEAP_NO_TABLE", heap::NO_TABLE.into()),
        ("REFIT_HEAP_GAVE_UP", heap::GAVE_UP.into()),
        ("REFIT_FILE_EVENTS_MAGIC", file::MAGIC),
        ("REFIT_FILE_EVENTS", file::EVENTS as u64),
        ("REFIT_FILE_EVENT_PATH", file::PATH as u64),
        ("REFIT_FILE_EVENT_SCRIPT", file::SCRIPT as u64),
        ("REFIT_FILE_EVENT_STACK", file::STACK as u64),
        ("REFIT_FILE_IN_STREAM", file::IN_STREAM.into()),
        ("REFIT_FILE_DURABLE", file::DURABLE.into()),
        ("REFIT_FILE_ASYNC", file::ASYNC.into()),
        ("REFIT_FILE_EXCHANGED", file::EXCHANGED.into()),
        ("REFIT_FILE_OPERATIONS", OPERATIONS.len() as u64),
        (
            "REFIT_ACKNOWLEDGES_DESCRIPTOR",
            file::ACKNOWLEDGES_DESCRIPTOR.into(),
        ),
        (
            "REFIT_ACKNOWLEDGES_SOCKET",
            file::ACKNOWLEDGES_SOCKET.into(),
        ),
        ("REFIT_PURGE_UNMADE", 0),
        ("REFIT_PURGE_READY", heap::PURGE_READY.into()),
        ("REFIT_PURGE_DONE", heap::PURGE_DONE.into()),
        ("REFIT_PURGE_REFUSED", heap::PURGE_REFUSED.into()),
        // This crate reads no entry but a valid one.
        ("REFIT_ENTRY_FREE", 0),
        ("REFIT_ENTRY_CLAIMED", 1),
        ("REFIT_ENTRY_VALID", ENTRY_VALID.into()),
    ];
    let numbers = numbers.map(|(name, number)| (name.to_owned(), number.to_string()));
    let answers = ANSWERS.iter().enumerate().map(|(at, answer)| {
        let name = format!("REFIT_ANSWER_{}", answer.to_uppercase());
        (name, at.to_string())
    });
    let operations = OPERATIONS.iter().enumerate().map(|(at, (name, _))| {
        let name = format!("REFIT_FILE_{name}");
        (name, at.to_string())
    });
    let texts = [("call", &CALLS[..]), ("reason", &REASONS[..])];
    let texts = texts.iter().flat_map(|(kind, texts)| {
        let texts = texts.iter().enumerate();
        texts.map(move |(at, text)| (format!("{kind} {at}"), (*text).to_owned()))
    });
    let others = OTHERS.iter().enumerate().map(|(at, (name, passes))| {
        (
            format!("other {at}"),
            format!("{name} {}", u8::from(*passes)),
        )
    });
    table.extend(
        numbers
            .into_iter()
            .chain(answers)
            .chain(operations)
            .chain(texts)
            .chain(others),
    );
    table
}

fn output(command: &mut Command) -> String {
    let _alone = no_other_starts();
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// The bodies of `enum NAME {…}` or `struct NAME {…}`, by name.
fn bodies<'a>(text: &'a str, keyword: &str) -> Vec<(&'a str, &'a str)> {
    let found = text.match_indices(keyword);
    found
        .filter_map(|(at, _)| {
            let (name, rest) = text[at + keyword.len()..].split_once('{')?;
            let (body, _) = rest.split_once('}')?;
            let name = name.trim();
            let is_one_word = !name.contains(|c: char| !c.is_alphanumeric() && c != '_');
            is_one_word.then_some((name, body))
        })
        .collect()
}

/// What a compiler finds in the header.
fn compiled(header: &str) -> Table {
    let dir = tempfile::tempdir().unwrap();
    let path = |name| dir.path().join(name);
    fs::write(path("session.h"), header).unwrap();
    let compiler = |words: &[&str], file: &Path| output(Command::new("cc").args(words).arg(file));

    let mut print = String::new();
    let mut number = |name: &str| {
        print += &format!("printf(\"%s=%llu\\n\", \"{name}\", (unsigned long long)({name}));\n");
    };
    for line in compiler(&["-E", "-dM"], &path("session.h")).lines() {
        let definition = line.strip_prefix("#define REFIT_");
        let definition = definition.and_then(|definition| definition.split_once(' '));
        // Neither the guard, which has no value, nor a list, which has a parameter.
        if let Some((name, value)) = definition
            && !value.is_empty()
            && !name.contains('(')
        {
            number(&format!("REFIT_{name}"));
        }
    }
    let text = compiler(&["-E", "-P"], &path("session.h"));
    for (name, body) in bodies(&text, "enum ") {
        let is_list = ["refit_call", "refit_reason", "refit_other"].contains(&name);
        let members = body
            .split(',')
            .filter_map(|member| member.split('=').next());
        let members = members.map(str::trim).filter(|member| !member.is_empty());
        for member in members.filter(|member| !is_list || member.ends_with("_COUNT")) {
            number(member);
        }
    }
    let structs = bodies(&text, "struct ");
    for (name, body) in structs
        .iter()
        .filter(|(name, _)| name.starts_with("refit_"))
    {
        print += &format!("printf(\"sizeof {name}=%zu\\n\", sizeof(struct {name}));\n");
        for declaration in body.split(';').filter(|field| !field.trim().is_empty()) {
            let declaration = declaration.split('[').next().unwrap();
            let field = declaration.rsplit([' ', '*']).next().unwrap();
            print += &format!(
                "printf(\"{name}.{field} at=%zu\\n{name}.{field} size=%zu\\n\",
                 offsetof(struct {name}, {field}), sizeof ((struct {name} *)0)->{field});\n"
            );
        }
    }
    let source = format!(
        "#include <stddef.h>\n#include <stdio.h>\n#include \"session.h\"\n\
         #define CALL(name, text) printf(\"call %d=%s\\n\", REFIT_CALL_##name, text);\n\
         #define REASON(name, text) printf(\"reason %d=%s\\n\", REFIT_REASON_##name, text);\n\
         #define OTHER(name, passes) printf(\"other %d=%s %d\\n\", REFIT_OTHER_##name, #name, passes);\n\
         int main(void) {{\n{print}REFIT_CALLS(CALL)\nREFIT_REASONS(REASON)\nREFIT_OTHERS(OTHER)\nreturn 0; }}\n"
    );
    fs::write(path("print.c"), source).unwrap();
    let exe = path("print");
    compiler(&["-o", exe.to_str().unwrap()], &path("print.c"));
    let lines = output(&mut Command::new(exe));
    let entries = lines.lines().filter_map(|line| line.split_once('='));
    entries
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// One line for each name that only one side has, or has with another value.
fn differences(header: &str) -> Vec<String> {
    let (c, rust) = (compiled(header), mirror());
    let names = c
        .keys()
        .chain(rust.keys().filter(|name| !c.contains_key(*name)));
    names
        .filter(|name| c.get(*name) != rust.get(*name))
        .map(|name| {
            format!(
                "{name}: {:?} in C, {:?} in Rust",
                c.get(name),
                rust.get(name)
            )
        })
        .collect()
}

#[test]
fn both_sides_agree_on_every_name_and_number() {
    assert_eq!(differences(&header()), Vec::<String>::new());
}

#[test]
fn every_kind_of_change_is_noticed() {
    let header = header();
    for (from, to, named) in [
        (
            "REFIT_POLICY_TRACE = 1u << 3",
            "REFIT_POLICY_TRACE = 1u << 7",
            "REFIT_POLICY_TRACE",
        ),
        (
            "REFIT_IMAGE_DEEPBIND = 1u << 2",
            "REFIT_IMAGE_DEEPBIND = 1u << 9",
            "REFIT_IMAGE_DEEPBIND",
        ),
        ("REFIT_COOKIE 0x74", "REFIT_COOKIE 0x75", "REFIT_COOKIE"),
        (
            "#define REFIT_SLOTS 12",
            "#define REFIT_SLOTS 13",
            "REFIT_SLOTS",
        ),
        (
            "#define REFIT_SLOTS 12",
            "#define REFIT_SLOTS 12\n#define REFIT_NEW 1",
            "REFIT_NEW",
        ),
        (
            "REFIT_WHEN_EVERY,",
            "REFIT_WHEN_NEVER, REFIT_WHEN_EVERY,",
            "REFIT_WHEN_NEVER",
        ),
        (
            "REFIT_ANSWER_REAL,",
            "REFIT_ANSWER_REAL = 5,",
            "REFIT_ANSWER_REAL",
        ),
        ("X(SYNCFS, \"syncfs\")", "X(SYNCFS, \"sync_fs\")", "call 3"),
        ("X(SETUID, \"setuid\")", "", "REFIT_REASON_COUNT"),
        ("X(openat2, 0)", "X(openat2, 1)", "other 6"),
        (
            "uint64_t suppressed;",
            "uint64_t suppressed, more;",
            "sizeof refit_counter",
        ),
        (
            "uint32_t pad32;",
            "uint32_t filler;",
            "refit_slot.filler at",
        ),
        (
            "char name[112];",
            "char name[120];",
            "refit_unreached.name size",
        ),
    ] {
        assert!(header.contains(from), "{from} is not in the header");
        let differences = differences(&header.replacen(from, to, 1));
        assert!(
            differences.iter().any(|line| line.starts_with(named)),
            "{from} -> {to}: {differences:#?}"
        );
    }
}
