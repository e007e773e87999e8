//! Tells the kit which compiler builds it: READY names it.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let compiler = std::env::var("RUSTC").expect("cargo sets RUSTC");
    let said = Command::new(compiler).arg("--version").output().expect("rustc tells its version");
    let version = String::from_utf8_lossy(&said.stdout);
    println!("cargo::rustc-env=WATTWIRE_COMPILER={}", version.trim());
}
