//! The agent supervises, measures and ends its processes, even if the agent or a guard is killed.

mod common;

use std::process::{Command, Stdio};

use common::{kill, marked, scratch, token, unowned_processes, wait_until, Agent};
use serde_json::json;

/// A process tree that tries to escape: a child in a separate session, and a double fork.
const ESCAPING_TREE: &str =
    "setsid sleep 1000 & (setsid sleep 1001 &) ; echo READY; exec sleep 1002";

#[test]
fn at_the_end_of_its_input_the_agent_ends_all_processes() {
    for rung in ["none", "v1", "v2"] {
        let (folder, run) = scratch();
        let mut agent = Agent::start(&folder, rung);
        let spawned = agent.spawn("node", &run, &["sh", "-c", ESCAPING_TREE]);
        assert_eq!(agent.line("node"), "READY");
        wait_until("all three run", || marked(&run).len() >= 4);
        assert_eq!(agent.end(), Some(0));
        assert_eq!(marked(&run), Vec::<i32>::new(), "rung {rung}");
        if let Some(cgroup) = spawned["cgroup"].as_str() {
            assert!(!std::path::Path::new(cgroup).parent().unwrap().exists());
        }
    }
}

#[test]
fn all_processes_end_with_a_killed_agent() {
    for rung in ["none", "v1", "v2"] {
        let (folder, run) = scratch();
        let mut agent = Agent::start(&folder, rung);
        let spawned = agent.spawn("node", &run, &["sh", "-c", ESCAPING_TREE]);
        agent.line("node");
        wait_until("all three run", || marked(&run).len() >= 4);
        agent.kill();
        wait_until("all processes have ended", || marked(&run).is_empty());
        if let Some(cgroup) = spawned["cgroup"].as_str() {
            let folder = std::path::Path::new(cgroup).parent().unwrap();
            wait_until("the cgroups are removed", || !folder.exists());
        }
    }
}

#[test]
fn the_agent_reports_a_killed_guard_and_kills_its_processes() {
    for rung in ["none", "v1", "v2"] {
        let (folder, run) = scratch();
        let mut agent = Agent::start(&folder, rung);
        let other = agent.spawn("other", &run, &["sleep", "1000"]);
        let spawned = agent.spawn("node", &run, &["sh", "-c", ESCAPING_TREE]);
        agent.line("node");
        wait_until("all run", || marked(&run).len() >= 6);
        kill(spawned["guard_pid"].as_i64().unwrap() as i32);
        agent.event("guard_lost", "node");
        let mut remaining = marked(&run);
        remaining.sort_unstable();
        let mut expected = vec![
            other["pid"].as_i64().unwrap() as i32,
            other["guard_pid"].as_i64().unwrap() as i32,
        ];
        expected.sort_unstable();
        assert_eq!(remaining, expected, "only the other process keeps running (rung {rung})");
        if let Some(cgroup) = spawned["cgroup"].as_str() {
            assert!(!std::path::Path::new(cgroup).exists());
        }
        // The name is available again.
        agent.spawn("node", &run, &["true"]);
        assert_eq!(agent.event("exit", "node")["code"], json!(0));
    }
}

#[test]
fn the_exit_event_follows_the_last_line_and_has_the_exit_code() {
    let (folder, run) = scratch();
    let mut agent = Agent::start(&folder, "none");
    agent.spawn("node", &run, &["sh", "-c", "read word; echo got $word; printf last; exit 7"]);
    agent.request("write", json!({"process": "node", "text": "GO\n"}));
    let exit = agent.event("exit", "node");
    assert_eq!((&exit["code"], &exit["signal"]), (&json!(7), &json!(null)));
    assert_eq!(exit["killed_by_guard"], json!(false));
    assert!(exit["t_ns"].as_i64().unwrap() > 0);
    // Both lines arrived before the exit event.
    assert_eq!(agent.line("node"), "got GO");
    assert_eq!(agent.line("node"), "last");
}

#[test]
fn the_agent_reads_lines_from_descriptor_3_and_logs_standard_output() {
    let (folder, run) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let script = "echo printed; echo failed >&2; echo ready >&3";
    agent.spawn_with("node", &run, &["sh", "-c", script], "lines-on-3");
    assert_eq!(agent.line("node"), "ready");
    agent.event("exit", "node");
    let log = std::fs::read_to_string(folder.join("node.stderr")).unwrap();
    assert_eq!(log, "printed\nfailed\n");
}

