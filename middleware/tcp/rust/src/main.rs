//! TCP node: length-prefixed frames, one connection for each pair of nodes.

mod links;
mod service;
mod stream;
mod topic;

use wattwire_kit::{run, Cell, Rule};

const BUFFER_BYTES: Rule = Rule::Integer(0, (1 << 30) - 1);

fn main() {
    run(Cell {
        roles: &[
            ("publisher", topic::publish),
            ("subscriber", topic::subscribe),
            ("client", service::client),
            ("server", service::server),
            ("ping", service::client),
            ("pong", service::server),
        ],
        settings: &[
            ("tcp_nodelay", Rule::Boolean),
            ("tcp_quickack", Rule::Boolean),
            ("writes", Rule::Integer(1, 2)),
            ("receive_buffer_bytes", BUFFER_BYTES),
            ("send_buffer_bytes", BUFFER_BYTES),
            ("bind_address", Rule::String),
        ],
        capabilities: &[
            "encoding.bytes",
            "encoding.text",
            "pacing.kit",
            "loop.open",
            "loop.closed",
            "reply.echo",
            "reply.ack",
            "reply.literal",
            "literal",
            "async_client",
        ],
        payload_bytes_max: None,
        record_bytes_max: None,
    })
}
