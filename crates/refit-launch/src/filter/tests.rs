use super::*;

/// struct seccomp_data, and the machine that the kernel runs filters on, as far
/// as ours need it (kernel/bpf, Documentation/networking/filter.rst).
fn answer(filter: &[sock_filter], arch: u32, number: u32, args: [u64; 6]) -> u32 {
    let mut data = Vec::new();
    data.extend(number.to_le_bytes());
    data.extend(arch.to_le_bytes());
    data.extend(0_u64.to_le_bytes());
    args.iter().for_each(|arg| data.extend(arg.to_le_bytes()));
    let (mut accumulator, mut at) = (0_u32, 0);
    loop {
        let step = &filter[at];
        at += 1;
        let mut choose = |yes: bool| at += usize::from(if yes { step.jt } else { step.jf });
        match u32::from(step.code) {
            LOAD => {
                let from = step.k as usize;
                assert!(from.is_multiple_of(4), "the kernel refuses others");
                accumulator = u32::from_le_bytes(data[from..from + 4].try_into().unwrap());
            }
            EQUAL => choose(accumulator == step.k),
            HAS_BITS => choose(accumulator & step.k != 0),
            KEEP => accumulator &= step.k,
            RETURN => return step.k,
            code => panic!("no such instruction: {code:#x}"),
        }
    }
}

const ENOSYS: u32 = SUCCEED | 38;
const OTHER_ARCH: u32 = 0xc000_00f3; // riscv64
const FLAGS: u64 = 0o1_010_000; // O_DSYNC | something of O_SYNC's

fn filter(syncs: Syncs, rings: Rings, listened: bool) -> Vec<sock_filter> {
    let filter = Filter {
        syncs,
        rings,
        listened,
    };
    filter.instructions()
}

fn with(at: usize, value: u64) -> [u64; 6] {
    let mut args = [3, 0, 0, 0, 0, 0];
    args[at] = value;
    args
}

/// What is added to the numbers of another ABI; 0: there is none.
fn other_bit() -> u32 {
    OTHER_ABI.map_or(0, |other| other.bit)
}

