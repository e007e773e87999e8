//! The agent builds each key once and never reuses an incomplete build.

mod common;

use common::{marked, scratch, wait_until, Agent};
use serde_json::{json, Value};
use sha2::Digest;

fn put(agent: &mut Agent, text: &str) -> String {
    use base64::Engine;
    let digest = sha2::Sha256::digest(text);
    let hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let base64 = base64::engine::general_purpose::STANDARD.encode(text);
    agent.request("put", json!({"hash": hash, "base64": base64}));
    hash
}

fn build(key: &str, commands: Value) -> Value {
    json!({"key": key, "files": [], "commands": commands, "env": {}, "timeout_s": 60})
}

#[test]
fn the_first_request_writes_files_and_runs_commands_and_the_second_does_neither() {
    let (folder, _) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let hash = put(&mut agent, "echo $WORD > \"$1/output\"\n");
    let request = json!({
        "key": "k1", "files": [{"path": "sub/make.sh", "hash": hash, "mode": 0o755}],
        "commands": [["sh", "{source}/sub/make.sh", "{build}"]],
        "env": {"WORD": "of {source} and {cache}"}, "timeout_s": 60});
    let first = agent.request("build", request.clone());
    assert_eq!(first["cached"], json!(false));
    let directory = std::path::PathBuf::from(first["directory"].as_str().unwrap());
    let output = std::fs::read_to_string(directory.join("output")).unwrap();
    let (source, compilers) = (directory.join("source"), folder.join("cache/compilers"));
    assert_eq!(output.trim(), format!("of {} and {}", source.display(), compilers.display()));
    std::fs::write(directory.join("added"), "later").unwrap();
    // A finished build needs no lock, so a read-only cache is usable.
    let lock = folder.join("cache/builds/k1.lock");
    std::fs::remove_file(&lock).unwrap();
    std::fs::create_dir(&lock).unwrap();
    let second = agent.request("build", request);
    assert_eq!(second["cached"], json!(true));
    assert_eq!(std::fs::read_to_string(directory.join("added")).unwrap(), "later");
}

#[test]
fn a_build_whose_files_changed_is_built_again() {
    let (folder, _) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let request = build(
        "k",
        json!([["sh", "-c", "echo x > a; ln -s a b; mkdir __pycache__; echo x > __pycache__/c"]]),
    );
    let directory = folder.join("cache/builds/k");
    let change = |text: &str| {
        let script = format!("cd {} && {text}", directory.display());
        assert!(std::process::Command::new("sh").args(["-c", &script]).status().unwrap().success());
    };
    agent.request("build", request.clone());
    for (text, cached) in [
        ("echo y > a", false),
        ("rm a", false),
        ("ln -sf /etc/passwd b", false),
        ("rm a; ln -s /etc/hostname a", false),
        ("touch a", true),
        ("cp -p a kept; echo y > a; touch -r kept a", false),
        ("echo y > __pycache__/c", true),
        ("rm .wattwire-files", false),
        ("echo y > a", false),
    ] {
        change(text);
        let only = json!({"key": "k", "cached_only": true});
        if !cached {
            agent.expect_error("build", only, "absent");
        }
        assert_eq!(agent.request("build", request.clone())["cached"], json!(cached), "{text}");
        assert_eq!(std::fs::read_to_string(directory.join("a")).unwrap(), "x\n");
    }
}

#[test]
fn a_file_whose_content_was_verified_is_not_hashed_again() {
    let (folder, _) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let request = build("k", json!([["sh", "-c", "echo x > a"]]));
    agent.request("build", request.clone());
    let list = folder.join("cache/builds/k/.wattwire-files");
    let first = std::fs::read_to_string(&list).unwrap();
    let times = first.split(' ').nth(1).unwrap();
    std::fs::write(&list, first.replacen(times, "0,0", 1)).unwrap();
    assert_eq!(agent.request("build", request)["cached"], json!(true));
    assert_eq!(std::fs::read_to_string(&list).unwrap(), first);
}

#[test]
fn a_failed_build_reports_its_log_and_the_next_attempt_starts_clean() {
    let (folder, _) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let failing = json!([["touch", "{build}/half"], ["sh", "-c", "echo the reason >&2; exit 3"]]);
    let message = agent.expect_error("build", build("k", failing), "failed");
    assert!(message.contains("exit code 3") && message.contains("the reason"), "{message}");
    let log = folder.join("cache/builds/k.log");
    assert!(std::fs::read_to_string(&log).unwrap().contains("the reason"));
    let retry = agent.request("build", build("k", json!([["test", "!", "-e", "{build}/half"]])));
    assert_eq!(retry["cached"], json!(false));
}

