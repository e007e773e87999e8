//! One process of a measured tree: its figures from /proc while it runs, and its final figures.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;

use serde_json::{json, Value};

use crate::clock;
use crate::exit_records::Exit;
use crate::members::Stat;
use crate::meter::{Final, Subject};
use crate::reaped::Reaped;

/// Period at which a process's arguments, peak memory and context switches are read. A young
/// process is read at every listing, because a shell's child shows the shell's arguments until
/// exec.
const DETAIL_PERIOD_NS: i64 = 1_000_000_000;
const YOUNG_NS: i64 = 1_000_000_000;

pub struct Member {
    pub subject: Arc<Subject>,
    pub parent: i32,
    /// 0 if no listing has seen the process.
    pub start_ticks: u64,
    pub born_ns: i64,
    pub ended_ns: Option<i64>,
    pub command: String,
    pub argv: Vec<String>,
    user_ns: i64,
    system_ns: i64,
    threads_max: u64,
    detail_ns: i64,
    detail: Detail,
    /// CPU time of its whole life, known after its end.
    cpu_ns: Option<i64>,
    /// Whether `detail` is of its whole life.
    is_final: bool,
    /// Whether `cpu_ns` comes from the guard. The kernel's record lacks the time since the last
    /// update of the clock (up to a tick), and the time in which the process freed its memory.
    is_reaped: bool,
}

/// Values from `/proc/PID/status` and from the status files of its threads.
#[derive(Default)]
struct Detail {
    rss_peak_bytes: u64,
    voluntary_switches: u64,
    involuntary_switches: u64,
    /// Thread → its voluntary and involuntary switches at the last reading. The kernel drops the
    /// counts of a thread that ends.
    threads: HashMap<i32, (u64, u64)>,
}

impl Member {
    pub fn new(subject: Arc<Subject>, parent: i32, born_ns: i64) -> Member {
        Member {
            subject,
            parent,
            start_ticks: 0,
            born_ns,
            ended_ns: None,
            command: String::new(),
            argv: Vec::new(),
            user_ns: 0,
            system_ns: 0,
            threads_max: 0,
            detail_ns: i64::MIN / 2,
            detail: Detail::default(),
            cpu_ns: None,
            is_final: false,
            is_reaped: false,
        }
    }

    /// Takes the values of a listing. With `all`, reads the details of old processes, too.
    pub fn update(&mut self, stat: &Stat, now_ns: i64, all: bool) {
        self.user_ns = self.user_ns.max(stat.user_ticks as i64 * tick_ns());
        self.system_ns = self.system_ns.max(stat.system_ticks as i64 * tick_ns());
        self.threads_max = self.threads_max.max(stat.threads);
        let young = now_ns - self.born_ns < YOUNG_NS;
        if self.command.is_empty() {
            // Also of a process that had ended before this first listing.
            self.command = command_of(self.subject.pid);
        }
        if stat.state == 'Z' || !(all || young || now_ns - self.detail_ns >= DETAIL_PERIOD_NS) {
            return;
        }
        self.detail_ns = now_ns;
        let pid = self.subject.pid;
        let command = command_of(pid);
        if !command.is_empty() {
            self.command = command;
        }
        let argv = arguments(&fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default());
        if !argv.is_empty() {
            self.argv = argv;
        }
        self.detail.update(pid);
    }

    pub fn end(&mut self, now_ns: i64) {
        self.ended_ns.get_or_insert(now_ns);
        let last = Final { cgroup_usage_ns: None, rusage: None, reaped: Vec::new() };
        let _ = self.subject.ended.set(last);
    }

    pub fn has_final(&self) -> bool {
        self.cpu_ns.is_some() && self.is_final
    }

    /// Takes the figures of the kernel's record of the end of the process.
    pub fn take_exit(&mut self, exit: &Exit) {
        let usage = &exit.usage;
        self.user_ns = self.user_ns.max(usage.user_ns);
        self.system_ns = self.system_ns.max(usage.system_ns);
        self.detail.rss_peak_bytes = self.detail.rss_peak_bytes.max(usage.rss_peak_bytes);
        self.detail.voluntary_switches = usage.voluntary_switches;
        self.detail.involuntary_switches = usage.involuntary_switches;
        (self.cpu_ns, self.is_final) = (Some(usage.cpu_ns), true);
        self.name(&exit.command);
        self.end_at(exit.ended_ns);
    }