/// Each kind of program, with what is added to its numbers.
fn families() -> [(&'static Calls, u32); 3] {
    [(&NATIVE, 0), (&NATIVE, other_bit()), (&COMPAT, 0)]
}

#[test]
fn numbers_are_the_kernels() {
    for (ours, theirs) in [
        (NATIVE.fsync, libc::SYS_fsync),
        (NATIVE.fdatasync, libc::SYS_fdatasync),
        (NATIVE.sync, libc::SYS_sync),
        (NATIVE.syncfs, libc::SYS_syncfs),
        (NATIVE.sync_file_range, libc::SYS_sync_file_range),
        (NATIVE.msync, libc::SYS_msync),
        (NATIVE.openat, libc::SYS_openat),
        (NATIVE.openat2, libc::SYS_openat2),
        (NATIVE.pwritev2, libc::SYS_pwritev2),
        (NATIVE.io_uring_setup, libc::SYS_io_uring_setup),
        (NATIVE.seccomp, libc::SYS_seccomp),
        (
            NATIVE.landlock_restrict_self,
            libc::SYS_landlock_restrict_self,
        ),
        (MMAP, libc::SYS_mmap),
        (crate::arch::IO_SUBMIT, libc::SYS_io_submit),
        (crate::arch::IO_URING_ENTER, libc::SYS_io_uring_enter),
    ] {
        assert_eq!(i64::from(ours), theirs);
    }
}

#[test]
fn syncs_are_answered_and_their_probes_are_not() {
    for (syncs, expected) in [(Syncs::Succeed, SUCCEED), (Syncs::Ask, ASK)] {
        for listened in [true, false] {
            let filter = filter(syncs, Rings::Leave, listened);
            for (calls, more) in families() {
                let action = |number: u32, args| answer(&filter, calls.audit, number | more, args);
                let (sync, range, msync) = (calls.sync, calls.sync_file_range, calls.msync);
                for file in [calls.fsync, calls.fdatasync, calls.syncfs] {
                    assert_eq!(action(file, with(0, 3)), expected);
                    assert_eq!(action(file, with(0, u64::MAX)), ALLOW, "fd -1");
                    assert_eq!(action(file, with(0, 0xffff_fffe)), ALLOW, "fd -2");
                }
                assert_eq!(action(sync, with(0, u64::MAX)), expected);
                let flags = calls.range_flags;
                assert_eq!(action(range, with(flags, 2)), expected);
                assert_eq!(action(range, with(flags, 0)), ALLOW, "a probe");
                assert_eq!(
                    action(range, with(flags, 1 << 32)),
                    ALLOW,
                    "flags have 32 bits"
                );
                assert_eq!(action(range, with(flags, 8)), ALLOW, "no such flag");
                assert_eq!(
                    action(range, {
                        let mut negative = with(flags, 2);
                        // The upper half is in a register of its own.
                        let (at, bit) = if calls.is_narrow { (1, 31) } else { (0, 63) };
                        negative[calls.range_offset + at] = 1 << bit;
                        negative
                    }),
                    ALLOW
                );
                let page = page_size() as u64;
                let mapping = |flags| [page, 1, flags, 0, 0, 0];
                assert_eq!(action(msync, mapping(4)), expected);
                assert_eq!(action(msync, mapping(6)), expected, "MS_INVALIDATE");
                for flags in [1, 5, 0x84] {
                    assert_eq!(action(msync, mapping(flags)), ALLOW, "flags {flags:x}");
                }
                assert_eq!(action(msync, [page + 1, 1, 4, 0, 0, 0]), ALLOW, "no page");
            }
        }
    }
}

#[test]
fn a_filter_without_a_listener_says_that_it_is_there() {
    const COMPAT_MMAP: u32 = 90; // of i386, and of ARM before its EABI
    for syncs in [Syncs::Succeed, Syncs::Leave] {
        let alone = filter(syncs, Rings::Leave, false);
        assert!(alone.len() <= 256, "the policy has room: {}", alone.len());
        let asked = |arch, number, offset| answer(&alone, arch, number, with(5, offset));
        let is_there = SUCCEED | FILTER_IS_THERE;
        assert_eq!(asked(NATIVE.audit, MMAP, COOKIE), is_there);
        for other in [
            0,
            4096,
            COOKIE & 0xffff_ffff,
            COOKIE >> 32 << 32,
            COOKIE + 1,
        ] {
            assert_eq!(asked(NATIVE.audit, MMAP, other), ALLOW);
        }
        assert_eq!(asked(COMPAT.audit, COMPAT_MMAP, COOKIE), ALLOW);
    }
    let listened = filter(Syncs::Ask, Rings::Leave, true);
    assert_eq!(
        answer(&listened, NATIVE.audit, MMAP, with(5, COOKIE)),
        ALLOW
    );
}

#[test]
fn an_instruction_has_the_bytes_of_the_kernels() {
    let instruction = jump(EQUAL, 0x0102_0304, 5, 6);
    let bytes = to_policy(instruction).to_ne_bytes();
    // struct sock_filter (linux/filter.h): code, jt, jf, k.
    assert_eq!(bytes[..2], (EQUAL as u16).to_ne_bytes());
    assert_eq!(bytes[2..4], [5, 6]);
    assert_eq!(bytes[4..], 0x0102_0304_u32.to_ne_bytes());
}

#[test]
fn the_cookie_is_let_through_and_its_halves_are_not() {
    let filter = filter(Syncs::Succeed, Rings::Leave, true);
    let action = |arch, number, value| answer(&filter, arch, number, with(5, value));
    for number in [NATIVE.fsync, NATIVE.fdatasync, NATIVE.sync, NATIVE.syncfs] {
        assert_eq!(action(NATIVE.audit, number, COOKIE), ALLOW);
        for other in [0, COOKIE & 0xffff_ffff, COOKIE >> 32 << 32, COOKIE + 1] {
            assert_eq!(action(NATIVE.audit, number, other), SUCCEED);
        }
    }
    // A 32-bit program's last register may hold anything.
    assert_eq!(action(COMPAT.audit, COMPAT.fsync, COOKIE), SUCCEED);
    assert_eq!(action(NATIVE.audit, NATIVE.openat2, COOKIE), ALLOW);
}

#[test]
fn synchronous_opens_are_asked_about_where_somebody_listens() {
    let listened = filter(Syncs::Succeed, Rings::Leave, true);
    let alone = filter(Syncs::Succeed, Rings::Leave, false);
    let path = u64::from(PATH_BIT);
    let opens = families().into_iter().flat_map(|(calls, more)| {
        let open = calls.open.map(|number| (number, 1));
        let all = open.into_iter().chain([(calls.openat, 2)]);
        all.map(move |(number, at)| (calls.audit, number | more, at))
    });
    for (arch, number, at) in opens {
        for flags in [0o10_000, 0o4_000_000, 0o4_010_000, FLAGS] {
            let args = with(at, flags);
            assert_eq!(answer(&listened, arch, number, args), ASK, "{flags:o}");
            assert_eq!(answer(&alone, arch, number, args), ALLOW);
            let args = with(at, flags | path);
            assert_eq!(answer(&listened, arch, number, args), ALLOW, "O_PATH");
        }
        assert_eq!(answer(&listened, arch, number, with(at, 0o102)), ALLOW);
    }
}

#[test]
fn synchronous_writes_are_asked_about_by_their_flags() {
    let listened = filter(Syncs::Ask, Rings::Leave, true);
    let other = OTHER_ABI.map(|abi| (NATIVE.audit, abi.bit | abi.pwritev2, abi.pwritev2_flags));
    let calls = [&NATIVE, &COMPAT].map(|calls| (calls.audit, calls.pwritev2, 5));
    for (arch, number, at) in calls.into_iter().chain(other) {
        for flags in [2, 4, 6, 7] {
            assert_eq!(answer(&listened, arch, number, with(at, flags)), ASK);
        }
        assert_eq!(answer(&listened, arch, number, with(at, 0x19)), ALLOW);
    }
}

#[test]
fn rings_are_denied_only_where_that_was_asked_for() {
    for (arch, number) in [&NATIVE, &COMPAT].map(|calls| (calls.audit, calls.io_uring_setup)) {
        let action = |rings, listened| {
            let filter = filter(Syncs::Succeed, rings, listened);
            answer(&filter, arch, number, with(0, 8))
        };
        assert_eq!(action(Rings::Deny, true), ENOSYS);
        assert_eq!(action(Rings::Deny, false), ENOSYS);
        assert_eq!(action(Rings::Leave, true), ASK);
        assert_eq!(action(Rings::Leave, false), ALLOW);
    }
}

#[test]
fn every_other_call_and_architecture_is_left_alone() {
    let filter = filter(Syncs::Succeed, Rings::Deny, true);
    let everything = [u64::MAX ^ (1 << 31); 6];
    let ours = |arch, number| call(arch, number).is_some();
    for number in 0..2000 {
        for more in [0, other_bit()] {
            for arch in [NATIVE.audit, COMPAT.audit] {
                // 32-bit programs have no second set of numbers.
                let number = number | more;
                if !ours(arch, number) {
                    assert_eq!(answer(&filter, arch, number, everything), ALLOW);
                }
            }
            assert_eq!(
                answer(&filter, OTHER_ARCH, number | more, everything),
                ALLOW
            );
        }
    }
    assert!(!ours(OTHER_ARCH, NATIVE.fsync));
}

#[test]
fn arguments_are_looked_at_for_our_calls_only() {
    // What the kernel can decide by architecture and number alone it puts into a
    // table: on the way to such a call there is no load of an argument.
    let filter = filter(Syncs::Ask, Rings::Leave, true);
    for number in (0..600).filter(|number| call(NATIVE.audit, *number).is_none()) {
        let mut at = 0;
        let mut accumulator = 0;
        while u32::from(filter[at].code) != RETURN {
            let step = &filter[at];
            at += 1;
            match u32::from(step.code) {
                LOAD if step.k == NUMBER => accumulator = number,
                LOAD if step.k == ARCH => accumulator = NATIVE.audit,
                KEEP => accumulator &= step.k,
                EQUAL => {
                    at += usize::from(if accumulator == step.k {
                        step.jt
                    } else {
                        step.jf
                    })
                }
                code => panic!("call {number} meets {code:#x}"),
            }
        }
        assert_eq!(filter[at].k, ALLOW);
    }
}

#[test]
fn the_kernel_takes_it_for_a_program() {
    for syncs in [Syncs::Succeed, Syncs::Ask] {
        let length = filter(syncs, Rings::Deny, true).len();
        assert!(length <= libc::BPF_MAXINSNS as usize, "{length}");
    }
}
