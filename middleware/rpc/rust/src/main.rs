//! RPC node: JSON-RPC 2.0 by jsonrpsee; README.md of the middleware has the wire.

mod client;
mod server;

use wattwire_kit::{run, Cell, Guarantee, Type};

const LOCKED: &str = include_str!("../Cargo.lock");
/// The server turns away what comes beside a hundred open calls.
const GUARANTEE: Guarantee =
    Guarantee { delivery: "reliable", ordering: "none", overload: "drop_newest" };
/// A body of the longest payload; jsonrpsee takes 10 MB by itself.
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
