//! A node without a middleware: its sender sends nothing, its receiver is handed messages.

use std::time::Duration;

use wattwire_kit::payload::{Payload, Shape};
use wattwire_kit::{now_ns, run, Error, Guarantee, Kit, Library, Ready, COMPILER};

fn main() {
    run(&[("publisher", publish), ("subscriber", subscribe)])
}

fn ready(kit: &Kit) {
    kit.ready(&Ready {
        matched: None,
        library: Library { name: "nothing".into(), version: "1".into(), build: COMPILER.into() },
        effective: Vec::new(),
        guarantee: Guarantee { delivery: "best_effort", ordering: "none", overload: "drop_newest" },
        discovery_ns: None,
    });
}

fn publish(kit: &'static Kit) -> Result<(), Error> {
    ready(kit);
    kit.send_all(|_| true)
}

fn subscribe(kit: &'static Kit) -> Result<(), Error> {
    let nodes = kit.integers("peers.nodes");
    let shape = Shape {
        bytes: kit.integer("payload.bytes") as usize,
        text: false,
        seed: kit.integer("payload.seed") as u64,
        literal: Vec::new(),
        full: false,
    };
    let message = Payload::new(shape, &nodes);
    let mut buffer = message.buffer();
    // Made before the window: making them is not the kit's cost of receiving.
    let mut messages = Vec::new();
    for counter in 0..kit.integer("settings.arrivals") as u64 {
        message.stamp(&mut buffer, (nodes[0] as u64) << 48 | counter, now_ns());
        messages.extend_from_slice(&buffer);
    }
    ready(kit);
    kit.wait_go();
    for data in messages.chunks_exact(buffer.len()) {
        kit.received(data);
    }
    kit.wait_stop(|timeout_ns| std::thread::sleep(Duration::from_nanos(timeout_ns as u64)));
    Ok(())
}
