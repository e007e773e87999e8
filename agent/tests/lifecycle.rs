//! What is started is watched, counted and ended, whoever dies first.

mod common;

use std::process::{Command, Stdio};

use common::{kill, marked, scratch, token, until, Agent};
use serde_json::json;

/// A tree that tries to get away: a child in a session of its own, and a double fork.
const FUGITIVES: &str = "setsid sleep 1000 & (setsid sleep 1001 &) ; echo READY; exec sleep 1002";

#[test]
fn end_of_input_ends_everything_and_leaves_nothing() {
    for rung in ["none", "v1", "v2"] {
        let (folder, run) = scratch();
        let mut agent = Agent::start(&folder, rung);
        let spawned = agent.spawn("node", &run, &["sh", "-c", FUGITIVES]);
        assert_eq!(agent.line("node"), "READY");
        until("all three run", || marked(&run).len() >= 4);
        assert_eq!(agent.end(), Some(0));
        assert_eq!(marked(&run), Vec::<i32>::new(), "rung {rung}");
        if let Some(cgroup) = spawned["cgroup"].as_str() {
            assert!(!std::path::Path::new(cgroup).parent().unwrap().exists());
        }
    }
}

#[test]
fn a_killed_agent_takes_everything_with_it() {
    for rung in ["none", "v1", "v2"] {
        let (folder, run) = scratch();
        let mut agent = Agent::start(&folder, rung);
        let spawned = agent.spawn("node", &run, &["sh", "-c", FUGITIVES]);
        agent.line("node");
        until("all three run", || marked(&run).len() >= 4);
        agent.kill();
        until("nothing is left", || marked(&run).is_empty());
        if let Some(cgroup) = spawned["cgroup"].as_str() {
            let folder = std::path::Path::new(cgroup).parent().unwrap();
            until("the cgroups are removed", || !folder.exists());
        }
    }
}

#[test]
fn a_killed_guard_is_told_and_what_it_watched_is_killed() {
    for rung in ["none", "v1", "v2"] {
        let (folder, run) = scratch();
        let mut agent = Agent::start(&folder, rung);
        let other = agent.spawn("other", &run, &["sleep", "1000"]);
        let spawned = agent.spawn("node", &run, &["sh", "-c", FUGITIVES]);
        agent.line("node");
        until("all run", || marked(&run).len() >= 6);
        kill(spawned["guard_pid"].as_i64().unwrap() as i32);
        agent.event("guard_lost", "node");
        let mut left = marked(&run);
        left.sort_unstable();
        let mut expected = vec![
            other["pid"].as_i64().unwrap() as i32,
            other["guard_pid"].as_i64().unwrap() as i32,
        ];
        expected.sort_unstable();
        assert_eq!(left, expected, "the other process goes on, and nothing else (rung {rung})");
        if let Some(cgroup) = spawned["cgroup"].as_str() {
            assert!(!std::path::Path::new(cgroup).exists());
        }
        // The name is free again.
        agent.spawn("node", &run, &["true"]);
        assert_eq!(agent.event("exit", "node")["code"], json!(0));
    }
}

#[test]
fn the_exit_event_comes_after_the_last_line_and_tells_how_it_ended() {
    let (folder, run) = scratch();
    let mut agent = Agent::start(&folder, "none");
    agent.spawn("node", &run, &["sh", "-c", "read word; echo got $word; printf last; exit 7"]);
    agent.ask("write", json!({"process": "node", "text": "GO\n"}));
    let exit = agent.event("exit", "node");
    assert_eq!((&exit["code"], &exit["signal"]), (&json!(7), &json!(null)));
    assert_eq!(exit["killed_by_guard"], json!(false));
    assert!(exit["t_ns"].as_i64().unwrap() > 0);
    // Both lines were received before the exit: they need no further reading.
    assert_eq!(agent.line("node"), "got GO");
    assert_eq!(agent.line("node"), "last");
}

#[test]
fn a_nodes_lines_are_those_of_descriptor_3_and_its_output_is_its_log() {
    let (folder, run) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let script = "echo printed; echo complained >&2; echo said >&3";
    agent.spawn_with("node", &run, &["sh", "-c", script], "lines-on-3");
    assert_eq!(agent.line("node"), "said");
    agent.event("exit", "node");
    let log = std::fs::read_to_string(folder.join("node.stderr")).unwrap();
    assert_eq!(log, "printed\ncomplained\n");
}

