//! The CPUs of processes and of the agent itself.

mod common;

use common::{scratch, Agent};
use serde_json::{json, Value};

fn cpus(agent: &mut Agent) -> Vec<u64> {
    numbers(&agent.request("cpus", json!({}))["allowed"])
}

fn numbers(list: &Value) -> Vec<u64> {
    list.as_array().unwrap().iter().map(|cpu| cpu.as_u64().unwrap()).collect()
}

/// Returns the line `Cpus_allowed_list` of a process or thread.
fn allowed_list(status: &str) -> String {
    let text = std::fs::read_to_string(status).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    line.trim().into()
}

fn order(agent: &Agent, run: &str, name: &str, cpus: Value) -> Value {
    json!({"process": name, "run": run, "argv": ["sleep", "60"], "cpus": cpus,
           "stderr": agent.folder.join(format!("{name}.err"))})
}

fn spawn(agent: &mut Agent, run: &str, name: &str, cpus: Value) -> Value {
    let order = order(agent, run, name, cpus);
    agent.request("spawn", order)
}

#[test]
fn a_process_has_the_cpus_of_its_request_before_it_begins() {
    let (folder, run) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let all = cpus(&mut agent);
    let last = *all.last().unwrap();
    let placed = spawn(&mut agent, &run, "placed", json!([last]));
    let pid = placed["pid"].as_i64().unwrap();
    assert_eq!(allowed_list(&format!("/proc/{pid}/status")), last.to_string());
    let free = spawn(&mut agent, &run, "free", json!([]));
    let own = allowed_list(&format!("/proc/{}/status", agent.pid()));
    assert_eq!(allowed_list(&format!("/proc/{}/status", free["pid"])), own);
}

#[test]
fn a_cpu_that_does_not_exist_is_refused_and_named() {
    let (folder, run) = scratch();
    let mut agent = Agent::start(&folder, "none");
    for cpus in [json!([1000]), json!([0, 1000])] {
        let order = order(&agent, &run, "placed", cpus);
        let message = agent.expect_error("spawn", order, "failed");
        assert!(message.contains("1000"), "{message}");
    }
}

#[test]
fn the_agent_leaves_cpus_and_comes_back() {
    let (folder, run) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let all = cpus(&mut agent);
    agent.expect_error("stay_off", json!({"cpus": all}), "usage");
    let own = format!("/proc/{}/status", agent.pid());
    let before = allowed_list(&own);
    if all.len() < 2 {
        return;
    }
    let reply = agent.request("stay_off", json!({"cpus": [all[0]]}));
    assert_eq!(numbers(&reply["cpus"]), all[1..]);
    for task in std::fs::read_dir(format!("/proc/{}/task", agent.pid())).unwrap() {
        let status = task.unwrap().path().join("status");
        assert_ne!(allowed_list(status.to_str().unwrap()), before);
    }
    // A process may still be given the CPU that the agent has left.
    let placed = spawn(&mut agent, &run, "placed", json!([all[0]]));
    assert_eq!(allowed_list(&format!("/proc/{}/status", placed["pid"])), all[0].to_string());
    agent.request("stay_off", json!({"cpus": []}));
    assert_eq!(allowed_list(&own), before);
    assert_eq!(cpus(&mut agent), all);
}
