//! A client of the bridge in Rust, on roslibrust.

mod messages;
mod pingpong;
mod reports;
mod session;
mod topic;

use messages::{ByteArray, Text};
use wattwire_kit::{run, Error, Kit};

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
    run(&[
        ("publisher", by_type!(topic::publish)),
        ("subscriber", by_type!(topic::subscribe)),
        ("ping", by_type!(pingpong::ping)),
        ("pong", by_type!(pingpong::pong)),
    ])
}
