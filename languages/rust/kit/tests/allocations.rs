//! Tests that the kit allocates nothing per message (C-31): a window with twice as many messages
//! has the same number of allocations.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{json, Map, Value};
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
    let vectors = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../contract/vectors");
    let text = std::fs::read(vectors.join("spec.json")).expect("the contract's vectors");
    let vectors: Value = serde_json::from_slice(&text).expect("JSON");
    let mut spec = vectors["valid"][0]["spec"].clone();
    let role = case.role;
    let pattern = match role {
        "publisher" | "subscriber" => "topic",
        "client" | "server" => "service",
        _ => "action",
    };
    let period_ns = 100_000;
    let changes = json!({
        "pattern": pattern, "role": role, "node": 1, "peers.nodes": [2], "record.capacity": 20_000,
        "period_ns": period_ns, "duration_ns": period_ns * messages, "overrun_ns": 60 * SECOND_NS,
        "timeout_ns": 10 * SECOND_NS, "quiet_ms": 1, "action.feedback": 2,
        "settings.arrivals": messages, "settings.planted": case.planted,
    });
    let keys = case.keys.iter().map(|&(key, value)| {
        (key.to_owned(), serde_json::from_str(value).unwrap_or_else(|_| value.into()))
    });
    let changes: Map<String, Value> = changes.as_object().cloned().into_iter().flatten().collect();
    for (key, value) in changes.into_iter().chain(keys) {
        spec[key] = value;
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
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("spec.json");
    std::fs::write(&path, spec(case, messages).to_string()).unwrap();
    // Cargo puts examples in a sibling of the tests' folder.
    let program = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().to_owned();
    let mut command = Command::new(program.join("examples/allocations"));
    command.arg("--spec").arg(&path).arg("--out").arg(&folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let (lines, lines_of_node) = pipe();
    let fd = lines_of_node.as_raw_fd();
    // SAFETY: dup2 is async-signal-safe.
    unsafe {
        command.pre_exec(move || (libc::dup2(fd, 3) == 3).then_some(()).ok_or_else(last_error))
    };
    let mut node = command.spawn().expect("cargo test builds the examples");
    drop(lines_of_node);
    let mut lines = BufReader::new(lines).lines().map(|line| line.unwrap());
    let mut wait = |keyword: &str| loop {
        let line = lines.next().unwrap_or_else(|| panic!("no {keyword} of {name}"));
        assert!(!line.starts_with("ERROR"), "{line}");
        if line.starts_with(keyword) {
            return line;
        }
    };
    wait("READY");
    let mut input = node.stdin.take().unwrap();
    writeln!(input, "GO {}", now_ns() + SECOND_NS / 5).unwrap();
    if ["publisher", "client", "action_client"].contains(&case.role) {
        let sent: Value = serde_json::from_str(&wait("SENT")[5..]).unwrap();
        let skipped = sent["skipped"].as_u64().unwrap();
        assert_eq!(sent["sent"].as_u64().unwrap() + skipped, messages, "{sent}");
    }
    writeln!(input, "STOP").unwrap();
    let done: Value = serde_json::from_str(&wait("DONE")[5..]).unwrap();
    assert!(done["recorded"].as_u64().unwrap() >= messages / 10, "{done}");
    let output = node.wait_with_output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}

fn last_error() -> std::io::Error {
    std::io::Error::last_os_error()
}

fn pipe() -> (File, File) {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for two descriptors, whose ownership passes to the files.
    unsafe {
        assert_eq!(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC), 0);
        (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1]))
    }
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
