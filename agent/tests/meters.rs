//! Tests of meters that need a live process: the kernel's counts at a process's end, and stalls.

mod common;

use std::path::PathBuf;
use std::process::Command;

use common::{records, scratch, series, Agent};
use serde_json::{json, Value};

/// Fills 48 MiB, sleeps 150 times, and prints the kernel's counts for this process.
const PROGRAM: &str = "
import resource, time
filled = bytearray(b'x') * (48 << 20)
for _ in range(150): time.sleep(0.001)
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_maxrss * 1024, used.ru_minflt, used.ru_majflt, used.ru_nvcsw, used.ru_nivcsw)
";
const QUANTITIES: [&str; 5] =
    ["max_rss", "minor_faults", "major_faults", "voluntary_switches", "involuntary_switches"];
/// Maximum number of page faults outside the program: the start and end of processes, including
/// those that `python3` starts first.
const EXTRA_FAULTS_MAX: f64 = 12_000.0;

/// Runs `argv` until it ends. Returns its output and the sampler's five values.
fn measured(argv: &[&str]) -> (String, Vec<f64>) {
    let (folder, run) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let path = agent.folder.join("readings.bin");
    agent.request(
        "sample_start",
        json!({"path": path, "tick_hz": 10.0, "meters": ["proc_rusage"], "subjects": {}}),
    );
    agent.spawn("node", &run, argv);
    let line = agent.line("node");
    agent.event("exit", "node");
    let stopped = agent.request("sample_stop", json!({}));
    let all = records(&path);
    let value = |quantity: &&str| {
        let series = series(&stopped, quantity, "node");
        let values: Vec<f64> =
            all.iter().filter(|record| record.1 == series).map(|record| record.3).collect();
        assert_eq!(values.len(), 1, "{quantity} has a single record");
        values[0]
    };
    (line, QUANTITIES.iter().map(value).collect())
}

#[test]
fn the_kernels_counts_agree_with_getrusage_in_the_process() {
    let (line, values) = measured(&["python3", "-c", PROGRAM]);
    let truth: Vec<f64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
    let rss_bytes = truth[0]..truth[0] + 8e6;
    assert!(rss_bytes.contains(&values[0]), "max_rss {} of {}", values[0], truth[0]);
    assert!(values[0] > 48e6);
    let faults = truth[1]..truth[1] + EXTRA_FAULTS_MAX;
    assert!(faults.contains(&values[1]), "minor faults {} of {}", values[1], truth[1]);
    assert!(values[2] >= truth[2] && values[4] >= truth[4]);
    assert!(truth[3] >= 150.0 && values[3] >= truth[3], "switches {} of {}", values[3], truth[3]);
}

#[test]
fn the_maximum_memory_agrees_with_gnu_time() {
    if Command::new("/usr/bin/time").arg("--version").output().is_err() {
        eprintln!("/usr/bin/time is not installed");
        return;
    }
    let format = "%M %R %F %w %c";
    let script = format!("/usr/bin/time -f '{format}' python3 -c \"$0\" 2>&1 >/dev/null");
    let (line, values) = measured(&["sh", "-c", &script, PROGRAM]);
    let truth: Vec<f64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
    // The tree also contains the shell and `time`. They need less memory and add to the counts.
    assert_eq!(values[0], truth[0] * 1024.0);
    for (quantity, (value, truth)) in QUANTITIES.iter().zip(values.iter().zip(&truth)).skip(1) {
        assert!(value >= truth, "{quantity}: {value} of {truth}");
    }
    assert!(values[1] < truth[1] + EXTRA_FAULTS_MAX, "minor faults {} of {}", values[1], truth[1]);
}

fn send(pid: i32, signal: i32) {
    // SAFETY: plain system call on a process that this test started.
    unsafe { libc::kill(pid, signal) };
}

/// Returns the canary's folder in /proc. None: its thread has not set its name yet.
fn thread(agent: i32) -> Option<PathBuf> {
    let tasks = std::fs::read_dir(format!("/proc/{agent}/task")).unwrap().flatten();
    let named = |task: &PathBuf| std::fs::read_to_string(task.join("comm")).unwrap_or_default();
    tasks.map(|task| task.path()).find(|task| named(task).trim() == "canary")
}

/// Returns the canary's time in a run queue in ns and the number of times it was scheduled.
fn schedstat(agent: i32) -> (u64, u64) {
    let text = thread(agent).and_then(|task| std::fs::read_to_string(task.join("schedstat")).ok());
    let text = text.unwrap_or_default();
    let mut words = text.split_ascii_whitespace().skip(1).map(|word| word.parse().unwrap());
    (words.next().unwrap_or(0), words.next().unwrap_or(0))
}

