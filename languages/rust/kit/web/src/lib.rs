//! What Rust cells on tokio share beside the kit. A crate of its own, so that other cells neither
//! lock nor build any of it: `wattwire-web = { path = "_kit/web" }`.

pub mod json;
pub mod tls;

use std::future::Future;

use serde_json::Value;
use wattwire_kit::{Buffer, Error, Kit, Message, Runtime};

/// Tokio's runtime of several threads: as many as settings.server_workers says for a role that
/// answers, else as tokio has by itself.
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

/// What a setting of "default", "on" and "off" asks for; None: as the library does by itself.
pub fn switch(kit: &Kit, key: &str) -> Option<bool> {
    match kit.string(key) {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

/// The word for a switch in READY's `effective`.
pub fn on_or_off(on: bool) -> Value {
    (if on { "on" } else { "off" }).into()
}

/// A reply's body: bytes or characters, or a record as JSON where payloads are records.
pub fn buffer_of(kit: &Kit, body: Vec<u8>) -> Buffer {
    if kit.encoding() != "record" {
        return Buffer::Bytes(body);
    }
    json::read(&body).map_or(Buffer::Unreadable, Buffer::Record)
}

/// A message as it stands in a body.
pub fn body_of(message: Message) -> Vec<u8> {
    match message {
        Message::Record(record) => json::write(record),
        other => other.bytes().to_vec(),
    }
}
