//! The ROS 2 cell in Rust on the crate ros2-client, as in its examples.

mod interfaces;
mod interrupts;
mod service;
mod session;
mod topic;

use wattwire_kit::{run, Cell, Type};

fn main() {
    run(Cell {
        roles: &[
            ("publisher", topic::publish),
            ("subscriber", topic::subscribe),
            ("server", service::serve),
            ("client", service::call),
            ("pong", service::serve),
            ("ping", service::call),
            ("source", topic::publish),
            ("relay", topic::relay),
            ("sink", topic::subscribe),
        ],
        settings: &[
            ("reliability", Type::String),
            ("history", Type::String),
            ("depth", Type::Integer),
            ("durability", Type::String),
            ("rmw", Type::String),
            ("rmw_profile", Type::String),
            ("transports", Type::String),
            ("domain", Type::Integer),
            ("discovery", Type::String),
            ("late_feedback", Type::String),
            ("executor", Type::String),
            ("array", Type::String),
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
        payload_bytes_max: Some(65_000),
        record_bytes_max: None,
    })
}
