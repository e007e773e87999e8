//! TCP node: length-prefixed frames on one connection per pair of nodes.

mod links;
mod service;
mod stream;
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
        ("source", topic::publish),
        ("relay", topic::relay),
        ("sink", topic::subscribe),
    ])
}
