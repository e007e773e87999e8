//! UDP node: one datagram per message, blocking sockets.

mod service;
mod socket;
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
            ("receive_buffer_bytes", BUFFER_BYTES),
            ("send_buffer_bytes", BUFFER_BYTES),
            ("bind_address", Rule::String),
            ("bind_port", Rule::Integer(0, 65_535)),
            ("endpoint_override", Rule::String),
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
        payload_bytes_max: Some(65_507),
        record_bytes_max: None,
    })
}
