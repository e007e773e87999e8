//! The agent measures attached processes without affecting them, and measures each process of a
//! tree separately.

mod common;

use std::process::{Child, Command};

use common::{records, scratch, series, wait_until, Agent};
use serde_json::{json, Value};

/// Maximum difference in ns between the agent's CPU time and the process's own: two clock ticks of
/// 10 ms, plus the CPU time used between the two readings.
const TOLERANCE_NS: f64 = 3e7;
/// Uses at least 0.3 s of CPU time and writes its CPU time in ns to a file, with and without its
/// children. Then it sleeps.
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
/// Starts two children that print their CPU time in ns and end, and a child that keeps running.
/// Then it waits for a line. The two children sleep before they end, so that the last reading
/// includes all their CPU time.
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
sleeper = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])
print(*[int(child.communicate()[0]) for child in short], flush=True)
sys.stdin.readline()
sleeper.kill()
sleeper.wait()
";

/// A process that the agent did not start. It ends with the test.
struct Stranger(Child);

impl Stranger {
    fn start(done: &std::path::Path) -> Stranger {
        // Resolves the interpreter, because a launcher such as pyenv's starts other children first.
        let output =
            Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
        let python = String::from_utf8(output.unwrap().stdout).unwrap();
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
    let of_processes =
        |meter: &&Value| meter["quantities"].to_string().contains("\"scope\":\"process\"");
    let names: Vec<Value> =
        meters.iter().filter(of_processes).map(|meter| meter["name"].clone()).collect();
    agent.request("sample_start", json!({"path": path, "tick_hz": 20.0, "meters": names}));
    path
}

fn parse_numbers(text: &str) -> Vec<f64> {
    text.split(' ').map(|word| word.parse().unwrap()).collect()
}

fn member<'a>(reply: &'a Value, argument: &str) -> &'a Value {
    let members = reply["members"].as_array().unwrap();
    let has_argument = |member: &&Value| {
        member["argv"].as_array().unwrap().last().unwrap_or(&Value::Null) == &json!(argument)
    };
    members
        .iter()
        .find(has_argument)
        .unwrap_or_else(|| panic!("no member with the last argument {argument}: {reply}"))
}

#[test]
fn an_attached_process_is_measured_from_its_start_and_outlives_the_agent() {
    let (folder, _) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let done = folder.join("done");
    let mut stranger = Stranger::start(&done);
    let attached = agent.request("attach", json!({"process": "it", "pid": stranger.pid()}));
    assert_eq!(attached["pids"], json!([stranger.pid()]));
    let path = sample(&mut agent);
    let members = agent.request("members", json!({"process": "it"}));
    assert_eq!(members["members"][0]["subject"], json!(format!("it/{}", stranger.pid())));
    wait_until("the worker has written its CPU time", || done.exists());
    let reported = std::fs::read_to_string(&done).unwrap();
    let members = agent.request("members", json!({"process": "it"}));
    assert_eq!(members["members"][0]["ended_ns"], Value::Null);
    let stopped = agent.request("sample_stop", json!({}));
    let subjects = ["it".to_string(), format!("it/{}", stranger.pid())];
    for (subject, truth_ns) in subjects.iter().zip(parse_numbers(&reported)) {
        assert!(truth_ns > 3e8);
        let cpu_series = series(&stopped, "cpu_time", subject);
        let last = records(&path).into_iter().rfind(|record| record.1 == cpu_series).unwrap().3;
        assert!((last - truth_ns).abs() < TOLERANCE_NS, "{subject}: {last}, {truth_ns} ns");
    }
    let refused =
        agent.expect_error("signal", json!({"process": "it", "signal": "KILL"}), "failed");
    assert!(refused.contains("no running process"), "{refused}");
    agent.request("detach", json!({"process": "it"}));
    agent.end();
    assert!(stranger.is_alive());
}

#[test]
fn each_process_of_a_tree_has_its_own_cpu_time() {
    for rung in ["none", "v2"] {
        let (folder, run) = scratch();
        let mut agent = Agent::start(&folder, rung);
        if agent.hello["cgroup"]["rung"] != json!(rung) {
            eprintln!("rung {rung} is not available on this host");
            continue;
        }
        let path = sample(&mut agent);
        agent.spawn("tree", &run, &["python3", "-c", PARENT]);
        agent.request("members", json!({"process": "tree", "period_ms": 20}));
        let reported = agent.line("tree");
        let reply = agent.request("members", json!({"process": "tree"}));
        let sleeper = member(&reply, "import time; time.sleep(60)").clone();
        assert_eq!(sleeper["ended_ns"], Value::Null);
        assert!(sleeper["rss_peak_bytes"].as_u64().unwrap() > 1 << 20);
        let names = ["0.5", "1.0"].map(|argument| {
            let member = member(&reply, argument);
            assert!(member["ended_ns"].is_i64(), "{member}");
            member["subject"].as_str().unwrap().to_string()
        });
        agent.request("write", json!({"process": "tree", "text": "\n"}));
        agent.event("exit", "tree");
        let stopped = agent.request("sample_stop", json!({}));
        for (name, truth_ns) in names.iter().zip(parse_numbers(&reported)) {
            let cpu_series = series(&stopped, "cpu_time", name);
            let last = records(&path).into_iter().rfind(|record| record.1 == cpu_series).unwrap().3;
            let difference_ns = (last - truth_ns).abs();
            assert!(difference_ns < TOLERANCE_NS, "{name}, {rung}: {last}, {truth_ns} ns");
        }
    }
}

