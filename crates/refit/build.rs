//! Builds the demo's two small programs, which `cmd/demo.rs` embeds. They are
//! dynamic, unlike refit: a preload has to reach them.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=demo");
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let name = env::var_os("CARGO_CFG_TARGET_ARCH").expect("cargo sets it");
    let architecture = Path::new("../refit-preload/arch").join(name);
    for name in ["mailqueue", "loglines"] {
        let compiler = cc::Build::new()
            .opt_level(2)
            .warnings(true)
            .cargo_metadata(false)
            .get_compiler();
        let status = Command::new(compiler.path())
            .args(compiler.args().iter().filter(|flag| *flag != "-static"))
            // With _POSIX_C_SOURCE in the sources: for later standards and _GNU_SOURCE, glibc 2.38 has other functions.
            .args(["-std=c11", "-s", "-Wl,--wrap=__libc_start_main", "-I"])
            .arg(&architecture)
            .arg("-o")
            .arg(out.join(name))
            .arg(Path::new("demo").join(name).with_extension("c"))
            .arg("demo/start.c")
            .status()
            .expect("run the C compiler");
        assert!(status.success(), "compiling {name}.c failed: {status}");
    }
}
