//! Common code of Rust cells on tokio: `wattwire-web = { path = "_kit/web" }`. It is a separate
//! crate, so that other cells do not depend on tokio.

pub mod json;
pub mod tls;

use std::future::Future;

use serde_json::Value;
use tokio::runtime::Builder;
use wattwire_kit::{Buffer, Error, Kit, Message, Runtime};

/// Tokio's runtime, as its users have it for this role.
///
/// A client that makes one call at a time has the current-thread runtime: the thread that waits
/// for the reply also reads the socket. With worker threads, each call would change threads twice,
/// which doubles its CPU time. Concurrent calls and servers have the multi-thread runtime, which
/// `#[tokio::main]` starts by default; servers have settings.server_workers threads.
pub struct Tokio {
    runtime: tokio::runtime::Runtime,
    name: &'static str,
}

impl Tokio {
    pub fn new(kit: &Kit) -> Result<Self, Error> {
        let serves = ["server", "pong"].contains(&kit.string("role"));
        let one_at_a_time = !serves && !kit.overlaps();
        let (mut builder, name) = if one_at_a_time {
            (Builder::new_current_thread(), "current_thread")
        } else {
            (Builder::new_multi_thread(), "multi_thread")
        };
        let workers = kit.integer("settings.server_workers");
        if workers > 0 && serves {
            builder.worker_threads(workers as usize);
        }
        Ok(Tokio { runtime: builder.enable_all().build()?, name })
    }

    /// Returns the runtime's name for READY's `effective`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    pub fn workers(&self) -> usize {
        self.runtime.metrics().num_workers()
    }
}

impl Runtime for Tokio {
    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }
    fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(future);
    }
}

/// Returns the value of a setting "default", "on" or "off". None means the library's default.
pub fn switch(kit: &Kit, key: &str) -> Option<bool> {
    match kit.string(key) {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

/// Returns "on" or "off" for READY's `effective`.
pub fn on_or_off(on: bool) -> Value {
    (if on { "on" } else { "off" }).into()
}

/// Decodes a reply's body: bytes or characters, or a record as JSON if payloads are records.
pub fn buffer_of(kit: &Kit, body: Vec<u8>) -> Buffer {
    if kit.encoding() != "record" {
        return Buffer::Bytes(body);
    }
    json::read(&body).map_or(Buffer::Unreadable, Buffer::Record)
}

/// Encodes a message as a body.
pub fn body_of(message: Message) -> Vec<u8> {
    match message {
        Message::Record(record) => json::write(record),
        other => other.bytes().to_vec(),
    }
}
