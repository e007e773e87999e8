//! Loopback node: AF_UNIX datagrams between processes of a host.

mod action;
mod link;
mod pipeline;
mod service;
mod topic;

use wattwire_kit::run;

fn main() {
    run(&[
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
    ])
}

/// Records are JSON on the wire, with several times their nominal size.
const RECORD_BYTES_MAX: Option<i64> = Some(57_344);
