//! Passes the compiler's version to the kit, which reports it in READY.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let compiler = std::env::var("RUSTC").expect("cargo sets RUSTC");
    let output =
        Command::new(compiler).arg("--version").output().expect("rustc prints its version");
    let version = String::from_utf8_lossy(&output.stdout);
    println!("cargo::rustc-env=WATTWIRE_COMPILER={}", version.trim());
}
