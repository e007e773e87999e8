//! UDP node: blocking sockets, with one datagram per message.

mod service;
mod socket;
mod topic;

use wattwire_kit::{run, Cell, Type};

fn main() {
    run(Cell {
        roles: &[
            ("publisher", topic::publish),
            ("subscriber", topic::subscribe),
            ("client", service::client),
            ("server", service::server),
            ("ping", service::client),
            ("pong", service::server),
            ("source", topic::publish),
            ("relay", topic::relay),
            ("sink", topic::subscribe),
        ],
        settings: &[
            ("receive_buffer_bytes", Type::Integer),
            ("send_buffer_bytes", Type::Integer),
            ("bind_address", Type::String),
            ("bind_port", Type::Integer),
            ("endpoint_override", Type::String),
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
