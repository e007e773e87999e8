//! TCP node: length-prefixed frames on one connection per pair of nodes.

mod links;
mod service;
mod stream;
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
            ("tcp_nodelay", Type::Boolean),
            ("tcp_quickack", Type::String),
            ("connections", Type::Integer),
            ("writes", Type::Integer),
            ("receive_buffer_bytes", Type::Integer),
            ("send_buffer_bytes", Type::Integer),
            ("bind_address", Type::String),
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