    /// Takes the figures of the guard that reaped the process. `wait4` adds those of its children.
    /// Unlike the kernel's record, its clock includes the time in which it freed its memory.
    pub fn take_reaped(&mut self, reaped: &Reaped) {
        self.cpu_ns = reaped.cpu_ns.or(self.cpu_ns);
        self.is_reaped = reaped.cpu_ns.is_some() || !reaped.has_children;
        self.name(&reaped.command);
        self.end_at(reaped.ended_ns);
        if reaped.has_children {
            return;
        }
        let usage = &reaped.usage;
        (self.user_ns, self.system_ns) = (usage.user_ns, usage.system_ns);
        self.cpu_ns = self.cpu_ns.or(Some(usage.user_ns + usage.system_ns));
        self.detail = Detail {
            rss_peak_bytes: usage.maxrss_bytes as u64,
            voluntary_switches: usage.nvcsw as u64,
            involuntary_switches: usage.nivcsw as u64,
            threads: HashMap::new(),
        };
        self.is_final = true;
    }

    fn name(&mut self, command: &str) {
        if self.command.is_empty() {
            self.command = command.into();
        }
        self.threads_max = self.threads_max.max(1);
    }

    /// Sets the end, which a listing knows only up to its period.
    fn end_at(&mut self, ended_ns: i64) {
        self.end(ended_ns);
        self.ended_ns = Some(ended_ns.max(self.born_ns));
    }

    pub fn describe(&self) -> Value {
        json!({"subject": self.subject.name, "pid": self.subject.pid, "parent": self.parent,
               "born_ns": self.born_ns, "ended_ns": self.ended_ns, "command": self.command,
               "argv": self.argv, "cpu_ns": self.cpu_ns, "user_ns": self.user_ns,
               "system_ns": self.system_ns, "threads_max": self.threads_max,
               "rss_peak_bytes": self.detail.rss_peak_bytes,
               "voluntary_switches": self.detail.voluntary_switches,
               "involuntary_switches": self.detail.involuntary_switches,
               "is_final": self.is_final, "is_reaped": self.is_reaped})
    }
}

impl Detail {
    /// Reads the values of a running process. A value that cannot be read stays unchanged.
    fn update(&mut self, pid: i32) {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let peak_bytes = field(&status, "VmHWM:").unwrap_or(0) * 1024;
        self.rss_peak_bytes = self.rss_peak_bytes.max(peak_bytes);
        for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
            let thread = task.file_name().to_str().and_then(|name| name.parse().ok());
            let voluntary = field(&status, "voluntary_ctxt_switches:");
            let involuntary = field(&status, "nonvoluntary_ctxt_switches:");
            if let (Some(thread), Some(voluntary), Some(involuntary)) =
                (thread, voluntary, involuntary)
            {
                self.threads.insert(thread, (voluntary, involuntary));
            }
        }
        self.voluntary_switches = self.threads.values().map(|counts| counts.0).sum();
        self.involuntary_switches = self.threads.values().map(|counts| counts.1).sum();
    }
}

/// Returns the kernel's name of a process; empty if it does not exist any more.
fn command_of(pid: i32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim_end().into()
}

/// Returns the number after `key` at the beginning of a line.
fn field(status: &str, key: &str) -> Option<u64> {
    let rest = status.lines().find_map(|line| line.strip_prefix(key))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

fn arguments(cmdline: &[u8]) -> Vec<String> {
    let text = cmdline.strip_suffix(b"\0").unwrap_or(cmdline);
    if text.is_empty() {
        return Vec::new();
    }
    text.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

fn tick_ns() -> i64 {
    // SAFETY: plain system call.
    1_000_000_000 / unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as i64
}

/// Converts a start time to CLOCK_MONOTONIC with the resolution of a clock tick. Times in /proc
/// are since boot and include suspend.
pub fn born_ns(start_ticks: u64) -> i64 {
    let asleep_ns = clock::read_ns(libc::CLOCK_BOOTTIME).unwrap_or(0) - clock::monotonic_ns();
    start_ticks as i64 * tick_ns() - asleep_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_may_contain_spaces_or_be_empty() {
        assert_eq!(arguments(b"a b\0\0c\0"), ["a b", "", "c"]);
        assert_eq!(arguments(b""), Vec::<String>::new());
    }

    #[test]
    fn a_key_matches_only_at_the_beginning_of_a_line() {
        let status = "nonvoluntary_ctxt_switches:\t7\nvoluntary_ctxt_switches:\t3\nVmHWM:\t 12 kB";
        assert_eq!(field(status, "voluntary_ctxt_switches:"), Some(3));
        assert_eq!(field(status, "VmHWM:"), Some(12));
        assert_eq!(field(status, "VmRSS:"), None);
    }

    #[test]
    fn the_start_time_of_this_process_is_in_the_past() {
        let own = Stat::read(std::process::id() as i32).unwrap();
        let age_ns = clock::monotonic_ns() - born_ns(own.start_ticks);
        assert!((-10_000_000..3_600_000_000_000).contains(&age_ns), "{age_ns}");
    }
}