/// Gives every busy loop precedence over the canary. By default the scheduler prefers a thread
/// that sleeps.
fn lower_priority(agent: i32) {
    let task = thread(agent).unwrap();
    let id = task.file_name().unwrap().to_str().unwrap().parse().unwrap();
    // SAFETY: plain system call on a thread of a process that this test started.
    assert_eq!(unsafe { libc::setpriority(libc::PRIO_PROCESS, id, 19) }, 0);
    // With autogroups the kernel schedules sessions first, so the agent's session needs a low
    // priority too.
    let _ = std::fs::write(format!("/proc/{agent}/autogroup"), "19");
}

/// Samples while `disturb` runs. Returns (stall, lateness) in ns of all readings.
fn canary(disturb: impl FnOnce(&mut Agent, &str)) -> Vec<(f64, f64)> {
    let (folder, run) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let path = agent.folder.join("readings.bin");
    agent.request(
        "sample_start",
        json!({"path": path, "tick_hz": 10.0, "meters": ["canary"], "subjects": {}}),
    );
    common::wait_until("the canary has woken 10 times", || schedstat(agent.pid()).1 >= 10);
    agent.request("mark", json!({"name": "begin"}));
    disturb(&mut agent, &run);
    agent.request("mark", json!({"name": "end"}));
    let stopped = agent.request("sample_stop", json!({}));
    let of = |quantity: &str| -> Vec<f64> {
        let series = series(&stopped, quantity, "machine");
        let records = records(&path).into_iter().filter(|record| record.1 == series);
        records.map(|record| record.3).collect()
    };
    let (stalls, late) = (of("stall_longest"), of("wake_late_longest"));
    assert_eq!(stalls.len(), late.len());
    stalls.into_iter().zip(late).collect()
}

#[test]
fn the_canary_detects_a_stopped_agent_as_a_stall() {
    let readings = canary(|agent, _| {
        send(agent.pid(), libc::SIGSTOP);
        std::thread::sleep(std::time::Duration::from_millis(300));
        send(agent.pid(), libc::SIGCONT);
        // On a busy machine the thread may need some time to wake.
        for _ in 0..40 {
            std::thread::sleep(std::time::Duration::from_millis(25));
            agent.request("mark", json!({"name": "again"}));
        }
    });
    let longest_ns = readings.iter().fold(0.0f64, |longest_ns, (stall, _)| longest_ns.max(*stall));
    assert!(longest_ns > 250e6, "no stall above 250 ms for a stop of 300 ms: {readings:?}");
}

#[test]
fn a_stall_excludes_the_time_in_the_run_queue() {
    // Enough busy loops per CPU to make the canary wait. All of them end with the agent.
    const LOAD: &str = "for i in 1 2 3 4 5 6 7 8; do (while :; do :; done) & done; echo BUSY; wait";
    const WAIT_NS: u64 = 20_000_000;
    let readings = canary(|agent, run| {
        agent.spawn("load", run, &["sh", "-c", LOAD]);
        agent.line("load");
        lower_priority(agent.pid());
        let before_ns = schedstat(agent.pid()).0;
        common::wait_until("the canary has waited in its run queue", || {
            schedstat(agent.pid()).0 > before_ns + WAIT_NS
        });
    });
    assert!(readings.iter().all(|(stall, late)| stall <= late), "{readings:?}");
    let queued_ns: f64 = readings.iter().map(|(stall, late)| late - stall).sum();
    assert!(queued_ns > 0.0, "eight busy loops, but no time in a run queue: {readings:?}");
}

#[test]
fn the_canary_thread_runs_only_during_sampling() {
    let (folder, _) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let meters = agent.hello["meters"].as_array().unwrap();
    let canary = meters.iter().find(|meter| meter["name"] == json!("canary")).unwrap();
    assert_eq!(canary["state"], json!("present"));
    let threads = |agent: &Agent| -> Vec<Value> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", agent.pid())).unwrap();
        let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).ok();
        tasks.flatten().filter_map(name).map(|name| json!(name.trim())).collect()
    };
    assert!(!threads(&agent).contains(&json!("canary")), "the canary runs without a sampling");
    let path = agent.folder.join("readings.bin");
    agent.request(
        "sample_start",
        json!({"path": path, "tick_hz": 10.0, "meters": ["canary"], "subjects": {}}),
    );
    common::wait_until("the thread has its name", || threads(&agent).contains(&json!("canary")));
    agent.request("sample_stop", json!({}));
    common::wait_until("the thread has ended", || !threads(&agent).contains(&json!("canary")));
}
