//! REST node: a server with axum and a client with reqwest. The middleware's README.md describes
//! the wire format.

mod client;
mod server;

use wattwire_kit::{run, Guarantee, Kit};

const LOCKED: &str = include_str!("../Cargo.lock");
const GUARANTEE: Guarantee =
    Guarantee { delivery: "reliable", ordering: "none", overload: "block" };

fn main() {
    run(&[
        ("client", client::call),
        ("server", server::serve),
        ("ping", client::call),
        ("pong", server::serve),
    ])
}

/// Returns the content type for the run's payloads.
fn content_type(kit: &Kit) -> &'static str {
    match kit.encoding() {
        "record" => "application/json",
        "bytes" if kit.string("payload.literal").is_empty() => "application/octet-stream",
        _ => "text/plain; charset=utf-8",
    }
}
