//! Makes the messages and stubs of the interface that the build names.

use std::env;
use std::path::PathBuf;

fn main() {
    let folder = PathBuf::from(env::var("WATTWIRE_IDL").expect("node.toml names the folder"));
    tonic_prost_build::configure()
        .build_server(false)
        .compile_protos(&[folder.join("wattwire.proto")], &[folder])
        .expect("protoc, of Debian's protobuf-compiler, compiles wattwire.proto");
}
