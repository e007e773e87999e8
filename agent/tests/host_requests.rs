//! Requests with which a controller uses a host whose files and sockets it cannot reach.

mod common;

use common::{marked, scratch, wait_until, Agent};
use serde_json::{json, Value};

#[test]
fn hello_names_the_time_namespace_the_cache_and_the_home_folder() {
    let (folder, _) = scratch();
    let agent = Agent::start(&folder, "none");
    let namespace = std::fs::read_link("/proc/self/ns/time").unwrap_or_default();
    assert_eq!(agent.hello["time_namespace"], json!(namespace.display().to_string()));
    assert_eq!(agent.hello["cache"], json!(folder.join("cache")));
    assert_eq!(agent.hello["home"], json!(std::env::var("HOME").unwrap_or_default()));
}

#[test]
fn hello_of_another_version_gives_both_versions_and_the_remedy() {
    let (folder, _) = scratch();
    let mut agent = Agent::start(&folder, "none");
    for (version, text) in [(json!(1), "has 1,"), (json!(3), "has 3,"), (Value::Null, "has null,")]
    {
        // Another version may have other fields.
        let hello = json!({"protocol": version, "state": folder, "later": true});
        let message = agent.expect_error("hello", hello, "protocol");
        assert!(message.contains(text) && message.contains("agent has 2"), "{message}");
        assert!(message.contains("make agent"), "{message}");
    }
}

#[test]
fn files_are_written_listed_read_and_removed_below_the_cache() {
    let (folder, run) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let attempt = folder.join("cache/attempts").join(&run);
    let spec = attempt.join("specs/node-0.json");
    let content = json!({"path": spec, "base64": "YWJj", "mode": 0o600});
    agent.expect_error("write_file", content.clone(), "absent");
    agent.request("folder", json!({"path": attempt.join("specs")}));
    agent.request("folder", json!({"path": attempt.join("specs")}));
    agent.request("write_file", content);
    let listing = agent.request("list", json!({"path": attempt}));
    assert_eq!(listing["files"][0]["path"], json!("specs/node-0.json"));
    assert_eq!(listing["files"][0]["size"], json!(3));
    let piece = agent.request("fetch", json!({"path": spec}));
    assert_eq!(piece["sha256"], listing["files"][0]["sha256"]);
    agent.expect_error("remove", json!({"path": folder.join("state")}), "usage");
    assert_eq!(agent.request("remove", json!({"path": attempt}))["removed"], json!(true));
    assert!(!attempt.exists());
    agent.expect_error("list", json!({"path": attempt}), "absent");
    for op in ["folder", "list", "disk"] {
        let message = agent.expect_error(op, json!({"path": "relative"}), "usage");
        assert!(message.contains("absolute"), "{message}");
    }
}

#[test]
fn the_folders_of_attempts_end_with_the_agent_that_made_them() {
    let (folder, run) = scratch();
    let attempts = folder.join("cache/attempts");
    let others = attempts.join("another-agent");
    std::fs::create_dir_all(&others).unwrap();
    let mut agent = Agent::start(&folder, "none");
    for path in [attempts.clone(), attempts.join(&run).join("out/node-0"), folder.join("kept")] {
        agent.request("folder", json!({"path": path}));
    }
    let file = attempts.join(&run).join("out/node-0/samples.bin");
    agent.request("write_file", json!({"path": file, "base64": "YWJj"}));
    let argv = ["sh", "-c", "while :; do echo x >> $0; done", file.to_str().unwrap()];
    agent.spawn("node", &run, &argv);
    assert_eq!(agent.end(), Some(0));
    assert!(!attempts.join(&run).exists());
    assert!(others.exists() && folder.join("kept").exists());
}

#[test]
fn a_command_returns_its_exit_code_and_its_output() {
    let (folder, _) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let script = "cat; pwd; echo $WORD >&2; exit 3";
    let request = json!({"argv": ["sh", "-c", script], "env": {"WORD": "from env"}});
    let reply = agent.request("command", request);
    let output = reply["output"].as_str().unwrap();
    assert_eq!((&reply["code"], &reply["signal"]), (&json!(3), &json!(null)));
    assert!(output.contains("from env\n") && output.contains("/state\n"), "{output}");
    let script = "head -c 100000 /dev/zero | tr '\\0' x; echo end";
    let reply = agent.request("command", json!({"argv": ["sh", "-c", script]}));
    assert_eq!(reply["output"].as_str().unwrap().len(), 64 << 10);
    assert!(reply["output"].as_str().unwrap().ends_with("xend\n"));
    assert_eq!(reply["omitted_bytes"], json!(100_004 - (64 << 10)));
    agent.expect_error("command", json!({"argv": []}), "usage");
    agent.expect_error("command", json!({"argv": ["true"], "timeout_s": 0.0}), "usage");
    let message = agent.expect_error("command", json!({"argv": ["no-such-program"]}), "failed");
    assert!(message.contains("no-such-program"), "{message}");
}

#[test]
fn a_command_that_exceeds_its_time_is_killed_with_its_descendants() {
    let (folder, run) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let script = "echo begun; (setsid env WATTWIRE_RUN=$TOKEN sleep 1000 &); sleep 1000";
    let request = json!({"argv": ["sh", "-c", script], "env": {"TOKEN": run}, "timeout_s": 1.0});
    let message = agent.expect_error("command", request, "failed");
    assert!(message.contains("time limit 1 s") && message.contains("begun"), "{message}");
    wait_until("nothing is left", || marked(&run).is_empty());
}