#[test]
fn a_flood_of_lines_and_a_line_without_end_are_read_and_not_passed_on() {
    let (folder, run) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let script = "yes 'SENT {}' | head -n 300000 >&3; head -c 30000000 /dev/zero >&3; exit 3";
    agent.spawn_with("node", &run, &["sh", "-c", script], "lines-on-3");
    let mut events = vec![agent.wait(|message| message["process"] == json!("node"))];
    while events.last().unwrap()["event"] != json!("exit") {
        events.push(agent.wait(|message| message["process"] == json!("node")));
    }
    assert_eq!(events.len(), 64 + 1);
    assert_eq!(events[64]["code"], json!(3));
}

#[test]
fn closing_the_input_is_seen_by_the_node() {
    let (folder, run) = scratch();
    let mut agent = Agent::start(&folder, "none");
    agent.spawn("node", &run, &["sh", "-c", "cat; exit 5"]);
    agent.ask("write", json!({"process": "node", "close": true}));
    assert_eq!(agent.event("exit", "node")["code"], json!(5));
}

#[test]
fn what_a_node_leaves_behind_is_killed_and_said() {
    let (folder, run) = scratch();
    let mut agent = Agent::start(&folder, "none");
    agent.spawn("node", &run, &["sh", "-c", "(setsid sleep 1000 &); exit 0"]);
    let exit = agent.event("exit", "node");
    assert_eq!((&exit["code"], &exit["killed_by_guard"]), (&json!(0), &json!(true)));
    assert_eq!(marked(&run), Vec::<i32>::new());
}

#[test]
fn signals_reach_the_process_or_its_whole_tree() {
    let (folder, run) = scratch();
    let mut agent = Agent::start(&folder, "none");
    agent.spawn("one", &run, &["sleep", "1000"]);
    agent.ask("signal", json!({"process": "one", "signal": "SIGTERM", "tree": false}));
    assert_eq!(agent.event("exit", "one")["signal"], json!(libc::SIGTERM));
    agent.spawn("tree", &run, &["sh", "-c", "sleep 1000 & echo READY; wait"]);
    agent.line("tree");
    let reply = agent.ask("signal", json!({"process": "tree", "signal": "KILL", "tree": true}));
    assert_eq!(reply["pids"].as_array().unwrap().len(), 2);
    assert_eq!(agent.event("exit", "tree")["killed_by_guard"], json!(false));
    let message = agent.refused("signal", json!({"process": "one", "signal": "TERM"}), "failed");
    assert!(message.contains("no running process"), "{message}");
}

#[test]
fn a_program_that_is_not_there_is_refused_with_where_it_was_looked_for() {
    let (folder, run) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let request = json!({"process": "node", "run": run, "argv": ["no-such-program"]});
    let message = agent.refused("spawn", request, "failed");
    assert!(message.contains("argv[0] no-such-program") && message.contains("PATH"), "{message}");
    assert_eq!(marked(&run), Vec::<i32>::new());
}

