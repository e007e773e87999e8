//! gRPC node: a client and a server with tonic. The middleware's README.md describes the calls and
//! the statuses.

mod client;
mod record;
mod server;

use wattwire_kit::{run, Guarantee, Kit, Value};

/// Messages and stubs, which build.rs generates from the interface.
pub mod wire {
    tonic::include_proto!("wattwire");
}

const LOCKED: &str = include_str!("../Cargo.lock");
const GUARANTEE: Guarantee =
    Guarantee { delivery: "reliable", ordering: "none", overload: "block" };

fn main() {
    run(&[
        ("client", client::call),
        ("server", server::serve),
        ("ping", client::call),
        ("pong", server::serve),
    ])
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

/// Returns what client and server report in READY. tonic always sets TCP_NODELAY.
fn effective(tls: Value, runtime: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("tls", tls),
        ("tcp_nodelay", true.into()),
        ("transport", "tcp/ipv4".into()),
        ("runtime", runtime.into()),
    ]
}