#[test]
fn temporary_files_of_a_build_are_in_its_folder_and_end_with_it() {
    let (folder, _) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let temporary = folder.join("cache/builds/k/tmp");
    let script = "echo $(mktemp) > at; [ ! -e fail ]";
    for commands in
        [json!([["touch", "fail"], ["sh", "-c", script]]), json!([["sh", "-c", script]])]
    {
        let id = agent.send("build", build("k", commands));
        agent.reply(id);
        let at = std::fs::read_to_string(folder.join("cache/builds/k/at")).unwrap();
        assert!(std::path::Path::new(&at).starts_with(&temporary), "{at}");
        assert!(!temporary.exists());
    }
}

#[test]
fn two_builders_of_one_key_build_once() {
    let (folder, _) = scratch();
    let (mut agent, mut other) = (Agent::start(&folder, "none"), Agent::start(&folder, "none"));
    let count = folder.join("count");
    let script = format!("sleep 0.5; echo x >> {}", count.display());
    let request = build("k", json!([["sh", "-c", script]]));
    let (first, second) = (agent.send("build", request.clone()), other.send("build", request));
    let replies = [agent.reply(first), other.reply(second)];
    let cached = replies.map(|reply| reply["cached"] == json!(true));
    assert_eq!(cached.iter().filter(|cached| **cached).count(), 1);
    assert_eq!(std::fs::read_to_string(count).unwrap(), "x\n");
}

#[test]
fn cached_only_does_not_wait_for_a_running_build() {
    let (folder, _) = scratch();
    let (mut maker, mut client) = (Agent::start(&folder, "none"), Agent::start(&folder, "none"));
    let resume = folder.join("resume");
    let script = format!("echo begun; until [ -e {} ]; do sleep 0.05; done", resume.display());
    let building = maker.send("build", build("k", json!([["sh", "-c", script]])));
    maker.wait(|message| message["text"] == json!("begun"));
    let message = client.expect_error("build", json!({"key": "k", "cached_only": true}), "absent");
    assert!(message.contains("not built yet"), "{message}");
    std::fs::write(&resume, "").unwrap();
    assert_eq!(maker.reply(building)["cached"], json!(false));
    assert_eq!(
        client.request("build", json!({"key": "k", "cached_only": true}))["cached"],
        json!(true)
    );
}

#[test]
fn a_build_over_its_time_limit_is_killed_with_its_descendants() {
    let (folder, run) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let key = format!("slow-{run}");
    let mut request = build(&key, json!([["sh", "-c", "setsid sleep 1000 & sleep 1000"]]));
    request["timeout_s"] = json!(0.5);
    let message = agent.expect_error("build", request, "failed");
    assert!(message.contains("exceeded the time limit"), "{message}");
    assert_eq!(marked(&format!("build-{key}")), Vec::<i32>::new());
}

#[test]
fn a_build_ends_with_the_agent_and_remains_incomplete() {
    let (folder, run) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let (key, mark) = (format!("cut-{run}"), format!("build-cut-{run}"));
    agent.send("build", build(&key, json!([["sh", "-c", "echo begun; sleep 1000"]])));
    agent.wait(|message| message["text"] == json!("begun"));
    agent.kill();
    wait_until("the command has ended", || marked(&mark).is_empty());
    let mut next = Agent::start(&folder, "none");
    assert_eq!(next.request("build", build(&key, json!([["true"]])))["cached"], json!(false));
    let other = format!("{key}-2");
    next.send("build", build(&other, json!([["sh", "-c", "echo begun; sleep 1000"]])));
    next.wait(|message| message["text"] == json!("begun"));
    assert_eq!(next.end(), Some(0));
    wait_until("the command has ended", || marked(&format!("build-{other}")).is_empty());
}

#[test]
fn paths_and_keys_cannot_point_outside_the_cache() {
    let (folder, _) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let hash = put(&mut agent, "x");
    for path in ["../up", "/etc/x", "a/../../x", ""] {
        let mut request = build("k", json!([]));
        request["files"] = json!([{"path": path, "hash": hash, "mode": 0o644}]);
        agent.expect_error("build", request, "usage");
    }
    for key in ["../k", "", ".hidden", "a/b"] {
        agent.expect_error("build", build(key, json!([])), "usage");
    }
}
