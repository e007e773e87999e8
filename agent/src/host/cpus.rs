//! The CPUs of this host: their topology, and on which of them this agent and its processes run.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use serde_json::{json, Value};

use crate::protocol::{Answer, Kind, Nothing, Problem, StayOff};
use crate::tree::Tree;

const FOLDER: &str = "sys/devices/system/cpu";

/// Returns a set for sched_setaffinity. CPUs beyond its size are left out.
pub fn set_of(cpus: impl IntoIterator<Item = u32>) -> libc::cpu_set_t {
    // SAFETY: zero is an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for cpu in cpus.into_iter().filter(|cpu| *cpu < libc::CPU_SETSIZE as u32) {
        // SAFETY: the CPU is smaller than the set's size.
        unsafe { libc::CPU_SET(cpu as usize, &mut set) };
    }
    set
}

/// Returns the CPUs on which a thread may run. 0 is the calling thread.
pub fn allowed(tid: i32) -> io::Result<BTreeSet<u32>> {
    let mut set = set_of([]);
    let size = std::mem::size_of::<libc::cpu_set_t>();
    // SAFETY: `set` has this size.
    if unsafe { libc::sched_getaffinity(tid, size, &mut set) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: every index is smaller than the set's size.
    let is_set = |cpu: &u32| unsafe { libc::CPU_ISSET(*cpu as usize, &set) };
    Ok((0..libc::CPU_SETSIZE as u32).filter(is_set).collect())
}

/// Restricts a thread to these CPUs.
fn restrict(tid: i32, cpus: &BTreeSet<u32>) -> io::Result<()> {
    let set = set_of(cpus.iter().copied());
    // SAFETY: `set` has this size.
    match unsafe { libc::sched_setaffinity(tid, std::mem::size_of_val(&set), &set) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The CPUs of this agent, which it inherited and can leave for a time.
pub struct OwnCpus {
    inherited: BTreeSet<u32>,
}

impl OwnCpus {
    pub fn inherited() -> OwnCpus {
        OwnCpus { inherited: allowed(0).unwrap_or_default() }
    }

    /// Lists the CPUs that this agent's processes may use, with their place in the topology.
    pub fn describe(&self, _: Nothing, tree: &Tree) -> Answer {
        let online: BTreeSet<u32> = match tree.text(&format!("{FOLDER}/online")) {
            Ok(text) => parse_list(&text).collect(),
            Err(_) => self.inherited.clone(),
        };
        let cpus: Vec<Value> = online.iter().map(|cpu| describe(tree, *cpu)).collect();
        Ok(json!({"allowed": self.inherited, "cpus": cpus}))
    }

    /// Moves all threads of this agent off these CPUs. An empty list ends this.
    pub fn stay_off(&self, request: &StayOff) -> Answer {
        let off: BTreeSet<u32> = request.cpus.iter().copied().collect();
        let rest: BTreeSet<u32> = self.inherited.difference(&off).copied().collect();
        if rest.is_empty() {
            let message = format!(
                "stay_off: cpus: found {off:?}, which are all CPUs of this agent; allowed: a list \
                 that leaves one of {:?}",
                self.inherited
            );
            return Err(Problem::new(Kind::Usage, message));
        }
        for task in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
            let tid = task.file_name().to_str().and_then(|name| name.parse().ok());
            // A thread that ended meanwhile needs no place.
            tid.map(|tid| restrict(tid, &rest));
        }
        Ok(json!({"cpus": rest}))
    }
}

/// Describes a CPU. A file that the kernel does not have is null: nothing is then known to be
/// shared.
fn describe(tree: &Tree, cpu: u32) -> Value {
    let number = |path: &str| -> Option<i64> {
        tree.text(&format!("{FOLDER}/cpu{cpu}/{path}")).ok()?.parse().ok()
    };
    json!({"cpu": cpu, "core": number("topology/core_id"),
           "package": number("topology/physical_package_id"), "cache": last_cache(tree, cpu)})
}

/// Returns the first CPU that shares this CPU's last-level cache, which identifies the cache.
fn last_cache(tree: &Tree, cpu: u32) -> Option<u32> {
    let folder = format!("{FOLDER}/cpu{cpu}/cache");
    let indices = tree.list(&folder).ok()?;
    let level = |index: &&String| -> i64 {
        let text = tree.text(&format!("{folder}/{index}/level")).unwrap_or_default();
        text.parse().unwrap_or(-1)
    };
    let last = indices.iter().filter(|name| name.starts_with("index")).max_by_key(level)?;
    let shared = tree.text(&format!("{folder}/{last}/shared_cpu_list")).ok()?;
    let first = parse_list(&shared).next();
    first
}

/// Parses a list of the kernel, such as `0-3,8`.
fn parse_list(text: &str) -> impl Iterator<Item = u32> + '_ {
    text.trim()
        .split(',')
        .filter_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?)
        })
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_the_kernel_contains_numbers_and_ranges() {
        assert_eq!(parse_list("0-3,8,10-11\n").collect::<Vec<_>>(), [0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(parse_list("").count(), 0);
    }

    #[test]
    fn a_set_has_the_cpus_that_the_thread_may_use() {
        let own = allowed(0).unwrap();
        let copy = set_of(own.iter().copied());
        // SAFETY: plain function on a set.
        assert_eq!(unsafe { libc::CPU_COUNT(&copy) } as usize, own.len());
    }
}
