//! gRPC node: a client and a server with tonic. The middleware's README.md describes the calls and
//! the statuses.

mod client;
mod record;
mod server;

use wattwire_kit::{run, Cell, Guarantee, Kit, Map, Type, Value};

/// Messages and stubs, which build.rs generates from the interface.
pub mod wire {
    tonic::include_proto!("wattwire");
}

const LOCKED: &str = include_str!("../Cargo.lock");
const GUARANTEE: Guarantee =
    Guarantee { delivery: "reliable", ordering: "none", overload: "block" };

fn main() {
    run(Cell {
        roles: &[
            ("client", client::call),
            ("server", server::serve),
            ("ping", client::call),
            ("pong", server::serve),
        ],
        settings: &[
            ("keep_alive", Type::String),
            ("tls", Type::Boolean),
            ("server_workers", Type::Integer),
        ],
        capabilities: &[
            "encoding.bytes",
            "encoding.text",
            "encoding.record",
            "pacing.kit",
            "loop.open",
            "loop.closed",
            "reply.echo",
            "reply.ack",
            "reply.literal",
            "literal",
            "async_client",
        ],
        payload_bytes_max: Some(4_000_000),
        record_bytes_max: Some(3_000_000),
    })
}

/// The service's method for this run's payloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    Bytes,
    Text,
    Record,
}

impl Method {
    fn of(kit: &Kit) -> Self {
        match kit.encoding() {
            "record" => Method::Record,
            "bytes" if kit.string("payload.literal").is_empty() => Method::Bytes,
            _ => Method::Text,
        }
    }
}

/// Returns the effective settings of client and server. tonic always sets TCP_NODELAY.
fn effective(kit: &Kit, tls: Value) -> Map<String, Value> {
    let mut effective = kit.spec().settings();
    effective.insert("tls".into(), tls);
    effective.insert("tcp_nodelay".into(), true.into());
    effective.insert("transport".into(), "tcp/ipv4".into());
    effective
}
