//! Kills and removes leftovers, identified by WATTWIRE_RUN in the environment, by cgroup and by
//! name in /dev/shm.

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

/// Returns the run token in a process's environment. None: no token, or the environment is not
/// readable.
fn mark_of(pid: i32) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let entry = environment.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(MARK))?;
    Some(String::from_utf8_lossy(entry).into_owned())
}

/// Returns the live agent to which a process belongs: its nearest ancestor that is an agent. A
/// process cannot leave its agent, because agents and guards are child subreapers.
fn live_agent_of(mut pid: i32) -> Option<i32> {
    while let Some(stat) = Stat::read(pid) {
        pid = stat.parent;
        if is_agent(pid) {
            return Some(pid);
        }
        if pid <= 1 {
            return None;
        }
    }
    None
}

/// Returns whether the process belongs to another live agent, such as that of another host of the
/// same run. That agent ends it.
fn is_of_other_agent(pid: i32) -> bool {
    live_agent_of(pid).is_some_and(|agent| agent != std::process::id() as i32)
}

fn is_agent(pid: i32) -> bool {
    members::is_called(pid, own::AGENT)
}

fn is_guard(pid: i32) -> bool {
    members::is_called(pid, own::GUARD) || is_becoming_guard(pid)
}

/// Returns whether the process was started as a guard but has not set its name yet.
fn is_becoming_guard(pid: i32) -> bool {
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut arguments = command.split(|byte| *byte == 0);
    arguments.next() == Some(own::AGENT.to_bytes())
        && arguments.any(|argument| argument == b"guard")
}

