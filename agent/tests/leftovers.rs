//! Leftovers of an agent that was killed together with its guards.

mod common;

use std::path::PathBuf;
use std::process::Command;

use common::{kill, scratch, wait_until, Agent};
use serde_json::json;

/// A node that ends with its guard, while its child keeps running in the cgroup.
const WITH_SURVIVOR: &str = "(trap '' HUP; exec env -i sleep 1000) & echo STARTED; exec sleep 1000";

#[test]
fn an_agent_removes_the_empty_cgroup_of_a_killed_agent_at_its_start() {
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
fn clean_removes_the_cgroups_of_a_killed_agent_with_their_processes() {
    for rung in ["v1", "v2"] {
        let (folder, run) = scratch();
        let mut agent = Agent::start(&folder, rung);
        if agent.hello["cgroup"]["rung"] != json!(rung) {
            eprintln!("rung {rung} is not available on this host");
            continue;
        }
        let spawned = agent.spawn("node", &run, &["sh", "-c", WITH_SURVIVOR]);
        agent.line("node");
        let cgroup = std::path::PathBuf::from(spawned["cgroup"].as_str().unwrap());
        let members = || -> Vec<i32> {
            let text = std::fs::read_to_string(cgroup.join("cgroup.procs")).unwrap_or_default();
            text.lines().map(|line| line.parse().unwrap()).collect()
        };
        wait_until("both processes run", || members().len() == 2);
        // Stops the agent first, so that it cannot clean up after its guard.
        // SAFETY: plain system call on a process that this test started.
        unsafe { libc::kill(agent.pid(), libc::SIGSTOP) };
        kill(spawned["guard_pid"].as_i64().unwrap() as i32);
        agent.kill();
        wait_until("only the node's child is left", || members().len() == 1);
        let survivor = members()[0];
        let (next_folder, _) = scratch();
        let reply = Agent::start(&next_folder, rung).request("clean", json!({"run": run}));
        wait_until("the child has ended", || !is_alive(survivor));
        let agent_cgroup = cgroup.parent().unwrap();
        assert!(!cgroup.exists() && !agent_cgroup.exists(), "{rung}: {reply}");
    }
}

/// Returns whether a process exists and is not a zombie.
fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

/// Other agents recognise an agent whose file has another name (WATTWIRE_AGENT).
#[test]
fn processes_of_an_agent_with_another_file_name_are_no_leftovers() {
    let (folder, run) = scratch();
    let renamed = folder.join("anything");
    std::fs::copy(env!("CARGO_BIN_EXE_wattwire-agent"), &renamed).unwrap();
    let mut agent = Agent::start_by(Command::new(&renamed), &folder, "none");
    let spawned = agent.spawn("node", &run, &["sleep", "1000"]);
    let pid = spawned["pid"].as_i64().unwrap() as i32;
    let (other_folder, _) = scratch();
    let mut other = Agent::start(&other_folder, "none");
    let reply = other.request("clean", json!({"run": "", "look": true}));
    let killed = reply["killed"].as_array().unwrap();
    assert!(is_alive(pid) && !killed.contains(&json!(pid)), "{reply}");
    // Without its agent and its guard the same process is a leftover.
    // SAFETY: plain system call on a process that this test started.
    unsafe { libc::kill(spawned["guard_pid"].as_i64().unwrap() as i32, libc::SIGSTOP) };
    agent.kill();
    let reply = other.request("clean", json!({"run": "", "look": true}));
    let killed = reply["killed"].as_array().unwrap();
    assert!(killed.contains(&json!(pid)), "{reply}");
    kill(spawned["guard_pid"].as_i64().unwrap() as i32);
    kill(pid);
}
