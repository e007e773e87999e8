//! The Zenoh cell in Rust, on the crate zenoh as its documentation shows it.

mod configuration;
mod segments;
mod service;
mod session;
mod topic;

use wattwire_kit::{run, Cell, Rule};

fn main() {
    run(Cell {
        roles: &[
            ("publisher", topic::publish),
            ("subscriber", topic::subscribe),
            ("server", service::serve),
            ("client", service::call),
            ("pong", service::serve),
            ("ping", service::call),
        ],
        settings: &[
            ("transport", Rule::OneOf(&["tcp", "udp"])),
            ("shared_memory", Rule::Boolean),
            ("batching", Rule::Boolean),
            ("express", Rule::Boolean),
            ("congestion_control", Rule::OneOf(&["default", "drop", "block"])),
            ("reliability", Rule::OneOf(&["reliable", "best_effort"])),
            ("scouting", Rule::Boolean),
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
