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
const OTHER_ARCH: u32 = 0xc000_00b7; // aarch64
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

/// Numbers of fsync, fdatasync, syncfs; sync; sync_file_range; msync.
type Family = ([u32; 3], u32, u32, u32);

const FAMILIES: [(u32, u32, Family); 3] = [
    (AUDIT_ARCH_X86_64, 0, ([74, 75, 306], 162, 277, 26)),
    (AUDIT_ARCH_X86_64, X32, ([74, 75, 306], 162, 277, 26)),
    (AUDIT_ARCH_I386, 0, ([118, 148, 344], 36, 314, 144)),
];

#[test]
fn syncs_are_answered_and_their_probes_are_not() {
    for (syncs, expected) in [(Syncs::Succeed, SUCCEED), (Syncs::Ask, ASK)] {
        for listened in [true, false] {
            let filter = filter(syncs, Rings::Leave, listened);
            for (arch, more, (files, sync, range, msync)) in FAMILIES {
                let action = |number: u32, args| answer(&filter, arch, number | more, args);
                for file in files {
                    assert_eq!(action(file, with(0, 3)), expected);
                    assert_eq!(action(file, with(0, u64::MAX)), ALLOW, "fd -1");
                    assert_eq!(action(file, with(0, 0xffff_fffe)), ALLOW, "fd -2");
                }
                assert_eq!(action(sync, with(0, u64::MAX)), expected);
                let flags = if arch == AUDIT_ARCH_I386 { 5 } else { 3 };
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
                        negative[2] = if flags == 5 { 1 << 31 } else { 1 << 63 };
                        negative
                    }),
                    ALLOW
                );
                let mapping = |flags| [0x1000, 1, flags, 0, 0, 0];
                assert_eq!(action(msync, mapping(4)), expected);
                assert_eq!(action(msync, mapping(6)), expected, "MS_INVALIDATE");
                for flags in [1, 5, 0x84] {
                    assert_eq!(action(msync, mapping(flags)), ALLOW, "flags {flags:x}");
                }
                assert_eq!(action(msync, [0x1001, 1, 4, 0, 0, 0]), ALLOW, "no page");
            }
        }
    }
}

#[test]
fn a_filter_without_a_listener_says_that_it_is_there() {
    const I386_MMAP: u32 = 90;
    for syncs in [Syncs::Succeed, Syncs::Leave] {
        let alone = filter(syncs, Rings::Leave, false);
        assert!(alone.len() <= 256, "the policy has room: {}", alone.len());
        let asked = |arch, number, offset| answer(&alone, arch, number, with(5, offset));
        let is_there = SUCCEED | FILTER_IS_THERE;
        assert_eq!(asked(AUDIT_ARCH_X86_64, MMAP, COOKIE), is_there);
        for other in [
            0,
            4096,
            COOKIE & 0xffff_ffff,
            COOKIE >> 32 << 32,
            COOKIE + 1,
        ] {
            assert_eq!(asked(AUDIT_ARCH_X86_64, MMAP, other), ALLOW);
        }
        assert_eq!(asked(AUDIT_ARCH_I386, I386_MMAP, COOKIE), ALLOW);
    }
    let listened = filter(Syncs::Ask, Rings::Leave, true);
    assert_eq!(
        answer(&listened, AUDIT_ARCH_X86_64, MMAP, with(5, COOKIE)),
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
    for number in [74, 75, 162, 306] {
        assert_eq!(action(AUDIT_ARCH_X86_64, number, COOKIE), ALLOW);
        for other in [0, COOKIE & 0xffff_ffff, COOKIE >> 32 << 32, COOKIE + 1] {
            assert_eq!(action(AUDIT_ARCH_X86_64, number, other), SUCCEED);
        }
    }
    // An i386 program's last register may hold anything.
    assert_eq!(action(AUDIT_ARCH_I386, 118, COOKIE), SUCCEED);
    assert_eq!(action(AUDIT_ARCH_X86_64, 437, COOKIE), ALLOW);
}

#[test]
fn synchronous_opens_are_asked_about_where_somebody_listens() {
    let listened = filter(Syncs::Succeed, Rings::Leave, true);
    let alone = filter(Syncs::Succeed, Rings::Leave, false);
    let path = u64::from(PATH_BIT);
    for (arch, number, at) in [
        (AUDIT_ARCH_X86_64, 2, 1),
        (AUDIT_ARCH_X86_64, 257, 2),
        (AUDIT_ARCH_X86_64, 257 | X32, 2),
        (AUDIT_ARCH_I386, 5, 1),
        (AUDIT_ARCH_I386, 295, 2),
    ] {
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
    for (arch, number, at) in [
        (AUDIT_ARCH_X86_64, 328, 5),
        (AUDIT_ARCH_X86_64, X32 | X32_PWRITEV2, 4),
        (AUDIT_ARCH_I386, 379, 5),
    ] {
        for flags in [2, 4, 6, 7] {
            assert_eq!(answer(&listened, arch, number, with(at, flags)), ASK);
        }
        assert_eq!(answer(&listened, arch, number, with(at, 0x19)), ALLOW);
    }
}

#[test]
fn rings_are_denied_only_where_that_was_asked_for() {
    for arch in [AUDIT_ARCH_X86_64, AUDIT_ARCH_I386] {
        let action = |rings, listened| {
            let filter = filter(Syncs::Succeed, rings, listened);
            answer(&filter, arch, 425, with(0, 8))
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
        for more in [0, X32] {
            for arch in [AUDIT_ARCH_X86_64, AUDIT_ARCH_I386] {
                // i386 has no second set of numbers.
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
    assert!(!ours(OTHER_ARCH, 74));
}

#[test]
fn arguments_are_looked_at_for_our_calls_only() {
    // What the kernel can decide by architecture and number alone it puts into a
    // table: on the way to such a call there is no load of an argument.
    let filter = filter(Syncs::Ask, Rings::Leave, true);
    for number in (0..600).filter(|number| call(AUDIT_ARCH_X86_64, *number).is_none()) {
        let mut at = 0;
        let mut accumulator = 0;
        while u32::from(filter[at].code) != RETURN {
            let step = &filter[at];
            at += 1;
            match u32::from(step.code) {
                LOAD if step.k == NUMBER => accumulator = number,
                LOAD if step.k == ARCH => accumulator = AUDIT_ARCH_X86_64,
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
