//! The Zenoh cell in Rust on the crate zenoh, as in its documentation.

mod configuration;
mod segments;
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
            ("via", Type::String),
            ("transport", Type::String),
            ("shared_memory", Type::Boolean),
            ("batching", Type::Boolean),
            ("express", Type::Boolean),
            ("congestion_control", Type::String),
            ("reliability", Type::String),
            ("scouting", Type::Boolean),
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
