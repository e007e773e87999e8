//! Meters that need a live process: what the kernel says at a process's end, and stalls.

mod common;

use std::path::PathBuf;
use std::process::Command;

use common::{records, scratch, series, Agent};
use serde_json::{json, Value};

/// Fills 48 MiB, sleeps 150 times, and says what the kernel has counted for it so far.
const KNOWN: &str = "
import resource, time
filled = bytearray(b'x') * (48 << 20)
for _ in range(150): time.sleep(0.001)
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_maxrss * 1024, used.ru_minflt, used.ru_majflt, used.ru_nvcsw, used.ru_nivcsw)
";
const QUANTITIES: [&str; 5] =
    ["max_rss", "minor_faults", "major_faults", "voluntary_switches", "involuntary_switches"];
/// Starting and ending a process, and whatever `python3` starts first, faults pages in too.
const FAULTS_BESIDE: f64 = 12_000.0;

/// Runs `argv` to its end; gives what it printed and the five values of the sampler.
fn measured(argv: &[&str]) -> (String, Vec<f64>) {
    let (folder, run) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let path = agent.folder.join("readings.bin");
    agent.ask(
        "sample_start",
        json!({"path": path, "tick_hz": 10.0, "meters": ["proc_rusage"], "subjects": {}}),
    );
    agent.spawn("node", &run, argv);
    let line = agent.line("node");
    agent.event("exit", "node");
    let stopped = agent.ask("sample_stop", json!({}));
    let all = records(&path);
    let value = |quantity: &&str| {
        let wanted = series(&stopped, quantity, "node");
        let found: Vec<f64> = all.iter().filter(|one| one.1 == wanted).map(|one| one.3).collect();
        assert_eq!(found.len(), 1, "{quantity} is written once");
        found[0]
    };
    (line, QUANTITIES.iter().map(value).collect())
}

#[test]
fn what_the_kernel_counted_for_a_process_is_what_it_saw_itself() {
    let (line, found) = measured(&["python3", "-c", KNOWN]);
    let own: Vec<f64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
    assert!(found[0] >= own[0] && found[0] < own[0] + 8e6, "max_rss {} of {}", found[0], own[0]);
    assert!(found[0] > 48e6);
    let faults = own[1]..own[1] + FAULTS_BESIDE;
    assert!(faults.contains(&found[1]), "minor faults {} of {}", found[1], own[1]);
    assert!(found[2] >= own[2] && found[4] >= own[4]);
    assert!(own[3] >= 150.0 && found[3] >= own[3], "switches {} of {}", found[3], own[3]);
}

#[test]
fn the_largest_memory_is_what_gnu_time_says() {
    if Command::new("/usr/bin/time").arg("--version").output().is_err() {
        eprintln!("/usr/bin/time is not here");
        return;
    }
    let words = "%M %R %F %w %c";
    let script = format!("/usr/bin/time -f '{words}' python3 -c \"$0\" 2>&1 >/dev/null");
    let (line, found) = measured(&["sh", "-c", &script, KNOWN]);
    let told: Vec<f64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
    // The shell and `time` are in the tree too: they are smaller, and add what they used.
    assert_eq!(found[0], told[0] * 1024.0);
    for (quantity, (found, told)) in QUANTITIES.iter().zip(found.iter().zip(&told)).skip(1) {
        assert!(found >= told, "{quantity}: {found} of {told}");
    }
    assert!(found[1] < told[1] + FAULTS_BESIDE, "minor faults {} of {}", found[1], told[1]);
}

fn send(pid: i32, signal: i32) {
    // SAFETY: a process that this test started.
    unsafe { libc::kill(pid, signal) };
}

/// The canary's folder in /proc; none before its thread has its name.
fn thread(agent: i32) -> Option<PathBuf> {
    let tasks = std::fs::read_dir(format!("/proc/{agent}/task")).unwrap().flatten();
    let named = |task: &PathBuf| std::fs::read_to_string(task.join("comm")).unwrap_or_default();
    tasks.map(|task| task.path()).find(|task| named(task).trim() == "canary")
}

/// Nanoseconds that the canary has waited in a run queue, and how often it was given a CPU.
fn schedstat(agent: i32) -> (u64, u64) {
    let text = thread(agent).and_then(|task| std::fs::read_to_string(task.join("schedstat")).ok());
    let text = text.unwrap_or_default();
    let mut words = text.split_ascii_whitespace().skip(1).map(|word| word.parse().unwrap());
    (words.next().unwrap_or(0), words.next().unwrap_or(0))
}

