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
    runs_as(pid, b"serve")
}

fn is_guard(pid: i32) -> bool {
    runs_as(pid, b"guard")
}

/// Whether a process is this program with that first argument.
fn runs_as(pid: i32, verb: &[u8]) -> bool {
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut words = command.split(|byte| *byte == 0);
    let program = words.next().unwrap_or_default();
    program.ends_with(b"wattwire-agent") && words.next() == Some(verb)
}

/// Kills what a lost guard leaves: by cgroup, and by the mark of its run where no guard is above.
pub fn kill_after_guard(subject: &Subject, run: &str) {
    let spared = own_line();
    let until = Instant::now() + Duration::from_secs(2);
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
    for rung in [Rung::V2, Rung::V1] {
        removed.extend(remove_cgroups(rung));
    }
    removed.extend(journal.remove_unused(run));
    removed.extend(shm::remove_left_over(journals, run, is_agent));
    if !run.is_empty() {
        removed.extend(remove_shared_memory(run));
    }
    let removed: Vec<String> = removed.iter().map(|path| path.display().to_string()).collect();
    json!({"killed": killed, "removed": removed})
}

fn kill_marked(run: &str) -> Vec<i32> {
    let spared = own_line();
    let mut killed = Vec::new();
    for pid in members::all() {
        let Some(mark) = mark_of(pid) else { continue };
        let meant = match run.is_empty() {
            true => !has_live_agent(pid),
            false => mark == run,
        };
        if !meant || spared.contains(&pid) {
            continue;
        }
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
fn remove_cgroups(rung: Rung) -> Vec<PathBuf> {
    let Ok(base) = cgroup::base(rung) else { return Vec::new() };
    let mut removed = Vec::new();
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(agent) = name.to_str().and_then(|name| name.strip_prefix("wattwire-")) else {
            continue;
        };
        let Ok(agent) = agent.parse::<i32>() else { continue };
        if is_agent(agent) {
            continue;
        }
        kill_in(&entry.path());
        if cgroup::remove_tree(&entry.path()) {
            removed.push(entry.path());
        }
    }
    removed
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
fn remove_shared_memory(run: &str) -> Vec<PathBuf> {
    let mut removed = Vec::new();
    for entry in fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let named = name.as_bytes().windows(run.len()).any(|part| part == run.as_bytes());
        if named && run.len() >= 4 && fs::remove_file(entry.path()).is_ok() {
            removed.push(entry.path());
        }
    }
    removed
}
