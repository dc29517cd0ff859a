// build: -g -Copt-level=2
//! Leaks 32 MiB. A dynamic program, linked by what rustc links with: its segments may share pages of the file.

#[inline(never)]
fn leak(kept: &mut Vec<Vec<u8>>) {
    kept.push(vec![1; 4096]); // line of leak
}

fn main() {
    let mut kept = Vec::new();
    for _ in 0..8192 {
        leak(&mut kept); // line of main
    }
    std::mem::forget(kept);
}
