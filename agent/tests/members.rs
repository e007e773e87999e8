//! What runs already is measured and left alone; each process of a tree is a subject of its own.

mod common;

use std::process::{Child, Command};

use common::{records, scratch, series, until, Agent};
use serde_json::{json, Value};

/// CPU time (ns) that a reading may differ by from what the process said of itself: two clock ticks
/// of 10 ms, and what it used between.
const TOLERANCE_NS: f64 = 3e7;
/// Uses 0.3 s of CPU and a little, says in a file how much (ns), first with its children, then
/// alone, and goes on sleeping.
const WORKER: &str = "
import os, resource, sys, time
while time.process_time() < 0.3: pass
children = resource.getrusage(resource.RUSAGE_CHILDREN)
alone_ns = time.process_time_ns()
with_children_ns = alone_ns + 1e9 * (children.ru_utime + children.ru_stime)
with open(sys.argv[1] + '.part', 'w') as part: print(with_children_ns, alone_ns, file=part, end='')
os.rename(part.name, sys.argv[1])
time.sleep(60)
";
/// Two children that say how much CPU time (ns) they used and end, one that stays; then waits for a
/// line. The children rest before their end, so that a reading finds all that they used.
const PARENT: &str = "
import subprocess, sys
code = '''
import sys, time
while time.process_time() < float(sys.argv[1]): pass
print(time.process_time_ns(), flush=True)
time.sleep(0.5)
'''
command = [sys.executable, '-c', code]
short = [subprocess.Popen([*command, s], stdout=subprocess.PIPE) for s in ('0.5', '1.0')]
stays = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])
print(*[int(child.communicate()[0]) for child in short], flush=True)
sys.stdin.readline()
stays.kill()
stays.wait()
";

/// A process that is not the agent's, ended with the test.
struct Stranger(Child);