#[test]
fn wrong_requests_are_answered_and_the_agent_goes_on() {
    let (folder, run) = scratch();
    let mut agent = Agent::start(&folder, "none");
    for (line, kind) in [
        ("not json", "protocol"),
        ("[1,2]", "protocol"),
        (r#"{"id":77}"#, "protocol"),
        (r#"{"id":78,"op":"fly"}"#, "usage"),
        (r#"{"id":79,"op":"spawn","process":"x"}"#, "usage"),
        (r#"{"id":80,"op":"ports","count":"many"}"#, "usage"),
        (r#"{"id":81,"op":"hello","protocol":99,"state":"x"}"#, "protocol"),
    ] {
        agent.send_raw(line);
        let reply = agent.wait(|message| message["ok"] == json!(false));
        assert_eq!(reply["error"]["kind"], json!(kind), "{line}: {reply}");
    }
    agent.spawn("node", &run, &["true"]);
    assert_eq!(agent.event("exit", "node")["code"], json!(0));
}

/// What was removed of shared memory; a killed agent of somebody else may have left a cgroup.
fn removed_segments(reply: &serde_json::Value) -> Vec<&str> {
    let removed = reply["removed"].as_array().unwrap().iter().filter_map(|path| path.as_str());
    removed.filter(|path| path.starts_with("/dev/shm/")).collect()
}

#[test]
fn clean_kills_the_named_run_only() {
    let (folder, run) = scratch();
    let other = token();
    let leftover = |run: &str| {
        let mut command = Command::new("sleep");
        command.arg("1000").env("WATTWIRE_RUN", run).stdout(Stdio::null());
        command.spawn().unwrap()
    };
    let (mut ours, mut others) = (leftover(&run), leftover(&other));
    let shared = std::path::PathBuf::from(format!("/dev/shm/segment_{run}"));
    std::fs::write(&shared, b"x").unwrap();
    let mut agent = Agent::start(&folder, "none");
    for look in [true, false] {
        assert!(shared.exists() && ours.try_wait().unwrap().is_none());
        let reply = agent.ask("clean", json!({"run": run, "look": look}));
        assert_eq!(reply["killed"], json!([ours.id()]));
        assert_eq!(removed_segments(&reply), [shared.display().to_string()]);
    }
    assert!(!shared.exists());
    assert!(others.try_wait().unwrap().is_none());
    others.kill().unwrap();
    ours.wait().unwrap();
    others.wait().unwrap();
}

#[test]
fn clean_of_every_run_spares_what_has_a_live_agent() {
    let (folder, run) = scratch();
    let (other_folder, leftover_run) = scratch();
    let mut busy = Agent::start(&folder, "none");
    busy.spawn("node", &run, &["sleep", "1000"]);
    let mut leftover =
        Command::new("sleep").arg("1000").env("WATTWIRE_RUN", &leftover_run).spawn().unwrap();
    let mut agent = Agent::start(&other_folder, "none");
    let reply = agent.ask("clean", json!({"run": ""}));
    assert!(reply["killed"].as_array().unwrap().contains(&json!(leftover.id())), "{reply}");
    assert_eq!(marked(&run).len(), 2);
    leftover.wait().unwrap();
}

#[test]
fn shared_memory_that_a_node_leaves_is_removed_and_other_files_are_not() {
    let (folder, run) = scratch();
    let path = |name: &str| std::path::PathBuf::from(format!("/dev/shm/{name}-{}", &run[1..]));
    std::fs::write(path("before"), b"x").unwrap();
    let mut agent = Agent::start(&folder, "none");
    let program = format!(
        "exec 3<>{}; exec 4<>{}; echo READY; read word",
        path("segment").display(),
        path("before").display()
    );
    agent.spawn("node", &run, &["bash", "-c", &program]);
    agent.line("node");
    agent.ask("signal", json!({"process": "node", "signal": "KILL"}));
    agent.event("exit", "node");
    assert!(path("segment").exists());
    let reply = agent.ask("clean", json!({"run": run}));
    assert_eq!(removed_segments(&reply), [path("segment").display().to_string()]);
    assert!(!path("segment").exists() && path("before").exists());
    std::fs::remove_file(path("before")).unwrap();
}

#[test]
fn shared_memory_of_a_killed_agent_is_removed_by_the_next_one() {
    let (folder, run) = scratch();
    let segment = std::path::PathBuf::from(format!("/dev/shm/left-{}", &run[1..]));
    let mut agent = Agent::start(&folder, "none");
    let program = format!("exec 3<>{}; echo READY; read word", segment.display());
    agent.spawn("node", &run, &["bash", "-c", &program]);
    agent.line("node");
    let journals = folder.join("cache/shared-memory");
    until("it is noted", || journals.read_dir().is_ok_and(|mut files| files.next().is_some()));
    agent.kill();
    until("the node is gone", || marked(&run).is_empty());
    let mut next = Agent::start(&folder, "none");
    for look in [true, false] {
        assert!(segment.exists());
        let reply = next.ask("clean", json!({"run": run, "look": look}));
        assert_eq!(removed_segments(&reply), [segment.display().to_string()]);
    }
}
