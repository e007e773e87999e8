//! The limit of the CPUs' wake-up latency lasts until its release, or until the agent ends.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{kill, scratch, wait_until, Agent};
use serde_json::{json, Value};

const DEVICE: &str = "/dev/cpu_dma_latency";

/// Starts an agent whose end removes the folder.
fn start_with(folder: &Path, device: &Path) -> Agent {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wattwire-agent"));
    command.env("WATTWIRE_CPU_LATENCY", device);
    Agent::start_by(command, folder, "none")
}

/// Returns whether a process has a file open.
fn holds(pid: i32, file: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    entries.flatten().any(|entry| std::fs::read_link(entry.path()).is_ok_and(|path| path == file))
}

/// Returns a file that replaces the device, and its content as a value in µs.
fn file_of(folder: &Path) -> PathBuf {
    let file = folder.canonicalize().unwrap().join("latency");
    std::fs::write(&file, []).unwrap();
    file
}

fn written(file: &Path) -> i32 {
    i32::from_ne_bytes(std::fs::read(file).unwrap().try_into().unwrap())
}

#[test]
fn the_agent_writes_32_bits_and_holds_the_file_until_the_release() {
    let (folder, _) = scratch();
    let file = file_of(&folder);
    let mut agent = start_with(&folder, &file);
    assert_eq!(agent.hello["cpu_latency"], json!({"path": file, "absent": null}));
    assert!(!holds(agent.pid(), &file), "hello holds nothing");
    let held = agent.request("hold_cpu_latency", json!({"us": 70}));
    assert_eq!((&held["us"], &held["path"]), (&json!(70), &json!(file)));
    assert_eq!(written(&file), 70);
    assert!(holds(agent.pid(), &file));
    agent.request("hold_cpu_latency", json!({"us": 0}));
    assert_eq!(written(&file), 0);
    assert_eq!(agent.request("release_cpu_latency", json!({}))["released"], json!(true));
    assert!(!holds(agent.pid(), &file));
    assert_eq!(agent.request("release_cpu_latency", json!({}))["released"], json!(false));
}

#[test]
fn no_other_process_holds_the_file_after_the_agent_is_killed() {
    let (folder, run) = scratch();
    let file = file_of(&folder);
    let mut agent = start_with(&folder, &file);
    agent.request("hold_cpu_latency", json!({"us": 0}));
    let node = agent.spawn("node", &run, &["sleep", "1000"]);
    let pids = ["pid", "guard_pid"].map(|key| node[key].as_i64().unwrap() as i32);
    assert!(pids.iter().all(|pid| !holds(*pid, &file)), "neither the node nor its guard holds it");
    kill(agent.pid());
    wait_until("the agent has closed the file", || !holds(agent.pid(), &file));
}

#[test]
fn a_missing_device_and_a_negative_latency_are_errors() {
    let (folder, _) = scratch();
    let mut agent = start_with(&folder, Path::new("/dev/no-such-device"));
    let reason = agent.hello["cpu_latency"]["absent"].as_str().unwrap().to_string();
    assert!(reason.contains("/dev/no-such-device"), "{reason}");
    agent.expect_error("hold_cpu_latency", json!({"us": 0}), "absent");
    let message = agent.expect_error("hold_cpu_latency", json!({"us": -1}), "usage");
    assert!(message.contains("allowed: 0 or more"), "{message}");
    agent.expect_error("hold_cpu_latency", json!({"us": 1u64 << 31}), "usage");
}

#[test]
fn the_kernel_applies_the_latency_of_the_agent() {
    let (folder, _) = scratch();
    let mut agent = Agent::start(&folder, "none");
    if agent.hello["cpu_latency"]["absent"] != Value::Null {
        eprintln!("no access to {DEVICE}: {}", agent.hello["cpu_latency"]["absent"]);
        return;
    }
    // The kernel returns the lowest latency of all requests. Another process may request 0.
    let in_force = || {
        let bytes = std::fs::read(DEVICE).unwrap();
        i32::from_ne_bytes(bytes[..4].try_into().unwrap())
    };
    let before = in_force();
    agent.request("hold_cpu_latency", json!({"us": 7}));
    assert_eq!(in_force(), before.min(7));
    agent.request("release_cpu_latency", json!({}));
    assert_eq!(in_force(), before);
    agent.request("hold_cpu_latency", json!({"us": 7}));
    kill(agent.pid());
    let _ = agent.child.wait();
    assert_eq!(in_force(), before);
}
