//! Common code of Rust cells on tokio: `wattwire-web = { path = "_kit/web" }`. It is a separate
//! crate, so that other cells do not depend on tokio.

pub mod json;
pub mod tls;

use std::future::Future;

use serde_json::Value;
use wattwire_kit::{Buffer, Error, Kit, Message, Runtime};

/// Tokio's multi-thread runtime. Servers have settings.server_workers threads, and other roles have
/// tokio's default number.
pub struct Tokio(tokio::runtime::Runtime);

impl Tokio {
    pub fn new(kit: &Kit) -> Result<Self, Error> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let workers = kit.integer("settings.server_workers");
        if workers > 0 && ["server", "pong"].contains(&kit.string("role")) {
            builder.worker_threads(workers as usize);
        }
        Ok(Tokio(builder.enable_all().build()?))
    }

    pub fn workers(&self) -> usize {
        self.0.metrics().num_workers()
    }
}

impl Runtime for Tokio {
    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.0.block_on(future)
    }
    fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn(future);
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