#[test]
fn other_requests_are_answered_during_a_command_which_ends_with_the_agent() {
    for killed in [false, true] {
        let (folder, run) = scratch();
        let mut agent = Agent::start(&folder, "none");
        let script = "exec env WATTWIRE_RUN=$TOKEN sleep 1000";
        let request = json!({"argv": ["sh", "-c", script], "env": {"TOKEN": run},
                             "timeout_s": 1000.0});
        agent.send("command", request);
        wait_until("the command runs", || marked(&run).len() == 1);
        agent.request("clock", json!({"count": 1}));
        if killed {
            agent.kill();
        } else {
            assert_eq!(agent.end(), Some(0));
        }
        wait_until("the command has ended", || marked(&run).is_empty());
    }
}

#[test]
fn more_than_64_slow_requests_at_a_time_are_busy() {
    let (folder, _) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let request = json!({"argv": ["sleep", "1000"], "timeout_s": 1000.0});
    for _ in 0..64 {
        agent.send("command", request.clone());
    }
    let message = agent.expect_error("command", request, "busy");
    assert!(message.contains("64"), "{message}");
    agent.request("which", json!({"names": []}));
}

#[test]
fn programs_disks_servers_and_addresses_are_those_of_this_host() {
    let (folder, _) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let names = json!(["sh", "no-such-program", "/bin/sh", "ldconfig"]);
    let paths = &agent.request("which", json!({"names": names}))["paths"];
    assert!(paths["sh"].as_str().unwrap().ends_with("/sh"));
    assert_eq!((&paths["no-such-program"], &paths["/bin/sh"]), (&Value::Null, &json!("/bin/sh")));
    assert!(agent.request("disk", json!({"path": folder}))["total_bytes"].as_u64().unwrap() > 0);
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = json!({"address": "127.0.0.1", "port": port, "timeout_ms": 10_000});
    assert_eq!(agent.request("connects", server.clone())["connects"], json!(true));
    drop(listener);
    assert_eq!(agent.request("connects", server)["connects"], json!(false));
    agent.expect_error("connects", json!({"address": "a name", "port": 1}), "usage");
    let interfaces = agent.request("addresses", json!({}))["interfaces"].clone();
    let has_loopback = |one: &Value| one["loopback"] == json!(true) && one["name"] == json!("lo");
    assert!(interfaces.as_array().unwrap().iter().any(has_loopback), "{interfaces}");
}

#[test]
fn an_unknown_operation_lists_all_operations() {
    let (folder, _) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let message = agent.expect_error("write-file", json!({}), "usage");
    for op in ["write_file", "list", "remove", "which", "command", "connects", "addresses"] {
        assert!(message.contains(op), "{message}");
    }
}

#[test]
fn the_clock_responder_ends_with_clock_close_and_with_a_sampling() {
    let (folder, _) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let request = json!({"address": "127.0.0.1", "exchanges": 10, "seconds": 60.0});
    assert!(agent.request("clock_listen", request.clone())["port"].as_u64().unwrap() > 0);
    agent.expect_error("clock_listen", request.clone(), "busy");
    let closed = json!({"closed": true, "exchanges": 0});
    let reply = agent.request("clock_close", json!({}));
    assert_eq!((&reply["closed"], &reply["exchanges"]), (&closed["closed"], &closed["exchanges"]));
    agent.request("clock_listen", request.clone());
    let path = folder.join("samples.bin");
    agent.request("sample_start", json!({"path": path, "tick_hz": 10.0, "meters": []}));
    agent.request("sample_stop", json!({}));
    assert_eq!(agent.request("clock_close", json!({}))["closed"], json!(false));
    agent.request("clock_listen", request);
    assert_eq!(agent.end(), Some(0));
}

#[test]
fn without_machine_wide_an_agent_reads_only_its_own_part_of_the_machine() {
    let (folder, run) = scratch();
    let mut agent = Agent::start(&folder, "none");
    agent.spawn("node", &run, &["sleep", "1000"]);
    let meters = agent.hello["meters"].as_array().unwrap().clone();
    let names: Vec<&Value> = meters.iter().map(|meter| &meter["name"]).collect();
    let mut sample = |machine_wide: bool| {
        let path = folder.join(format!("samples-{machine_wide}.bin"));
        let request = json!({"path": path, "tick_hz": 10.0, "meters": names, "marks_only": true,
                             "machine_wide": machine_wide});
        let started = agent.request("sample_start", request);
        let stopped = agent.request("sample_stop", json!({}));
        assert_eq!(started["skipped"], stopped["skipped"]);
        let series = stopped["series"].as_array().unwrap().clone();
        for (_, number, ..) in common::records(&path) {
            let is_described = series.iter().any(|one| one["series"] == json!(number));
            assert!(is_described, "a record of series {number}, which has no description");
        }
        (series, started["skipped"].as_array().unwrap().clone())
    };
    let is_own =
        |one: &Value| ["process", "interface", "harness"].iter().any(|own| one["scope"] == *own);
    let (series, skipped) = sample(true);
    assert!(skipped.is_empty() && series.iter().any(|one| one["scope"] == "machine"));
    let (own, skipped) = sample(false);
    for one in own.iter().filter(|one| !is_own(one)) {
        // These drops are those of the agent's network namespace.
        let drops = own.iter().find(|one| one["quantity"] == "datagrams_dropped").unwrap();
        assert_eq!(one["meter"], drops["meter"], "{one}");
    }
    assert_eq!(
        own.iter().filter(|one| is_own(one)).count(),
        series.iter().filter(|one| is_own(one)).count()
    );
    assert!(skipped.contains(&json!("fake")), "{skipped:?}");
}