/// Kills the processes that a killed guard leaves: those in its cgroup, and those of the run that
/// have no other guard as an ancestor.
pub fn kill_after_guard(subject: &Subject, run: &str) {
    let excluded = self_and_ancestors();
    let until = Instant::now() + Duration::from_secs(2);
    // The guard's pipe closes before its children get a new parent. Until then they have a guard.
    wait_for_end(subject.guard_pid, Duration::from_secs(2));
    let mut killed = BTreeSet::from([subject.pid]);
    loop {
        let in_cgroup = subject.cgroup.iter().flat_map(Cgroup::pids);
        let unguarded = members::all().into_iter().filter(|pid| {
            mark_of(*pid).as_deref() == Some(run)
                && !is_guard(*pid)
                && !has_guard(*pid)
                && !is_of_other_agent(*pid)
        });
        let orphans: BTreeSet<i32> =
            in_cgroup.chain(unguarded).filter(|pid| !excluded.contains(pid)).collect();
        for pid in &orphans {
            members::kill(*pid, libc::SIGKILL);
            killed.insert(*pid);
        }
        // The agent is a subreaper and therefore the parent of orphans. Reaping them frees their
        // cgroup.
        for pid in &killed {
            reap(*pid, Duration::from_millis(200));
        }
        // The next pass kills processes that were just forked or reparented.
        if orphans.is_empty() || Instant::now() > until {
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

/// Returns this process and its ancestors, which must never be killed.
fn self_and_ancestors() -> Vec<i32> {
    let mut pids = vec![std::process::id() as i32];
    while let Some(stat) = Stat::read(pids[pids.len() - 1]) {
        pids.push(stat.parent);
    }
    pids
}

fn reap(pid: i32, wait: Duration) {
    let until = Instant::now() + wait;
    // SAFETY: a null pointer discards the status. For a process that is not a child of this one,
    // waitpid returns -1 immediately.
    while unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) } == 0
        && Instant::now() < until
    {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Removes the leftovers of run `run`, or of every run whose agent has exited if `run` is empty.
/// `journal` and `journals` record the files in /dev/shm of this agent and of earlier agents.
pub fn clean(run: &str, journal: &Journal, journals: &Path) -> Value {
    let killed = kill_marked(run);
    let mut removed = Vec::new();
    for folder in leftover_cgroups() {
        kill_in(&folder);
        if cgroup::remove_tree(&folder) {
            removed.push(folder);
        }
    }
    removed.extend(journal.remove_unused(run));
    removed.extend(shm::remove_left_over(journals, run));
    if !run.is_empty() {
        removed.extend(shared_memory_of(run).into_iter().filter(|p| fs::remove_file(p).is_ok()));
    }
    answer(&killed, &removed)
}

/// Lists what `clean` would kill and remove.
pub fn look(run: &str, journal: &Journal, journals: &Path) -> Value {
    let mut leftovers = leftover_cgroups();
    leftovers.extend(journal.unused(run));
    leftovers.extend(shm::left_over(journals, run));
    if !run.is_empty() {
        leftovers.extend(shared_memory_of(run));
    }
    answer(&marked(run), &leftovers)
}

fn answer(killed: &[i32], removed: &[PathBuf]) -> Value {
    let removed: Vec<String> = removed.iter().map(|path| path.display().to_string()).collect();
    json!({"killed": killed, "removed": removed})
}

/// Returns the processes of run `run` that belong to this agent or to no live agent. If `run` is
/// empty, returns those of every run whose agent has exited. Excludes this process and its
/// ancestors.
fn marked(run: &str) -> Vec<i32> {
    let excluded = self_and_ancestors();
    let is_leftover = |pid: &i32| match (mark_of(*pid), run.is_empty()) {
        (None, _) => false,
        (Some(_), true) => live_agent_of(*pid).is_none(),
        (Some(mark), false) => mark == run && !is_of_other_agent(*pid),
    };
    members::all().into_iter().filter(|pid| is_leftover(pid) && !excluded.contains(pid)).collect()
}

/// Kills the leftovers and returns those that have ended. A node dies with its guard, perhaps
/// before its own signal.
fn kill_marked(run: &str) -> Vec<i32> {
    let mut pids = marked(run);
    for pid in &pids {
        // The process had the mark immediately before.
        members::kill(*pid, libc::SIGKILL);
    }
    for pid in &pids {
        wait_for_end(*pid, Duration::from_secs(2));
    }
    pids.retain(|pid| has_ended(*pid));
    pids
}

fn has_ended(pid: i32) -> bool {
    Stat::read(pid).is_none_or(|stat| stat.state == 'Z')
}

fn wait_for_end(pid: i32, wait: Duration) {
    let until = Instant::now() + wait;
    while !has_ended(pid) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Returns the cgroups of agents that have exited.
fn leftover_cgroups() -> Vec<PathBuf> {
    let bases = [Rung::V2, Rung::V1].into_iter().filter_map(|rung| cgroup::base(rung).ok());
    let entries = bases.filter_map(|base| fs::read_dir(base).ok()).flatten().flatten();
    entries
        .filter(|entry| cgroup::is_of_ended_agent(&entry.file_name()))
        .map(|entry| entry.path())
        .collect()
}

fn kill_in(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let text = fs::read_to_string(entry.path().join("cgroup.procs")).unwrap_or_default();
        // The cgroups contain only processes of an agent that has exited.
        for pid in members::parse_pids(&text) {
            members::kill(pid, libc::SIGKILL);
        }
        kill_in(&entry.path());
    }
}

/// Returns the files in /dev/shm whose names contain the run's token and that no process of
/// another live agent uses.
fn shared_memory_of(run: &str) -> Vec<PathBuf> {
    let named = |name: &std::ffi::OsStr| {
        run.len() >= 4 && name.as_bytes().windows(run.len()).any(|part| part == run.as_bytes())
    };
    let entries = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let files: Vec<PathBuf> =
        entries.filter(|entry| named(&entry.file_name())).map(|entry| entry.path()).collect();
    if files.is_empty() {
        return files;
    }
    // Agents of one machine may share /dev/shm and the token.
    let others: Vec<i32> =
        members::all().into_iter().filter(|pid| is_of_other_agent(*pid)).collect();
    files.into_iter().filter(|file| !shm::is_used(file, &others)).collect()
}
