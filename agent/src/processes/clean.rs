//! Leftovers: found by WATTWIRE_RUN in their environment, by cgroup, by name in /dev/shm.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{json, Value};

use crate::cgroup::{self, Cgroup, Rung};
use crate::members::{self, Stat};
use crate::meter::Subject;
use crate::own;
use crate::shm::{self, Journal};

const MARK: &[u8] = b"WATTWIRE_RUN=";

/// The run token in a process's environment; None if it has none or cannot be seen.
fn mark_of(pid: i32) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let entry = environment.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(MARK))?;
    Some(String::from_utf8_lossy(entry).into_owned())
}

/// Whether a live agent stands above this process: then it is in use, not left over.
fn has_live_agent(mut pid: i32) -> bool {
    while let Some(stat) = Stat::read(pid) {
        pid = stat.parent;
        if pid <= 1 {
            return false;
        }
        if is_agent(pid) {
            return true;
        }
    }
    false
}

fn is_agent(pid: i32) -> bool {
    members::is_called(pid, own::AGENT)
}

fn is_guard(pid: i32) -> bool {
    members::is_called(pid, own::GUARD) || is_becoming_guard(pid)
}

/// Whether a process was started as a guard: it takes its name a moment after.
fn is_becoming_guard(pid: i32) -> bool {
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut words = command.split(|byte| *byte == 0);
    words.next() == Some(own::AGENT.to_bytes()) && words.any(|word| word == b"guard")
}

/// Kills what a lost guard leaves: by cgroup, and by the mark of its run where no guard is above.
pub fn kill_after_guard(subject: &Subject, run: &str) {
    let spared = own_line();
    let until = Instant::now() + Duration::from_secs(2);
    // Its pipe ends before its children change hands: till then they look guarded.
    gone_within(subject.guard_pid, Duration::from_secs(2));
    let mut killed = BTreeSet::from([subject.pid]);
    loop {
        let in_cgroup = subject.cgroup.iter().flat_map(Cgroup::pids);
        let unguarded = members::all().into_iter().filter(|pid| {
            mark_of(*pid).as_deref() == Some(run) && !is_guard(*pid) && !has_guard(*pid)
        });
        let found: BTreeSet<i32> =
            in_cgroup.chain(unguarded).filter(|pid| !spared.contains(pid)).collect();
        for pid in &found {
            // SAFETY: plain system call.
            unsafe { libc::kill(*pid, libc::SIGKILL) };
            killed.insert(*pid);
        }
        // Orphans come to the agent (it is a subreaper): reaping them frees their cgroup.
        for pid in &killed {
            reap_within(*pid, Duration::from_millis(200));
        }
        // A process that was being born or was changing hands is met in the next pass.
        if found.is_empty() || Instant::now() > until {
            return;
        }
    }
}

fn has_guard(mut pid: i32) -> bool {
    while let Some(stat) = Stat::read(pid) {
        pid = stat.parent;
        if pid <= 1 {
            return false;
        }
        if is_guard(pid) {
            return true;
        }
    }
    false
}

/// This process and all above it: never to be killed.
fn own_line() -> Vec<i32> {
    let mut line = vec![std::process::id() as i32];
    while let Some(stat) = Stat::read(line[line.len() - 1]) {
        line.push(stat.parent);
    }
    line
}

fn reap_within(pid: i32, wait: Duration) {
    let until = Instant::now() + wait;
    // SAFETY: the status is not asked for; a process that is not our child answers -1 at once.
    while unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) } == 0
        && Instant::now() < until
    {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Removes what is left of run `run` (empty: of every run whose agent is gone).
/// `journal` and `journals`: what this agent's and earlier agents' processes had in /dev/shm.
pub fn clean(run: &str, journal: &Journal, journals: &Path) -> Value {
    let killed = kill_marked(run);
    let mut removed = Vec::new();
    for folder in left_cgroups() {
        kill_in(&folder);
        if cgroup::remove_tree(&folder) {
            removed.push(folder);
        }
    }
    removed.extend(journal.remove_unused(run));
    removed.extend(shm::remove_left_over(journals, run, is_agent));
    if !run.is_empty() {
        removed.extend(shared_memory_of(run).into_iter().filter(|p| fs::remove_file(p).is_ok()));
    }
    answer(&killed, &removed)
}

/// What `clean` would do, without doing it.
pub fn look(run: &str, journal: &Journal, journals: &Path) -> Value {
    let mut found = left_cgroups();
    found.extend(journal.unused(run));
    found.extend(shm::left_over(journals, run, is_agent));
    if !run.is_empty() {
        found.extend(shared_memory_of(run));
    }
    answer(&marked(run), &found)
}

fn answer(killed: &[i32], removed: &[PathBuf]) -> Value {
    let removed: Vec<String> = removed.iter().map(|path| path.display().to_string()).collect();
    json!({"killed": killed, "removed": removed})
}

/// Processes of run `run` (empty: of every run whose agent is gone), this one's line excepted.
fn marked(run: &str) -> Vec<i32> {
    let spared = own_line();
    let meant = |pid: &i32| match (mark_of(*pid), run.is_empty()) {
        (None, _) => false,
        (Some(_), true) => !has_live_agent(*pid),
        (Some(mark), false) => mark == run,
    };
    members::all().into_iter().filter(|pid| meant(pid) && !spared.contains(pid)).collect()
}

fn kill_marked(run: &str) -> Vec<i32> {
    let mut killed = Vec::new();
    for pid in marked(run) {
        // SAFETY: plain system call; the mark was read a moment ago.
        if unsafe { libc::kill(pid, libc::SIGKILL) } == 0 {
            killed.push(pid);
        }
    }
    for pid in &killed {
        gone_within(*pid, Duration::from_secs(2));
    }
    killed
}

fn gone_within(pid: i32, wait: Duration) {
    let until = Instant::now() + wait;
    while Stat::read(pid).is_some_and(|stat| stat.state != 'Z') && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Cgroups of agents that are gone.
fn left_cgroups() -> Vec<PathBuf> {
    let bases = [Rung::V2, Rung::V1].into_iter().filter_map(|rung| cgroup::base(rung).ok());
    let entries = bases.filter_map(|base| fs::read_dir(base).ok()).flatten().flatten();
    let left = |name: &std::ffi::OsStr| {
        let agent = name.to_str()?.strip_prefix("wattwire-")?.parse::<i32>().ok()?;
        Some(!is_agent(agent))
    };
    entries
        .filter(|entry| left(&entry.file_name()) == Some(true))
        .map(|entry| entry.path())
        .collect()
}

fn kill_in(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let text = fs::read_to_string(entry.path().join("cgroup.procs")).unwrap_or_default();
        for pid in text.split_ascii_whitespace().filter_map(|word| word.parse::<i32>().ok()) {
            // SAFETY: plain system call; only processes of a dead agent are in its cgroups.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        kill_in(&entry.path());
    }
}

/// Files in /dev/shm whose name holds the run's token.
fn shared_memory_of(run: &str) -> Vec<PathBuf> {
    let named = |name: &std::ffi::OsStr| {
        run.len() >= 4 && name.as_bytes().windows(run.len()).any(|part| part == run.as_bytes())
    };
    let entries = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    entries.filter(|entry| named(&entry.file_name())).map(|entry| entry.path()).collect()
}