#[test]
fn the_agent_forwards_64_lines_of_a_node_and_discards_the_others() {
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
fn a_node_reads_the_end_of_its_input() {
    let (folder, run) = scratch();
    let mut agent = Agent::start(&folder, "none");
    agent.spawn("node", &run, &["sh", "-c", "cat; exit 5"]);
    agent.request("write", json!({"process": "node", "close": true}));
    assert_eq!(agent.event("exit", "node")["code"], json!(5));
}

#[test]
fn the_guard_kills_the_nodes_remaining_children_and_reports_it() {
    let (folder, run) = scratch();
    let mut agent = Agent::start(&folder, "none");
    agent.spawn("node", &run, &["sh", "-c", "(setsid sleep 1000 &); exit 0"]);
    let exit = agent.event("exit", "node");
    assert_eq!((&exit["code"], &exit["killed_by_guard"]), (&json!(0), &json!(true)));
    assert_eq!(marked(&run), Vec::<i32>::new());
}

#[test]
fn signals_reach_the_process_or_its_tree() {
    let (folder, run) = scratch();
    let mut agent = Agent::start(&folder, "none");
    agent.spawn("single", &run, &["sleep", "1000"]);
    agent.request("signal", json!({"process": "single", "signal": "SIGTERM", "tree": false}));
    assert_eq!(agent.event("exit", "single")["signal"], json!(libc::SIGTERM));
    agent.spawn("tree", &run, &["sh", "-c", "sleep 1000 & echo READY; wait"]);
    agent.line("tree");
    let reply = agent.request("signal", json!({"process": "tree", "signal": "KILL", "tree": true}));
    assert_eq!(reply["pids"].as_array().unwrap().len(), 2);
    assert_eq!(agent.event("exit", "tree")["killed_by_guard"], json!(false));
    let message =
        agent.expect_error("signal", json!({"process": "single", "signal": "TERM"}), "failed");
    assert!(message.contains("no running process"), "{message}");
}

#[test]
fn the_error_for_a_missing_program_names_the_search_path() {
    let (folder, run) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let request = json!({"process": "node", "run": run, "argv": ["no-such-program"]});
    let message = agent.expect_error("spawn", request, "failed");
    assert!(message.contains("argv[0] no-such-program") && message.contains("PATH"), "{message}");
    assert_eq!(marked(&run), Vec::<i32>::new());
}

#[test]
fn the_agent_replies_to_invalid_requests_and_continues() {
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

/// Returns the removed files in /dev/shm. The reply may also contain the cgroup of another test's
/// killed agent.
fn removed_segments(reply: &serde_json::Value) -> Vec<&str> {
    let removed = reply["removed"].as_array().unwrap().iter().filter_map(|path| path.as_str());
    removed.filter(|path| path.starts_with("/dev/shm/")).collect()
}

#[test]
fn clean_kills_only_the_processes_of_its_run() {
    let _lock = unowned_processes();
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
        let reply = agent.request("clean", json!({"run": run, "look": look}));
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
fn clean_of_every_run_spares_the_processes_of_a_live_agent() {
    let _lock = unowned_processes();
    let (folder, run) = scratch();
    let (other_folder, leftover_run) = scratch();
    let mut busy = Agent::start(&folder, "none");
    busy.spawn("node", &run, &["sleep", "1000"]);
    let mut leftover =
        Command::new("sleep").arg("1000").env("WATTWIRE_RUN", &leftover_run).spawn().unwrap();
    let mut agent = Agent::start(&other_folder, "none");
    let reply = agent.request("clean", json!({"run": ""}));
    assert!(reply["killed"].as_array().unwrap().contains(&json!(leftover.id())), "{reply}");
    assert_eq!(marked(&run).len(), 2);
    leftover.wait().unwrap();
}

#[test]
fn clean_removes_a_nodes_shared_memory_and_no_other_files() {
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
    agent.request("signal", json!({"process": "node", "signal": "KILL"}));
    agent.event("exit", "node");
    assert!(path("segment").exists());
    let reply = agent.request("clean", json!({"run": run}));
    assert_eq!(removed_segments(&reply), [path("segment").display().to_string()]);
    assert!(!path("segment").exists() && path("before").exists());
    std::fs::remove_file(path("before")).unwrap();
}

#[test]
fn clean_removes_the_shared_memory_of_a_killed_child_of_a_silent_command_but_none_of_others() {
    let (folder, run) = scratch();
    let path = |name: &str| std::path::PathBuf::from(format!("/dev/shm/{name}-{}", &run[1..]));
    let mut agent = Agent::start(&folder, "none");
    // The child maps its file after the start and is killed without a word to the agent.
    let ended = folder.join("ended");
    let child = format!(
        "import mmap, os, time; time.sleep(0.3); file = open(\"{}\", \"wb+\"); \
         file.truncate(4096); mapping = mmap.mmap(file.fileno(), 4096); time.sleep(0.5); \
         os.kill(os.getpid(), 9)",
        path("segment").display()
    );
    let program = format!("python3 -c '{child}'; echo > {}; exec sleep 1000", ended.display());
    let output = folder.join("out").display().to_string();
    agent.spawn_with("command", &run, &["bash", "-c", &program], &output);
    wait_until("the child has ended", || ended.exists());
    assert!(path("segment").exists());
    std::fs::write(path("of-others"), b"x").unwrap();
    agent.request("signal", json!({"process": "command", "signal": "KILL", "tree": true}));
    agent.event("exit", "command");
    let reply = agent.request("clean", json!({"run": run}));
    assert_eq!(removed_segments(&reply), [path("segment").display().to_string()]);
    assert!(path("of-others").exists());
    std::fs::remove_file(path("of-others")).unwrap();
}

#[test]
fn the_result_of_a_command_and_a_file_of_others_that_it_reads_stay_in_shared_memory() {
    let (folder, run) = scratch();
    let path = |name: &str| std::path::PathBuf::from(format!("/dev/shm/{name}-{}", &run[1..]));
    let mut agent = Agent::start(&folder, "none");
    let (result, of_others) = (path("result.csv"), path("of-others"));
    let program = format!(
        "until test -s {0}; do sleep 0.1; done; exec 4<{0} 3<>{1}; sleep 0.3; echo x >&3",
        of_others.display(),
        result.display()
    );
    let output = folder.join("out").display().to_string();
    agent.spawn_with("command", &run, &["bash", "-c", &program], &output);
    std::fs::write(&of_others, b"x").unwrap();
    assert_eq!(agent.event("exit", "command")["code"], 0);
    let reply = agent.request("clean", json!({"run": run}));
    assert_eq!(removed_segments(&reply), Vec::<String>::new());
    assert_eq!(agent.end(), Some(0));
    for file in [result, of_others] {
        std::fs::remove_file(file).unwrap();
    }
}

#[test]
fn another_agent_removes_the_shared_memory_of_a_killed_agent() {
    let (folder, run) = scratch();
    let segment = std::path::PathBuf::from(format!("/dev/shm/left-{}", &run[1..]));
    let mut agent = Agent::start(&folder, "none");
    let program = format!("exec 3<>{}; echo READY; read word", segment.display());
    agent.spawn("node", &run, &["bash", "-c", &program]);
    agent.line("node");
    let journals = folder.join("cache/shared-memory");
    wait_until("the journal has the segment", || {
        let files = journals.read_dir().into_iter().flatten().flatten();
        let mut texts = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
        texts.any(|text| text.contains(&format!("left-{}", &run[1..])))
    });
    agent.kill();
    wait_until("the node has ended", || marked(&run).is_empty());
    let mut next = Agent::start(&folder, "none");
    for look in [true, false] {
        assert!(segment.exists());
        let reply = next.request("clean", json!({"run": run, "look": look}));
        assert_eq!(removed_segments(&reply), [segment.display().to_string()]);
    }
}

#[test]
fn an_agent_ends_its_processes_when_its_controller_is_silent() {
    for rung in ["none", "v1", "v2"] {
        let (folder, run) = scratch();
        let mut agent = Agent::start(&folder, rung);
        for patience_s in [0.0, 1e9] {
            let request = json!({"patience_s": patience_s});
            let message = agent.expect_error("heartbeat", request, "usage");
            assert!(message.contains("allowed: 0.1 to 86400"), "{message}");
        }
        agent.spawn("node", &run, &["sh", "-c", ESCAPING_TREE]);
        assert_eq!(agent.line("node"), "READY");
        wait_until("all three run", || marked(&run).len() >= 4);
        agent.request("heartbeat", json!({"patience_s": 5.0}));
        agent.request("heartbeat", json!({"patience_s": 0.3}));
        // The pipe stays open.
        assert_eq!(agent.child.wait().unwrap().code(), Some(1), "rung {rung}");
        wait_until("all processes have ended", || marked(&run).is_empty());
    }
}

#[test]
fn blank_lines_and_incomplete_lines_keep_an_agent_alive() {
    let (folder, _) = scratch();
    let mut agent = Agent::start(&folder, "none");
    agent.request("heartbeat", json!({"patience_s": 4.0}));
    for text in ["", "  "].iter().cycle().take(50) {
        agent.send_raw(text);
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    agent.request("clock", json!({}));
    assert_eq!(agent.end(), Some(0));
}
