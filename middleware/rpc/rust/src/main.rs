//! RPC node: JSON-RPC 2.0 with jsonrpsee. The middleware's README.md describes the wire format.

mod client;
mod server;

use wattwire_kit::{run, Guarantee};

const LOCKED: &str = include_str!("../Cargo.lock");
/// The server rejects calls beyond 100 open calls.
const GUARANTEE: Guarantee =
    Guarantee { delivery: "reliable", ordering: "none", overload: "drop_newest" };
/// Room for the longest payload, which exceeds jsonrpsee's default of 10 MB.
const BODY_BYTES_MAX: u32 = 1 << 26;

fn main() {
    run(&[
        ("client", client::call),
        ("server", server::serve_calls),
        ("ping", client::call),
        ("pong", server::serve_calls),
    ])
}
