//! The ROS 2 cell in Rust on the crate ros2-client, as in its examples.

mod interfaces;
mod interrupts;
mod service;
mod session;
mod topic;

use wattwire_kit::run;

fn main() {
    run(&[
        ("publisher", topic::publish),
        ("subscriber", topic::subscribe),
        ("server", service::serve),
        ("client", service::call),
        ("pong", service::serve),
        ("ping", service::call),
        ("source", topic::publish),
        ("relay", topic::relay),
        ("sink", topic::subscribe),
    ])
}