/// Gives every busy loop precedence over the canary: whoever sleeps is otherwise served first.
fn stand_back(agent: i32) {
    let task = thread(agent).unwrap();
    let id = task.file_name().unwrap().to_str().unwrap().parse().unwrap();
    // SAFETY: plain system call, about a thread of a process that this test started.
    assert_eq!(unsafe { libc::setpriority(libc::PRIO_PROCESS, id, 19) }, 0);
    // Where the kernel shares CPUs out to sessions first, the agent's has to stand back too.
    let _ = std::fs::write(format!("/proc/{agent}/autogroup"), "19");
}

/// Samples while `disturb` does something to the agent; gives (stall, lateness) of all readings.
fn canary(disturb: impl FnOnce(&mut Agent, &str)) -> Vec<(f64, f64)> {
    let (folder, run) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let path = agent.folder.join("readings.bin");
    agent.ask(
        "sample_start",
        json!({"path": path, "tick_hz": 10.0, "meters": ["canary"], "subjects": {}}),
    );
    common::until("it wakes at its pace", || schedstat(agent.pid()).1 >= 10);
    agent.ask("mark", json!({"name": "begin"}));
    disturb(&mut agent, &run);
    agent.ask("mark", json!({"name": "end"}));
    let stopped = agent.ask("sample_stop", json!({}));
    let of = |quantity: &str| -> Vec<f64> {
        let wanted = series(&stopped, quantity, "machine");
        records(&path).into_iter().filter(|one| one.1 == wanted).map(|one| one.3).collect()
    };
    let (stalls, late) = (of("stall_longest"), of("wake_late_longest"));
    assert_eq!(stalls.len(), late.len());
    stalls.into_iter().zip(late).collect()
}

#[test]
fn a_stopped_agent_is_seen_as_a_stall() {
    let found = canary(|agent, _| {
        send(agent.pid(), libc::SIGSTOP);
        std::thread::sleep(std::time::Duration::from_millis(300));
        send(agent.pid(), libc::SIGCONT);
        // On a busy machine it takes a while until the thread has woken.
        for _ in 0..40 {
            std::thread::sleep(std::time::Duration::from_millis(25));
            agent.ask("mark", json!({"name": "again"}));
        }
    });
    let longest = found.iter().fold(0.0f64, |longest, one| longest.max(one.0));
    assert!(longest > 250e6, "a stop of 300 ms was seen as {found:?}");
}

#[test]
fn load_makes_the_thread_wait_in_its_queue_and_that_is_subtracted() {
    // As many busy loops a CPU as make waiting certain; all end with the agent.
    const LOAD: &str = "for i in 1 2 3 4 5 6 7 8; do (while :; do :; done) & done; echo BUSY; wait";
    const WAIT_NS: u64 = 20_000_000;
    let known = canary(|agent, run| {
        agent.spawn("load", run, &["sh", "-c", LOAD]);
        agent.line("load");
        stand_back(agent.pid());
        let before_ns = schedstat(agent.pid()).0;
        common::until("it waits in its queue", || schedstat(agent.pid()).0 > before_ns + WAIT_NS);
    });
    assert!(known.iter().all(|(stall, late)| stall <= late), "{known:?}");
    let queued: f64 = known.iter().map(|(stall, late)| late - stall).sum();
    assert!(queued > 0.0, "eight busy loops and no time in any queue: {known:?}");
}

#[test]
fn the_canary_is_part_of_the_harness() {
    let (folder, _) = scratch();
    let mut agent = Agent::start(&folder, "none");
    let meters = agent.hello["meters"].as_array().unwrap();
    let named = |name: &str| meters.iter().find(|meter| meter["name"] == json!(name)).unwrap();
    assert_eq!(named("canary")["state"], json!("present"));
    let threads = |agent: &Agent| -> Vec<Value> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", agent.pid())).unwrap();
        let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).ok();
        tasks.flatten().filter_map(name).map(|name| json!(name.trim())).collect()
    };
    assert!(!threads(&agent).contains(&json!("canary")), "it runs while nothing is sampled");
    let path = agent.folder.join("readings.bin");
    agent.ask(
        "sample_start",
        json!({"path": path, "tick_hz": 10.0, "meters": ["canary"], "subjects": {}}),
    );
    common::until("the thread has its name", || threads(&agent).contains(&json!("canary")));
    agent.ask("sample_stop", json!({}));
    common::until("the thread has ended", || !threads(&agent).contains(&json!("canary")));
}
