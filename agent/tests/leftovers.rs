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
        // Not after the kill: every agent that starts on this machine removes it.
        assert!(path.exists());
        killed.kill();
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
        let node = spawned["pid"].as_i64().unwrap() as i32;
        let survivor = members().into_iter().find(|pid| *pid != node).unwrap();
        // Stops the agent first, so that it cannot clean up after its guard.
        // SAFETY: plain system call on a process that this test started.
        unsafe { libc::kill(agent.pid(), libc::SIGSTOP) };
        kill(spawned["guard_pid"].as_i64().unwrap() as i32);
        agent.kill();
        // Another agent of this machine may clean meanwhile, so the child may have ended, too.
        wait_until("at most the node's child is left", || members().len() <= 1);
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

/// Several hosts of a run may be on one machine: their agents use the same token.
#[test]
fn clean_spares_the_processes_of_another_live_agent_with_the_same_token() {
    let (folder, run) = scratch();
    let (other_folder, _) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let mut other = Agent::start(&other_folder, "none");
    let segment = PathBuf::from(format!("/dev/shm/{run}-used"));
    let unused = PathBuf::from(format!("/dev/shm/{run}-unused"));
    std::fs::write(&unused, "left").unwrap();
    let program = format!("exec 3<>{}; echo READY; read word", segment.display());
    let own = agent.spawn("node", &run, &["sleep", "1000"]);
    let spared = other.spawn("node", &run, &["bash", "-c", &program]);
    other.line("node");
    let pid_of = |spawned: &serde_json::Value| spawned["pid"].as_i64().unwrap() as i32;
    for look in [true, false] {
        let reply = agent.request("clean", json!({"run": run, "look": look}));
        let killed = reply["killed"].as_array().unwrap();
        assert!(killed.contains(&json!(pid_of(&own))), "{reply}");
        assert!(!killed.contains(&json!(pid_of(&spared))), "{reply}");
        let removed = reply["removed"].as_array().unwrap();
        assert!(removed.contains(&json!(unused)) && !removed.contains(&json!(segment)), "{reply}");
    }
    // The guard carries the token too.
    agent.event("guard_lost", "node");
    assert!(is_alive(pid_of(&spared)) && segment.exists() && !unused.exists());
    // The guard of the other agent is killed with its agent, so its node has no live agent.
    // SAFETY: plain system calls on processes that this test started.
    unsafe { libc::kill(other.pid(), libc::SIGSTOP) };
    unsafe { libc::kill(spared["guard_pid"].as_i64().unwrap() as i32, libc::SIGSTOP) };
    other.kill();
    let reply = agent.request("clean", json!({"run": run}));
    // The node dies with its guard, perhaps before `clean` reaches it.
    assert!(reply["killed"].as_array().unwrap().contains(&spared["guard_pid"]), "{reply}");
    wait_until("the node has ended", || !is_alive(pid_of(&spared)));
    assert!(!segment.exists(), "{reply}");
}

/// A node in namespaces of its own carries its token like any other.
#[test]
fn clean_finds_the_leftovers_of_a_killed_agent_in_other_namespaces() {
    let (folder, run) = scratch();
    let unshare = ["--user", "--map-root-user", "--net", "--mount", "--uts"];
    let mut command = Command::new("unshare");
    command.args(unshare).arg("--").arg(env!("CARGO_BIN_EXE_wattwire-agent"));
    let is_allowed = Command::new("unshare").args(unshare).arg("true").status();
    if !is_allowed.is_ok_and(|status| status.success()) {
        eprintln!("this user cannot create namespaces");
        return;
    }
    let mut killed = Agent::start_by(command, &folder, "none");
    let node = killed.spawn("node", &run, &["sleep", "1000"]);
    let pid_of = |key: &str| node[key].as_i64().unwrap() as i32;
    // SAFETY: plain system call on a process that this test started.
    unsafe { libc::kill(pid_of("guard_pid"), libc::SIGSTOP) };
    killed.kill();
    let (next_folder, _) = scratch();
    let mut next = Agent::start(&next_folder, "none");
    let reply = next.request("clean", json!({"run": run}));
    assert!(reply["killed"].as_array().unwrap().contains(&node["guard_pid"]), "{reply}");
    wait_until("the node has ended", || !is_alive(pid_of("pid")));
}

