//! Loopback node: AF_UNIX datagrams between processes of a host.

mod action;
mod link;
mod pipeline;
mod service;
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
            ("action_client", action::client),
            ("action_server", action::server),
            ("source", topic::publish),
            ("relay", pipeline::relay),
            ("sink", topic::subscribe),
        ],
        settings: &[
            ("fault_role", Type::String),
            ("die_at", Type::String),
            ("hang_at", Type::String),
            ("drop_every", Type::Integer),
            ("drop_counters", Type::String),
            ("duplicate_every", Type::Integer),
            ("delay_us", Type::Integer),
        ],
        capabilities: &[
            "encoding.bytes",
            "encoding.text",
            "encoding.record",
            "pacing.kit",
            "pacing.native",
            "loop.open",
            "loop.closed",
            "reply.echo",
            "reply.ack",
            "reply.literal",
            "literal",
            "async_client",
        ],
        payload_bytes_max: Some(196_608),
        record_bytes_max: RECORD_BYTES_MAX,
    })
}

/// Records are JSON on the wire, with several times their nominal size.
const RECORD_BYTES_MAX: Option<i64> = Some(57_344);
