//! Loopback node: datagrams of AF_UNIX between processes of one host.

mod action;
mod link;
mod service;
mod topic;

use wattwire_kit::{run, Cell, Rule};

const STAGE: Rule = Rule::OneOf(&["none", "before_ready", "window", "drain"]);
const NUMBER: Rule = Rule::Integer(0, i32::MAX as i64);

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
        ],
        settings: &[
            ("fault_role", Rule::String),
            ("die_at", STAGE),
            ("hang_at", STAGE),
            ("drop_every", NUMBER),
            ("drop_counters", Rule::String),
            ("duplicate_every", NUMBER),
            ("delay_us", NUMBER),
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

/// Records are JSON on the wire, several times their nominal size.
const RECORD_BYTES_MAX: Option<i64> = Some(57_344);
