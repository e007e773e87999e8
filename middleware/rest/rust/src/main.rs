//! REST node: a server with axum and a client with reqwest. The middleware's README.md describes
//! the wire format.

mod client;
mod server;

use wattwire_kit::{run, Cell, Guarantee, Kit, Type};

const LOCKED: &str = include_str!("../Cargo.lock");
const GUARANTEE: Guarantee =
    Guarantee { delivery: "reliable", ordering: "none", overload: "block" };

fn main() {
    run(Cell {
        roles: &[
            ("client", client::call),
            ("server", server::serve),
            ("ping", client::call),
            ("pong", server::serve),
        ],
        settings: &[
            ("http_version", Type::String),
            ("keep_alive", Type::String),
            ("tcp_nodelay", Type::String),
            ("tls", Type::Boolean),
            ("server_workers", Type::Integer),
        ],
        capabilities: &[
            "encoding.bytes",
            "encoding.text",
            "encoding.record",
            "pacing.kit",
            "loop.open",
            "loop.closed",
            "reply.echo",
            "reply.ack",
            "reply.literal",
            "literal",
            "async_client",
        ],
        payload_bytes_max: Some(16_777_216),
        record_bytes_max: Some(4_194_304),
    })
}

/// Returns the content type for the run's payloads.
fn content_type(kit: &Kit) -> &'static str {
    match kit.encoding() {
        "record" => "application/json",
        "bytes" if kit.string("payload.literal").is_empty() => "application/octet-stream",
        _ => "text/plain; charset=utf-8",
    }
}
