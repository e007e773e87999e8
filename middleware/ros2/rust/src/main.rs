//! The ROS 2 cell in Rust, on the crate ros2-client as its examples show it.

mod interfaces;
mod interrupts;
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
            ("reliability", Rule::OneOf(&["reliable", "best_effort"])),
            ("history", Rule::OneOf(&["keep_last", "keep_all"])),
            ("depth", Rule::Integer(1, i32::MAX as i64)),
            ("durability", Rule::OneOf(&["volatile", "transient_local"])),
            ("rmw", Rule::String),
            ("rmw_profile", Rule::String),
            ("transports", Rule::OneOf(&["default", "udp"])),
            ("domain", Rule::Integer(0, 101)),
            ("discovery", Rule::OneOf(&["localhost", "subnet"])),
            ("late_feedback", Rule::OneOf(&["keep", "drop"])),
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
