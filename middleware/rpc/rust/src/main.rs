//! RPC node: JSON-RPC 2.0 with jsonrpsee. The middleware's README.md describes the wire format.

mod client;
mod server;

use wattwire_kit::{run, Cell, Guarantee, Type};

const LOCKED: &str = include_str!("../Cargo.lock");
/// The server rejects calls beyond 100 open calls.
const GUARANTEE: Guarantee =
    Guarantee { delivery: "reliable", ordering: "none", overload: "drop_newest" };
/// Room for the longest payload, which exceeds jsonrpsee's default of 10 MB.
const BODY_BYTES_MAX: u32 = 1 << 26;

fn main() {
    run(Cell {
        roles: &[
            ("client", client::call),
            ("server", server::serve_calls),
            ("ping", client::call),
            ("pong", server::serve_calls),
        ],
        settings: &[
            ("keep_alive", Type::String),
            ("tcp_nodelay", Type::String),
            ("tls", Type::Boolean),
            ("server_workers", Type::Integer),
        ],
        capabilities: &[
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