impl Stranger {
    fn start(done: &std::path::Path) -> Stranger {
        // A launcher of Python (pyenv's) has children of its own before Python begins.
        let asked =
            Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
        let python = String::from_utf8(asked.unwrap().stdout).unwrap();
        let mut command = Command::new(python.trim());
        command.args(["-c", WORKER]).arg(done);
        Stranger(command.spawn().unwrap())
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn is_alive(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn sample(agent: &mut Agent) -> std::path::PathBuf {
    let path = agent.folder.join("readings.bin");
    let meters: Vec<Value> = agent.hello["meters"].as_array().unwrap().clone();
    let wanted = |meter: &&Value| meter["quantities"].to_string().contains("\"scope\":\"process\"");
    let names: Vec<Value> = meters.iter().filter(wanted).map(|one| one["name"].clone()).collect();
    agent.ask("sample_start", json!({"path": path, "tick_hz": 20.0, "meters": names}));
    path
}

fn numbers(told: &str) -> Vec<f64> {
    told.split(' ').map(|one| one.parse().unwrap()).collect()
}

fn member<'a>(reply: &'a Value, argument: &str) -> &'a Value {
    let members = reply["members"].as_array().unwrap();
    let named = |one: &&Value| {
        one["argv"].as_array().unwrap().last().unwrap_or(&Value::Null) == &json!(argument)
    };
    members.iter().find(named).unwrap_or_else(|| panic!("no member ends in {argument}: {reply}"))
}

#[test]
fn an_attached_process_is_measured_from_its_birth_and_outlives_the_agent() {
    let (folder, _) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let done = folder.join("done");
    let mut stranger = Stranger::start(&done);
    let attached = agent.ask("attach", json!({"process": "it", "pid": stranger.pid()}));
    assert_eq!(attached["pids"], json!([stranger.pid()]));
    let path = sample(&mut agent);
    let members = agent.ask("members", json!({"process": "it"}));
    assert_eq!(members["members"][0]["subject"], json!(format!("it/{}", stranger.pid())));
    until("the worker has worked", || done.exists());
    let told = std::fs::read_to_string(&done).unwrap();
    let members = agent.ask("members", json!({"process": "it"}));
    assert_eq!(members["members"][0]["ended_ns"], Value::Null);
    let stopped = agent.ask("sample_stop", json!({}));
    let subjects = ["it".to_string(), format!("it/{}", stranger.pid())];
    for (subject, truth_ns) in subjects.iter().zip(numbers(&told)) {
        assert!(truth_ns > 3e8);
        let wanted = series(&stopped, "cpu_time", subject);
        let last = records(&path).into_iter().rfind(|record| record.1 == wanted).unwrap().3;
        assert!((last - truth_ns).abs() < TOLERANCE_NS, "{subject}: {last}, {truth_ns} ns");
    }
    let refused = agent.refused("signal", json!({"process": "it", "signal": "KILL"}), "failed");
    assert!(refused.contains("no running process"), "{refused}");
    agent.ask("detach", json!({"process": "it"}));
    agent.end();
    assert!(stranger.is_alive());
}

#[test]
fn each_process_of_a_tree_has_its_own_cpu_time() {
    for rung in ["none", "v2"] {
        let (folder, run) = scratch();
        let mut agent = Agent::start(&folder, rung);
        if agent.hello["cgroup"]["rung"] != json!(rung) {
            eprintln!("rung {rung} is not to be had here");
            continue;
        }
        let path = sample(&mut agent);
        agent.spawn("tree", &run, &["python3", "-c", PARENT]);
        agent.ask("members", json!({"process": "tree", "period_ms": 20}));
        let told = agent.line("tree");
        let reply = agent.ask("members", json!({"process": "tree"}));
        let stays = member(&reply, "import time; time.sleep(60)").clone();
        assert_eq!(stays["ended_ns"], Value::Null);
        assert!(stays["rss_peak_bytes"].as_u64().unwrap() > 1 << 20);
        let names = ["0.5", "1.0"].map(|argument| {
            let member = member(&reply, argument);
            assert!(member["ended_ns"].is_i64(), "{member}");
            member["subject"].as_str().unwrap().to_string()
        });
        agent.ask("write", json!({"process": "tree", "text": "\n"}));
        agent.event("exit", "tree");
        let stopped = agent.ask("sample_stop", json!({}));
        for (name, truth_ns) in names.iter().zip(numbers(&told)) {
            let wanted = series(&stopped, "cpu_time", name);
            let last = records(&path).into_iter().rfind(|record| record.1 == wanted).unwrap().3;
            let off_ns = (last - truth_ns).abs();
            assert!(off_ns < TOLERANCE_NS, "{name}, {rung}: {last}, {truth_ns} ns");
        }
    }
}

#[test]
fn an_attached_cgroup_is_read_with_what_is_below_it() {
    let (folder, run) = scratch();
    let mut owner = Agent::start(&folder, "v2");
    if owner.hello["cgroup"]["rung"] != json!("v2") {
        eprintln!("rung v2 is not to be had here");
        return;
    }
    let spawned = owner.spawn("other", &run, &["sleep", "60"]);
    let parent = owner.hello["cgroup"]["path"].as_str().unwrap().to_string();
    let (observer_folder, _) = scratch();
    let mut observer = Agent::start(&observer_folder, "none");
    let attached = observer.ask("attach", json!({"process": "group", "cgroup": parent}));
    assert_eq!(attached["pids"], json!([spawned["pid"]]));
    sample(&mut observer);
    let reply = observer.ask("members", json!({"process": "group"}));
    assert_eq!(member(&reply, "60")["command"], json!("sleep"));
    observer.ask("sample_stop", json!({}));
    observer.end();
    owner.ask("signal", json!({"process": "other", "signal": "TERM"}));
    owner.event("exit", "other");
}

#[test]
fn what_is_not_there_is_named() {
    let (folder, _) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let gone = agent.refused("attach", json!({"process": "x", "pid": 4_000_000}), "absent");
    assert!(gone.contains("4000000"), "{gone}");
    let nowhere = folder.join("nowhere");
    agent.refused("attach", json!({"process": "x", "cgroup": nowhere}), "absent");
    agent.refused("attach", json!({"process": "x"}), "usage");
    agent.refused("members", json!({"process": "x"}), "usage");
    sample(&mut agent);
    let unknown = agent.refused("members", json!({"process": "x"}), "failed");
    assert!(unknown.contains("\"x\""), "{unknown}");
    agent.refused("detach", json!({"process": "x"}), "failed");
}
