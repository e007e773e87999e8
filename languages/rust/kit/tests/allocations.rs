//! Tests that the kit allocates nothing per message (C-31): a window with twice as many messages
//! has the same number of allocations.

mod nodes;

use std::path::PathBuf;

use nodes::Node;
use serde_json::{json, Value};
use wattwire_kit::now_ns;

const MESSAGES: u64 = 400;
const SECOND_NS: i64 = 1_000_000_000;

/// The differences of a window's spec from the spec of the contract's vectors.
struct Case {
    role: &'static str,
    keys: &'static [(&'static str, &'static str)],
    planted: bool,
}

fn spec(case: &Case, messages: u64) -> Value {
    let role = case.role;
    let pattern = match role {
        "publisher" | "subscriber" => "topic",
        "client" | "server" => "service",
        "relay" => "pipeline",
        _ => "action",
    };
    let period_ns = 100_000;
    let mut spec = nodes::spec(&json!({
        "pattern": pattern, "role": role, "node": 1, "peers.nodes": [2], "record.capacity": 20_000,
        "period_ns": period_ns, "duration_ns": period_ns * messages, "overrun_ns": 60 * SECOND_NS,
        "timeout_ns": 10 * SECOND_NS, "quiet_ms": 1, "action.feedback": 2,
        "settings.arrivals": messages, "settings.planted": case.planted,
        "declared.integer_settings": ["arrivals"], "declared.boolean_settings": ["planted"],
    }));
    for &(key, value) in case.keys {
        spec[key] = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    }
    if spec["loop"] == "closed" {
        spec["count"] = messages.into();
        spec["period_ns"] = 0.into();
        spec["duration_ns"] = 0.into();
    }
    if spec["pacing"] == "native" {
        spec["period_ns"] = 1_000_000.into();
        spec["duration_ns"] = (1_000_000 * messages).into();
    }
    spec
}

/// Returns the number of allocations in a window with this number of messages.
fn allocations(name: &str, case: &Case, messages: u64) -> u64 {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{messages}"));
    let mut node = Node::start("allocations", &spec(case, messages), &folder);
    node.wait("READY");
    node.tell(&format!("GO {}", now_ns() + SECOND_NS / 5));
    if ["publisher", "client", "action_client"].contains(&case.role) {
        let sent = node.wait("SENT");
        let skipped = sent["skipped"].as_u64().unwrap();
        assert_eq!(sent["sent"].as_u64().unwrap() + skipped, messages, "{sent}");
    }
    node.tell("STOP");
    let done = node.wait("DONE");
    assert!(done["recorded"].as_u64().unwrap() >= messages / 10, "{done}");
    node.output().trim().parse().unwrap()
}

fn difference(name: &str, case: &Case) -> i64 {
    let [once, twice] = [MESSAGES, 2 * MESSAGES].map(|count| allocations(name, case, count));
    println!("{name}: {once} allocations for {MESSAGES} messages, {twice} for twice as many");
    twice as i64 - once as i64
}

fn allocates_nothing(
    name: &str,
    role: &'static str,
    keys: &'static [(&'static str, &'static str)],
) {
    assert_eq!(difference(name, &Case { role, keys, planted: false }), 0, "{name}");
    let planted = difference(name, &Case { role, keys, planted: true });
    // On a busy machine a timer skips slots.
    assert!(
        planted >= MESSAGES as i64 / 20,
        "{name}: only {planted} planted allocations were counted"
    );
}

#[test]
fn topics_allocate_nothing_per_message() {
    allocates_nothing("publisher", "publisher", &[]);
    allocates_nothing("native publisher", "publisher", &[("pacing", "native")]);
    allocates_nothing("subscriber", "subscriber", &[]);
}

#[test]
fn relays_allocate_nothing_per_message() {
    allocates_nothing("relay", "relay", &[("hop", "1")]);
}

#[test]
fn calls_allocate_nothing_per_message() {
    allocates_nothing("client", "client", &[]);
    allocates_nothing("closed client", "client", &[("loop", "closed")]);
    allocates_nothing("overlapping client", "client", &[("outstanding_max", "8")]);
    allocates_nothing("server", "server", &[]);
    allocates_nothing("server that acknowledges", "server", &[("reply", "ack")]);
}

#[test]
fn actions_allocate_nothing_per_message() {
    allocates_nothing("action client", "action_client", &[("outstanding_max", "4")]);
    allocates_nothing("action server", "action_server", &[]);
}
