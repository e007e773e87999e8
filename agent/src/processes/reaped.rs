//! Final figures of the processes that a guard reaps, from `wait4` and from the ended process's
//! clock.

use std::fs;

use serde::{Deserialize, Serialize};

use crate::clock;
use crate::members::Stat;

/// Resource usage of all processes that the guard reaped: sums, and the maximum of maxrss.
#[derive(Serialize, Deserialize, Debug, Clone, Default, PartialEq)]
pub struct Usage {
    pub user_ns: i64,
    pub system_ns: i64,
    pub maxrss_bytes: i64,
    pub minflt: i64,
    pub majflt: i64,
    pub nvcsw: i64,
    pub nivcsw: i64,
}

impl Usage {
    #[allow(clippy::unnecessary_cast)] // the fields are 32 bits wide on 32-bit machines
    pub fn add(&mut self, usage: &libc::rusage) {
        let ns = |t: libc::timeval| t.tv_sec as i64 * 1_000_000_000 + t.tv_usec as i64 * 1000;
        self.user_ns += ns(usage.ru_utime);
        self.system_ns += ns(usage.ru_stime);
        self.maxrss_bytes = self.maxrss_bytes.max(usage.ru_maxrss as i64 * 1024);
        self.minflt += usage.ru_minflt as i64;
        self.majflt += usage.ru_majflt as i64;
        self.nvcsw += usage.ru_nvcsw as i64;
        self.nivcsw += usage.ru_nivcsw as i64;
    }
}

/// A process that a guard reaped: the main process, or an orphan.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq)]
pub struct Reaped {
    pub pid: i32,
    pub parent: i32,
    pub command: String,
    pub start_ticks: u64,
    pub ended_ns: i64,
    /// CPU time of its own threads, without its children.
    pub cpu_ns: Option<i64>,
    /// From `wait4`, with the children that the process waited for.
    pub usage: Usage,
    /// Whether the process waited for a child. Otherwise, `usage` is its own.
    pub has_children: bool,
}

impl Reaped {
    /// Describes a process that ended at `ended_ns` and is not reaped. `usage` is still empty.
    pub fn look(pid: i32, ended_ns: i64) -> Option<Reaped> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let stat = Stat::parse(&text)?;
        let command = text.split_once('(')?.1.rsplit_once(')')?.0.to_string();
        Some(Reaped {
            pid,
            parent: stat.parent,
            command,
            start_ticks: stat.start_ticks,
            ended_ns,
            cpu_ns: clock::process_cpu_ns(pid),
            usage: Usage::default(),
            // No process runs without a page fault.
            has_children: stat.waited_children_faults > 0,
        })
    }
}
