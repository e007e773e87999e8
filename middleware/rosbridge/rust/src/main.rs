//! A client of the bridge in Rust, on roslibrust.

mod messages;
mod pingpong;
mod reports;
mod session;
mod topic;

use messages::{ByteArray, Text};
use wattwire_kit::{run, Cell, Error, Kit, Type};

/// Selects the function for the message type of this run's payloads.
macro_rules! by_type {
    ($($role:ident)::+) => {
        |kit: &'static Kit| -> Result<(), Error> {
            match kit.encoding() {
                "text" => $($role)::+::<Text>(kit),
                _ => $($role)::+::<ByteArray>(kit),
            }
        }
    };
}

fn main() {
    run(Cell {
        roles: &[
            ("publisher", by_type!(topic::publish)),
            ("subscriber", by_type!(topic::subscribe)),
            ("ping", by_type!(pingpong::ping)),
            ("pong", by_type!(pingpong::pong)),
        ],
        settings: &[
            ("server", Type::String),
            ("encoding", Type::String),
            ("wait", Type::String),
            ("tcp_nodelay", Type::Boolean),
            ("queue_size", Type::Integer),
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
        ],
        payload_bytes_max: Some(8_388_608),
        record_bytes_max: None,
    })
}
