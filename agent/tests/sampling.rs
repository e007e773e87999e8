//! Tests of the sampler with real processes.

mod common;

use common::{records, scratch, series, Agent};
use serde_json::{json, Value};

/// Uses CPU time in threads that end, prints a line, and waits for input.
const THREADS: &str = "
import sys, threading, time
def work():
    end = time.thread_time() + 0.25
    while time.thread_time() < end: pass
for _ in range(4):
    threads = [threading.Thread(target=work) for _ in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
print('WORKED', flush=True)
sys.stdin.readline()
";

/// Uses CPU time in short-lived children that start and end between samples.
const CHILDREN: &str = "
import os, sys, time
for _ in range(100):
    pid = os.fork()
    if pid == 0:
        end = time.process_time() + 0.02
        while time.process_time() < end: pass
        os._exit(0)
    os.waitpid(pid, 0)
print('WORKED', flush=True)
sys.stdin.readline()
";

fn start(agent: &mut Agent, meters: &[&str], tick_hz: f64) -> std::path::PathBuf {
    let path = agent.folder.join("readings.bin");
    agent.request(
        "sample_start",
        json!({"path": path, "tick_hz": tick_hz, "meters": meters, "subjects": {}}),
    );
    path
}

fn meter_of_process_cpu(agent: &Agent) -> String {
    let meters = agent.hello["meters"].as_array().unwrap();
    let has_cpu_time = |meter: &&Value| {
        meter["quantities"].as_array().unwrap().iter().any(|quantity| {
            quantity["name"] == json!("cpu_time") && quantity["scope"] == json!("process")
        })
    };
    meters.iter().find(has_cpu_time).unwrap()["name"].as_str().unwrap().to_string()
}

fn relative_error(value: f64, truth: f64) -> f64 {
    (value - truth).abs() / truth
}

/// Returns the relative difference between the sampler's CPU time and the guard's sum, at the mark
/// after the work and at the end. Returns None if this host does not have the cgroup rung.
fn cpu_time_errors(program: &str, rung: &str) -> Option<(f64, f64)> {
    let (folder, run) = scratch();
    let mut agent = Agent::start(&folder, rung);
    if agent.hello["cgroup"]["rung"] != json!(rung) {
        eprintln!("rung {rung} is not available on this host");
        return None;
    }
    let meter = meter_of_process_cpu(&agent);
    let path = start(&mut agent, &[&meter], 10.0);
    agent.spawn("node", &run, &["python3", "-c", program]);
    assert_eq!(agent.line("node"), "WORKED");
    let marked_ns = agent.request("mark", json!({"name": "worked"}))["t_ns"].as_i64().unwrap();
    agent.request("write", json!({"process": "node", "text": "\n"}));
    let exit = agent.event("exit", "node");
    let usage = &exit["rusage"];
    let truth = usage["user_ns"].as_f64().unwrap() + usage["system_ns"].as_f64().unwrap();
    let stopped = agent.request("sample_stop", json!({}));
    let series = series(&stopped, "cpu_time", "node");
    let of_node: Vec<_> = records(&path).into_iter().filter(|record| record.1 == series).collect();
    assert!(of_node.windows(2).all(|pair| pair[0].3 <= pair[1].3), "the counter decreased");
    let marked = of_node.iter().find(|record| record.0 >= marked_ns).unwrap().3;
    let last = of_node.last().unwrap().3;
    Some((relative_error(marked, truth), relative_error(last, truth)))
}

#[test]
fn a_mark_at_a_later_time_needs_no_request_then() {
    let (folder, _) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let meter = meter_of_process_cpu(&agent);
    start(&mut agent, &[meter.as_str()], 1.0);
    let clock = agent.request("clock", json!({"count": 1}));
    let now_ns = clock["triples"][0]["monotonic_ns"].as_i64().unwrap();
    let at_ns = now_ns + 200_000_000;
    let reply = agent.request("mark", json!({"name": "window_begin", "at_ns": at_ns}));
    assert_eq!(reply["t_ns"], json!(at_ns));
    let never_ns = now_ns + 3_600_000_000_000;
    agent.request("mark", json!({"name": "never", "at_ns": never_ns}));
    std::thread::sleep(std::time::Duration::from_millis(400));
    let stopped = agent.request("sample_stop", json!({}));
    let marks = stopped["marks"].as_array().unwrap();
    assert_eq!(marks.len(), 1, "{marks:?}");
    assert_eq!(marks[0]["name"], json!("window_begin"));
    assert!(marks[0]["t_ns"].as_i64().unwrap() >= at_ns);
}

#[test]
fn cpu_time_agrees_with_the_guards_sum() {
    for (name, program) in [("ended threads", THREADS), ("ended children", CHILDREN)] {
        for rung in ["none", "v1", "v2"] {
            let Some((marked, last)) = cpu_time_errors(program, rung) else { continue };
            eprintln!("{name}, rung {rung}: mark {:.3} %, end {:.3} %", marked * 1e2, last * 1e2);
            assert!(last < 0.01, "{name}, rung {rung}: {last}");
            // The mark precedes the interpreter's shutdown, which takes a few ms.
            assert!(marked < 0.02, "{name}, rung {rung}: {marked}");
        }
    }
}

#[test]
fn the_file_agrees_with_the_reply_and_has_records_for_every_mark() {
    let (folder, _) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let path = start(&mut agent, &["fake"], 100.0);
    std::thread::sleep(std::time::Duration::from_millis(300));
    let mark = agent.request("mark", json!({"name": "go"}))["t_ns"].as_i64().unwrap();
    let stopped = agent.request("sample_stop", json!({}));
    let all = records(&path);
    assert_eq!(stopped["samples"], json!(all.len()));
    assert_eq!(stopped["dropped"], json!(0));
    assert_eq!(stopped["marks"], json!([{"name": "go", "t_ns": mark}]));
    assert!(all.iter().any(|record| (0..1_000_000).contains(&(record.0 - mark))));
    let description: Value =
        serde_json::from_slice(&std::fs::read(path.with_extension("bin.json")).unwrap()).unwrap();
    assert_eq!(description["series"], stopped["series"]);
    let energy = series(&stopped, "energy", "package-0");
    let of_energy: Vec<_> = all.iter().filter(|record| record.1 == energy).collect();
    let (first, last) = (of_energy[0], of_energy[of_energy.len() - 1]);
    let watts = (last.3 - first.3) / ((last.0 - first.0) as f64 / 1e3);
    assert!((watts - 2.0).abs() < 1e-3, "expected 2 W from the test meter; found {watts} W");
}

#[test]
fn a_controller_that_does_not_read_does_not_block_the_sampler() {
    let (folder, run) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let path = start(&mut agent, &["fake"], 50.0);
    let print = "i=0; while [ $i -lt 20000 ]; do echo a line of forty characters, more or less; \
                 i=$((i+1)); done; echo LAST";
    agent.spawn("loud", &run, &["sh", "-c", print]);
    // By now the node has printed more than a pipe can hold, and the controller has read nothing.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let before = records_so_far(&mut agent, &path);
    assert!(before >= 50, "{before} records in 1.5 s at 50 Hz");
    let mut lines = 0;
    while agent.line("loud") != "LAST" {
        lines += 1;
    }
    assert_eq!(lines, 20000);
}

/// Ends the sampling without reading the pipe, and returns the number of records.
fn records_so_far(agent: &mut Agent, path: &std::path::Path) -> usize {
    agent.send("sample_stop", json!({}));
    common::wait_until("the sampling is written", || path.with_extension("bin.json").exists());
    records(path).len()
}

#[test]
fn only_the_requested_subjects_are_measured_even_if_they_start_later() {
    let (folder, run) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let meter = meter_of_process_cpu(&agent);
    agent.spawn("early", &run, &["sleep", "1000"]);
    let path = agent.folder.join("readings.bin");
    agent.request(
        "sample_start",
        json!({"path": path, "tick_hz": 20, "meters": [meter],
               "subjects": {"early": {}, "late": {}}}),
    );
    agent.spawn("late", &run, &["sleep", "1000"]);
    agent.spawn("other", &run, &["sleep", "1000"]);
    let stopped = agent.request("sample_stop", json!({}));
    let subjects: Vec<&str> = stopped["series"]
        .as_array()
        .unwrap()
        .iter()
        .map(|series| series["subject"].as_str().unwrap())
        .collect();
    assert_eq!(subjects, ["agent", "early", "late"]);
    assert_eq!(stopped["series"][0]["scope"], json!("harness"));
}

#[test]
fn errors_of_sample_start_name_the_allowed_values() {
    let (folder, _) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let path = agent.folder.join("x.bin");
    let request = |meters: Value, tick_hz: f64| {
        let mut request = json!({"path": path, "tick_hz": tick_hz, "subjects": {}});
        request["meters"] = meters;
        request
    };
    let message =
        agent.expect_error("sample_start", request(json!(["no_such_meter"]), 10.0), "usage");
    assert!(message.contains("known:") && message.contains("fake"), "{message}");
    let message = agent.expect_error("sample_start", request(json!(["fake"]), 0.0), "usage");
    assert!(message.contains("tick_hz"), "{message}");
    agent.expect_error("mark", json!({"name": "x"}), "usage");
    agent.expect_error("sample_stop", json!({}), "usage");
    agent.request("sample_start", request(json!(["fake"]), 10.0));
    agent.expect_error("sample_start", request(json!(["fake"]), 10.0), "busy");
}