/// Returns an agent in a PID namespace of its own that shares the cgroups of this host, as in a
/// container, or None if this user cannot create one.
fn agent_in_pid_namespace(folder: &std::path::Path, rung: &str) -> Option<Agent> {
    let unshare = ["--pid", "--fork", "--mount-proc", "--kill-child", "--"];
    let is_allowed = Command::new("unshare").args(unshare).arg("true").status();
    if !is_allowed.is_ok_and(|status| status.success()) {
        eprintln!("this user cannot create PID namespaces");
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(unshare).arg(env!("CARGO_BIN_EXE_wattwire-agent"));
    Some(Agent::start_by(command, folder, rung))
}

#[test]
fn agents_of_two_pid_namespaces_spare_each_other() {
    for rung in ["v1", "v2"] {
        let ((outer_folder, outer_run), (inner_folder, inner_run)) = (scratch(), scratch());
        let mut outer = Agent::start(&outer_folder, rung);
        let Some(mut inner) = agent_in_pid_namespace(&inner_folder, rung) else { return };
        if inner.hello["cgroup"]["rung"] != json!(rung) {
            continue;
        }
        let command = ["sh", "-c", "echo READY; exec sleep 1000"];
        for (agent, run) in [(&mut outer, &outer_run), (&mut inner, &inner_run)] {
            agent.spawn("node", run, &command);
            agent.line("node");
        }
        let nodes = [&outer_run, &inner_run].map(|run| common::marked(run).len());
        let paths = [&outer, &inner].map(|agent| agent.hello["cgroup"]["path"].clone());
        for look in [true, false] {
            for agent in [&mut outer, &mut inner] {
                // The leftovers of other tests are theirs to find.
                let reply = agent.request("clean", json!({"run": "none", "look": look}));
                assert_eq!(reply["killed"], json!([]), "{rung}: {reply}");
                let removed = reply["removed"].as_array().unwrap();
                assert!(paths.iter().all(|path| !removed.contains(path)), "{rung}: {reply}");
            }
        }
        let left = [&outer_run, &inner_run].map(|run| common::marked(run).len());
        assert_eq!((nodes, nodes[0] > 0 && nodes[1] > 0), (left, true), "{rung}");
        for agent in [&mut outer, &mut inner] {
            agent.request("ports", json!({"count": 1}));
        }
    }
}

/// An agent cannot see who uses the shared memory of a namespace outside of its own.
#[test]
fn clean_spares_the_shared_memory_of_an_agent_outside_its_pid_namespace() {
    let (folder, run) = scratch();
    let mut outer = Agent::start(&folder, "none");
    let Some(mut inner) = agent_in_pid_namespace(&folder, "none") else { return };
    let segment = PathBuf::from(format!("/dev/shm/{run}-segment"));
    let program = format!("exec 3<>{}; echo READY; read word", segment.display());
    outer.spawn("node", &run, &["bash", "-c", &program]);
    outer.line("node");
    let journals =
        || std::fs::read_dir(folder.join("cache/shared-memory")).map_or(0, Iterator::count);
    wait_until("the agent has a journal", || journals() == 1);
    inner.request("clean", json!({"run": ""}));
    assert_eq!((journals(), segment.exists()), (1, true));
    let _ = std::fs::remove_file(&segment);
}

/// Every number of a process in /proc would then name another process.
#[test]
fn an_agent_refuses_a_proc_of_another_pid_namespace() {
    let unshare = ["--pid", "--fork", "--kill-child", "--"];
    let mut command = Command::new("unshare");
    command.args(unshare).arg(env!("CARGO_BIN_EXE_wattwire-agent")).arg("serve");
    let is_allowed = Command::new("unshare").args(unshare).arg("true").status();
    if !is_allowed.is_ok_and(|status| status.success()) {
        return;
    }
    let output = command.stdin(std::process::Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("PID namespace"));
}

/// Nodes start in folders of their own, in which a relative path leads elsewhere.
#[test]
fn a_relative_cache_has_absolute_paths() {
    let (folder, _) = scratch();
    let mut command = Command::new(env!("CARGO_BIN_EXE_wattwire-agent"));
    command.current_dir(&folder);
    let agent = Agent::start_by(command, std::path::Path::new("relative"), "none");
    let cache = PathBuf::from(agent.hello["cache"].as_str().unwrap());
    assert_eq!(cache, folder.canonicalize().unwrap().join("relative/cache"));
    drop(agent);
    std::fs::remove_dir_all(&folder).unwrap();
}
