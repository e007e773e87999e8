//! Generates the messages and stubs of the middleware's interface.

use std::env;
use std::fs::canonicalize;
use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-env-changed=WATTWIRE_IDL");
    let folder = env::var("WATTWIRE_IDL").map(PathBuf::from).unwrap_or_else(|_| {
        // In a development folder this file is a link to the file in the cell's folder.
        let here = canonicalize("build.rs").expect("cargo runs this in the cell's folder");
        here.with_file_name("..").join("idl")
    });
    let interface = folder.join("wattwire.proto");
    println!("cargo::rerun-if-changed={}", interface.display());
    tonic_prost_build::configure()
        .bytes(".wattwire.BytesPayload")
        .compile_protos(&[interface], &[folder])
        .expect("protoc, of Debian's protobuf-compiler, compiles wattwire.proto");
}
