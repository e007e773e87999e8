//! What an agent that died with its guards leaves in the cgroup tree.

mod common;

use std::path::PathBuf;
use std::process::Command;

use common::{kill, scratch, until, Agent};
use serde_json::json;

/// The node ends with its guard; what it has started stays behind, in the cgroup.
const STAYS: &str = "(trap '' HUP; exec env -i sleep 1000) & echo STARTED; exec sleep 1000";

#[test]
fn the_empty_cgroup_of_a_killed_agent_goes_when_the_next_one_starts() {
    for rung in ["v1", "v2"] {
        let (folder, _) = scratch();
        let mut killed = Agent::start(&folder, rung);
        let Some(path) = killed.hello["cgroup"]["path"].as_str().map(PathBuf::from) else {
            continue;
        };
        killed.kill();
        assert!(path.exists());
        let mut next = Agent::start(&folder, rung);
        assert!(!path.exists());
        assert_eq!(next.end(), Some(0));
    }
}

#[test]
fn cgroups_of_a_dead_agent_are_removed_by_the_next_one_with_what_is_in_them() {
    for rung in ["v1", "v2"] {
        let (folder, run) = scratch();
        let mut agent = Agent::start(&folder, rung);
        if agent.hello["cgroup"]["rung"] != json!(rung) {
            eprintln!("rung {rung} is not to be had here");
            continue;
        }
        let spawned = agent.spawn("node", &run, &["sh", "-c", STAYS]);
        agent.line("node");
        let cgroup = std::path::PathBuf::from(spawned["cgroup"].as_str().unwrap());
        let members = || -> Vec<i32> {
            let text = std::fs::read_to_string(cgroup.join("cgroup.procs")).unwrap_or_default();
            text.lines().map(|line| line.parse().unwrap()).collect()
        };
        until("all have come", || members().len() == 2);
        // Both at once: neither may tidy up after the other.
        // SAFETY: processes that this test started.
        unsafe { libc::kill(agent.pid(), libc::SIGSTOP) };
        kill(spawned["guard_pid"].as_i64().unwrap() as i32);
        agent.kill();
        until("only what the node started is left", || members().len() == 1);
        let left = members()[0];
        let (next_folder, _) = scratch();
        let reply = Agent::start(&next_folder, rung).ask("clean", json!({"run": run}));
        until("it is gone", || !alive(left));
        let of_agent = cgroup.parent().unwrap();
        assert!(!cgroup.exists() && !of_agent.exists(), "{rung}: {reply}");
    }
}

/// Whether a process is there and not only waiting to be reaped.
fn alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

/// An agent's file may be called anything (WATTWIRE_AGENT): others know it all the same.
#[test]
fn what_an_agent_by_another_name_uses_is_not_taken_for_left_over() {
    let (folder, run) = scratch();
    let renamed = folder.join("anything");
    std::fs::copy(env!("CARGO_BIN_EXE_wattwire-agent"), &renamed).unwrap();
    let mut agent = Agent::start_by(Command::new(&renamed), &folder, "none");
    let spawned = agent.spawn("node", &run, &["sleep", "1000"]);
    let pid = spawned["pid"].as_i64().unwrap() as i32;
    let (other_folder, _) = scratch();
    let mut other = Agent::start(&other_folder, "none");
    let found = other.ask("clean", json!({"run": "", "look": true}));
    let killed = found["killed"].as_array().unwrap();
    assert!(alive(pid) && !killed.contains(&json!(pid)), "{found}");
    // Its agent dead, and its guard with it, the same process is left over.
    // SAFETY: a process that this test started.
    unsafe { libc::kill(spawned["guard_pid"].as_i64().unwrap() as i32, libc::SIGSTOP) };
    agent.kill();
    let found = other.ask("clean", json!({"run": "", "look": true}));
    let killed = found["killed"].as_array().unwrap();
    assert!(killed.contains(&json!(pid)), "{found}");
    kill(spawned["guard_pid"].as_i64().unwrap() as i32);
    kill(pid);
}
