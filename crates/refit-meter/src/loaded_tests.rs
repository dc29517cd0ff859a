//! On real processes, and on memory that lies.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use super::*;
use crate::stat::FakeProc;

fn waiting(program: &str) -> Child {
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // It answers when it is there, and ends with our pipe.
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"x\n").unwrap();
    let mut answer = String::new();
    let mut output = BufReader::new(child.stdout.as_mut().unwrap());
    output.read_line(&mut answer).unwrap();
    child
}

#[test]
fn a_dynamic_programs_malloc_is_the_c_librarys() {
    let mut cat = waiting("cat");
    let objects = loaded_objects(Path::new("/proc"), cat.id()).unwrap();
    drop(cat.stdin.take());
    cat.wait().unwrap();
    let libc = objects
        .iter()
        .position(|object| object.exports_malloc)
        .unwrap();
    let name = objects[libc]
        .path
        .file_name()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    assert!(name.starts_with("libc"), "{objects:?}");
    let calls = objects.iter().flat_map(|object| &object.imports);
    let served: Vec<Bound> = calls.map(|import| import.bound).collect();
    assert!(served.len() > 3, "{objects:?}");
    let all = [Bound::To(libc), Bound::NotYet(Some(libc))];
    assert!(
        served.iter().all(|bound| all.contains(bound)),
        "{objects:?}"
    );
    assert!(
        served.contains(&Bound::To(libc)),
        "the C library has called its own by now"
    );
}

#[test]
fn what_is_gone_or_refused_is_named() {
    assert!(matches!(
        loaded_objects(Path::new("/proc"), u32::MAX),
        Err(NotLoaded::Refused(_))
    ));
    let proc = FakeProc::new();
    proc.write("3/auxv", "");
    proc.write("3/maps", "");
    assert!(matches!(
        loaded_objects(proc.path(), 3),
        Err(NotLoaded::NoMemory)
    ));
    proc.write("3/maps", "1000-2000 r--p 00000000 00:01 7 /a\n");
    assert!(matches!(
        loaded_objects(proc.path(), 3),
        Err(NotLoaded::Refused(_))
    ));
    proc.write("3/mem", vec![0; 0x2000]);
    assert!(matches!(
        loaded_objects(proc.path(), 3),
        Err(NotLoaded::OtherArchitecture)
    ));
}

/// A process of three pages whose memory the program itself can write: any bytes may be there.
#[test]
fn memory_that_lies_ends_in_no_list_and_never_in_a_panic() {
    let proc = FakeProc::new();
    proc.write("3/maps", "1000-4000 r--p 00000000 00:01 7 /a\n");
    let entry = |key: u64, value: u64| [key.to_ne_bytes(), value.to_ne_bytes()].concat();
    proc.write("3/auxv", [entry(3, 0x1040), entry(5, 4)].concat());
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut lists = 0;
    for _ in 0..300 {
        let mut memory = well_formed();
        for _ in 0..random(4) {
            let at = 0x1040 + random(0x2fa0) as usize / 8 * 8;
            let word = [
                0,
                1,
                0x1000,
                0x3000,
                0x3f80,
                u64::MAX,
                1 << 63,
                random(0x4000),
            ][random(8) as usize];
            memory[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        proc.write("3/mem", memory);
        lists += u32::from(loaded_objects(proc.path(), 3).is_ok());
    }
    assert!(
        lists > 20,
        "{lists} of 300 were read: the others' damage was seen"
    );
}

/// Headers at 0x1040, the dynamic section at 0x2000, the loader's list at 0x3000.
fn well_formed() -> Vec<u8> {
    let mut memory = vec![0; 0x4000];
    let mut put = |at: usize, words: &[u64]| {
        for (place, word) in words.iter().enumerate() {
            memory[at + place * 8..at + place * 8 + 8].copy_from_slice(&word.to_le_bytes());
        }
    };
    put(0x1000, &[u64::from_le_bytes(*b"\x7fELF\x02\x01\x01\0")]);
    put(0x1040, &[6, 0x40, 0x40]);
    put(0x1040 + 56, &[3, 0, 0]);
    put(0x1040 + 112, &[2, 0x1000, 0x1000]);
    // Strings at 0x2800, symbols at 0x2900 (the second is `malloc`), a relocation at 0x2a00, its slot at 0x2b00.
    put(
        0x2000,
        &[
            5, 0x2800, 10, 16, 6, 0x2900, 23, 0x2a00, 2, 24, 21, 0x3000, 4, 0x2c00, 0, 0,
        ],
    );
    put(0x2800, &[u64::from_le_bytes(*b"\0malloc\0")]);
    put(0x2900 + 24, &[1 | (0x0001_0012 << 32), 0x1500]);
    put(
        0x2a00,
        &[
            0x1b00,
            (1 << 32) | u64::from(crate::arch::ADDRESS_RELOCATIONS[0]),
        ],
    );
    put(0x2b00, &[0x1500]);
    // One bucket that leads to symbol 1.
    put(0x2c00, &[1 | (2 << 32), 1]);
    put(0x3000, &[1, 0x3100, 0, 0, 0]);
    put(0x3100, &[0x1000, 0, 0x2000, 0]);
    memory
}

#[test]
fn a_slot_that_leads_to_the_object_itself_is_served_by_it() {
    let proc = FakeProc::new();
    proc.write("3/maps", "1000-4000 r--p 00000000 00:01 7 /a\n");
    let entry = |key: u64, value: u64| [key.to_ne_bytes(), value.to_ne_bytes()].concat();
    proc.write("3/auxv", [entry(3, 0x1040), entry(5, 3)].concat());
    proc.write("3/mem", well_formed());
    let objects = loaded_objects(proc.path(), 3).unwrap();
    let malloc = Import {
        function: "malloc",
        bound: Bound::To(0),
    };
    assert_eq!(objects.len(), 1);
    assert!(objects[0].exports_malloc);
    assert_eq!(objects[0].imports, [malloc]);
    // Where it defines no malloc of its own, it was not called yet.
    let mut memory = well_formed();
    memory[0x2c04] = 0;
    memory[0x2c08] = 0;
    proc.write("3/mem", memory);
    let objects = loaded_objects(proc.path(), 3).unwrap();
    assert_eq!(objects[0].imports[0].bound, Bound::NotYet(None));
}
