//! The node contract for Rust cells. languages/rust/README.md describes all functions and their
//! order.
//!
//! A cell opens, sends, receives and closes. This crate handles the clock, the specification, the
//! schedule, payloads, records, lines, standard input and verification.

mod actions;
mod blocking;
mod clock;
pub mod constants;
mod dialogue;
mod error;
mod event_loop;
mod futures;
mod json_type;
mod kit;
mod message;
mod native_timer;
mod node;
pub mod payload;
mod pipeline;
mod receiving;
pub mod record;
pub mod recorder;
mod schedule;
mod scheduler;
pub mod spec;

pub use actions::Goal;
pub use blocking::Call;
pub use clock::{now_ns, readable, sleep_until_ns};
pub use error::{causes, failed, Error, SendFailed};
pub use event_loop::Events;
pub use futures::{Futures, Runtime};
pub use kit::{Guarantee, Kit, Library, Ready};
pub use message::{Answer, Buffer, Message};
pub use node::{run, Role};
pub use payload::COUNTER_MASK;
pub use pipeline::Relay;
pub use receiving::Request;
pub use record::{Record, Sample};
pub use schedule::Slot;
pub use serde_json::Value;

/// The version of the compiler that built this program, for READY's `library.build`.
pub const COMPILER: &str = env!("WATTWIRE_COMPILER");

/// Returns the version of a crate from the text of a Cargo.lock, for READY's `library.version`.
pub fn locked_version<'a>(lock: &'a str, name: &str) -> &'a str {
    let entry = format!("name = \"{name}\"\nversion = \"");
    let version = lock.split_once(&entry).and_then(|(_, rest)| rest.split_once('"'));
    version.map_or("unknown", |(version, _)| version)
}
