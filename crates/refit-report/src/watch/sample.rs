//! A series to draw in tests.

use refit_run::series::{
    Cost, Group, GroupKind, GroupSample, SERIES_SCHEMA, Sample, Series, SyncCaller, SyncDirectory,
    Syncs, Witnessing,
};
use refit_run::{Memory, Pressure};

const MIB: u64 = 1 << 20;

fn group(name: &str, pid: u32) -> Group {
    Group {
        name: name.to_owned(),
        kind: GroupKind::Tree,
        cgroup: None,
        pid: Some(pid),
    }
}

fn memory(mib: u64) -> Memory {
    Memory {
        rss_bytes: 2 * mib * MIB,
        pss_bytes: mib * MIB,
        pss_anonymous_bytes: mib * MIB / 10 * 8,
        pss_file_bytes: mib * MIB / 10,
        pss_shared_bytes: mib * MIB / 10,
        uss_bytes: mib * MIB / 10 * 9,
        swap_bytes: 0,
        page_tables_bytes: mib * MIB / 100,
    }
}

fn group_sample(group: usize, mib: u64, calls: u64) -> GroupSample {
    GroupSample {
        group,
        processes: if group == 0 { 4 } else { 2 },
        rss_bytes: 2 * mib * MIB,
        vsz_bytes: 100 * mib * MIB / 1000 * 1024,
        memory: Some(memory(mib)),
        memory_age_ms: 0,
        fresh: 1,
        unread: 0,
        unreadable: group as u64,
        charged_bytes: None,
        charged_peak_bytes: None,
        pressure: None,
        syncs: Some(Syncs {
            calls,
            untimed: 0,
            waited_us: calls * 500,
            busy_us: if calls > 0 { 80_000 } else { 0 },
            callers: vec![SyncCaller {
                executable: "cleanup".to_owned(),
                calls,
                waited_us: calls * 500,
            }],
            directories: vec![SyncDirectory {
                path: Some("/var/spool/postfix/incoming".to_owned()),
                calls,
            }],
        }),
    }
}

/// Two services, sampled each second: one grows by 36 MiB an hour, 10 KiB a second.
pub fn machine() -> Series {
    let samples = (0..60_u64).map(|second| {
        let mut one = group_sample(0, 100, 204);
        if let Some(memory) = &mut one.memory {
            memory.pss_bytes = memory.pss_bytes - 59 * 10240 + second * 10240;
        }
        Sample {
            at_ms: second * 1000,
            lasted_us: 1_000_000,
            pressure: Some(Pressure {
                cpu_us: 100_000,
                io_us: 250_000,
                memory_us: 0,
            }),
            lost: 0,
            groups: vec![one, group_sample(1, 120, 0)],
            heap: None,
        }
    });
    Series {
        schema: SERIES_SCHEMA,
        kind: "watch".to_owned(),
        refit: "0".to_owned(),
        started_unix: 1_795_207_941,
        target: Vec::new(),
        interval_ms: 1000,
        witness: Witnessing::Filesystems(vec!["ext4".to_owned()]),
        groups: vec![group("postfix", 40), group("app\u{1b}[2J", 50)],
        samples: samples.collect(),
        cost: Cost {
            cpu_us: 240_000,
            wall_us: 60_000_000,
        },
        largest_process_bytes: None,
        huge_pages: Vec::new(),
        heap_coverage: None,
    }
}