/// Starts a child that ends at once, after it has used 64 MiB.
const LATE: &str = "
import subprocess, sys
subprocess.run([sys.executable, '-S', '-c', 'b = bytearray(64 << 20); sum(range(300000))'])
";

#[test]
fn a_command_that_ends_at_once_is_listed_with_its_final_figures() {
    for rung in ["none", "v2"] {
        let (folder, run) = scratch();
        let mut agent = Agent::start(&folder, rung);
        sample(&mut agent);
        let argv = ["sh", "-c", "exit 7"];
        let spawned = agent.request(
            "spawn",
            json!({"process": "it", "run": run, "argv": argv, "stdout": folder.join("out"),
                   "members_period_ms": 10_000}),
        );
        let exit = agent.event("exit", "it");
        assert_eq!(exit.get("reaped"), None);
        let reply = agent.request("members", json!({"process": "it"}));
        let members = reply["members"].as_array().unwrap();
        assert_eq!(members.len(), 1, "{reply}");
        assert_eq!(members[0]["argv"], json!(argv));
        assert_eq!(members[0]["pid"], spawned["pid"]);
        assert_eq!(members[0]["is_final"], json!(true));
        assert_eq!(members[0]["born_ns"], spawned["started_ns"]);
        assert_eq!(members[0]["ended_ns"], exit["t_ns"]);
        assert_eq!(members[0]["rss_peak_bytes"], exit["rusage"]["maxrss_bytes"]);
        assert!(members[0]["cpu_ns"].as_i64().unwrap() > 0);
    }
}

#[test]
fn a_process_between_two_listings_has_its_figures_or_the_reason_is_given() {
    for forced in ["", "none"] {
        let (folder, run) = scratch();
        std::env::set_var("WATTWIRE_EXIT_RECORDS", forced);
        let mut agent = Agent::start(&folder, "none");
        std::env::remove_var("WATTWIRE_EXIT_RECORDS");
        sample(&mut agent);
        let argv = ["python3", "-S", "-c", LATE];
        agent.request(
            "spawn",
            json!({"process": "it", "run": run, "argv": argv, "stdout": folder.join("out"),
                   "members_period_ms": 10_000}),
        );
        let exit = agent.event("exit", "it");
        let reply = agent.request("members", json!({"process": "it"}));
        let members = reply["members"].as_array().unwrap();
        if let Some(reason) = reply["exit_records_missing"].as_str() {
            assert!(reason.contains("exit records"), "{reason}");
            // `wait4` adds the child's figures, so only the CPU time of the parent is its own.
            assert_eq!(members[0]["is_final"], json!(false));
            assert!(members[0]["cpu_ns"].as_i64().unwrap() > 0);
            continue;
        }
        assert_eq!(forced, "");
        let used_ns: i64 = members.iter().map(|m| m["cpu_ns"].as_i64().unwrap()).sum();
        let usage = &exit["rusage"];
        let truth_ns = usage["user_ns"].as_i64().unwrap() + usage["system_ns"].as_i64().unwrap();
        // Only the time in which the child frees its memory is missing.
        assert!(used_ns <= truth_ns && used_ns > truth_ns / 2, "{used_ns}, {truth_ns}");
        let peak = |m: &Value| m["rss_peak_bytes"].as_i64().unwrap();
        let highest = members.iter().map(peak).max().unwrap();
        assert_eq!(highest, usage["maxrss_bytes"].as_i64().unwrap());
        assert!(highest > 64 << 20 && peak(&members[0]) < 64 << 20, "{reply}");
    }
}

#[test]
fn an_attached_cgroup_includes_its_nested_cgroups() {
    let (folder, run) = scratch();
    let mut owner = Agent::start(&folder, "v2");
    if owner.hello["cgroup"]["rung"] != json!("v2") {
        eprintln!("rung v2 is not available on this host");
        return;
    }
    let spawned = owner.spawn("other", &run, &["sleep", "60"]);
    let parent = owner.hello["cgroup"]["path"].as_str().unwrap().to_string();
    let (observer_folder, _) = scratch();
    let mut observer = Agent::start(&observer_folder, "none");
    let attached = observer.request("attach", json!({"process": "group", "cgroup": parent}));
    assert_eq!(attached["pids"], json!([spawned["pid"]]));
    sample(&mut observer);
    let reply = observer.request("members", json!({"process": "group"}));
    assert_eq!(member(&reply, "60")["command"], json!("sleep"));
    observer.request("sample_stop", json!({}));
    observer.end();
    owner.request("signal", json!({"process": "other", "signal": "TERM"}));
    owner.event("exit", "other");
}

#[test]
fn errors_name_the_missing_process_or_cgroup() {
    let (folder, _) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let gone = agent.expect_error("attach", json!({"process": "x", "pid": 4_000_000}), "absent");
    assert!(gone.contains("4000000"), "{gone}");
    let nowhere = folder.join("nowhere");
    agent.expect_error("attach", json!({"process": "x", "cgroup": nowhere}), "absent");
    agent.expect_error("attach", json!({"process": "x"}), "usage");
    agent.expect_error("members", json!({"process": "x"}), "usage");
    sample(&mut agent);
    let unknown = agent.expect_error("members", json!({"process": "x"}), "failed");
    assert!(unknown.contains("\"x\""), "{unknown}");
    agent.expect_error("detach", json!({"process": "x"}), "failed");
}
