//! Lists the processes of a subject periodically, and has the sampler measure each of them. A
//! process that starts and ends between two listings appears only in the subject's sums.

use std::collections::HashMap;
use std::fs;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread;

use serde::Deserialize;
use serde_json::{json, Value};

use crate::clock;
use crate::members::Stat;
use crate::meter::{Final, Reach, Subject, Tree};
use crate::protocol::{Answer, Problem};
use crate::sampler::Sampling;

/// Maximum number of processes per subject with rows of their own. The subject's sums include all
/// processes.
const MEMBERS_MAX: usize = 2000;
/// Period at which a process's arguments, peak memory and context switches are read. A young
/// process is read at every listing, because a shell's child shows the shell's arguments until
/// exec.
const DETAIL_PERIOD_NS: i64 = 1_000_000_000;
const YOUNG_NS: i64 = 1_000_000_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Members {
    pub process: String,
    #[serde(default = "default_period_ms")]
    period_ms: u64,
}

fn default_period_ms() -> u64 {
    100
}

/// Lists the processes of a subject for the duration of the sampling.
pub struct Census {
    subject: Arc<Subject>,
    sampling: Arc<Sampling>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    members: Vec<Member>,
    /// Index in `members` by process id, for the processes of the last listing.
    live: HashMap<i32, usize>,
    unfollowed: u64,
    looks: u64,
    busy_ns: i64,
}

struct Member {
    subject: Arc<Subject>,
    parent: i32,
    start_ticks: u64,
    born_ns: i64,
    ended_ns: Option<i64>,
    command: String,
    argv: Vec<String>,
    user_ticks: u64,
    system_ticks: u64,
    threads_max: u64,
    detail_ns: i64,
    detail: Detail,
}

/// Values from `/proc/PID/status` and from the status files of its threads.
#[derive(Default)]
struct Detail {
    rss_peak_bytes: u64,
    voluntary_switches: u64,
    involuntary_switches: u64,
}

impl Census {
    /// Lists the processes once and starts the thread.
    pub fn start(
        request: &Members,
        subject: Arc<Subject>,
        sampling: Arc<Sampling>,
    ) -> Result<Arc<Census>, Problem> {
        if !(10..=10_000).contains(&request.period_ms) {
            return Err(Problem::usage(format!(
                "members: period_ms: found {}; allowed: 10 to 10000",
                request.period_ms
            )));
        }
        let census = Arc::new(Census { subject, sampling, state: Mutex::default() });
        census.list();
        let (census_of_thread, period_ns) = (census.clone(), request.period_ms as i64 * 1_000_000);
        thread::spawn(move || {
            let mut deadline_ns = clock::monotonic_ns();
            let (sampling, subject) = (&census_of_thread.sampling, &census_of_thread.subject);
            while !sampling.is_over() && subject.ended.get().is_none() {
                deadline_ns = (deadline_ns + period_ns).max(clock::monotonic_ns());
                clock::sleep_until(deadline_ns);
                census_of_thread.list();
            }
        });
        Ok(census)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Lists the processes again and replies with all processes since the start.
    pub fn answer(&self) -> Answer {
        self.list();
        let state = self.lock();
        let tick_ns = tick_ns();
        let members: Vec<Value> =
            state.members.iter().map(|member| member.describe(tick_ns)).collect();
        Ok(json!({"members": members, "unfollowed": state.unfollowed, "looks": state.looks,
                  "busy_ns": state.busy_ns}))
    }

    fn list(&self) {
        let begin_ns = clock::monotonic_ns();
        let pids = match &self.subject.cgroup {
            Some(cgroup) => cgroup.pids_below(),
            None => self.subject.pids(&Tree::Live),
        };
        let mut state = self.lock();
        let mut before = std::mem::take(&mut state.live);
        for pid in pids {
            let Some(stat) = Stat::read(pid) else { continue };
            let known = before.remove(&pid).filter(|index| {
                // A different start time means that a new process has this process id.
                state.members[*index].start_ticks == stat.start_ticks || {
                    state.members[*index].end(begin_ns);
                    false
                }
            });
            let Some(index) = known.or_else(|| self.admit(&mut state, pid, &stat)) else {
                continue;
            };
            let member = &mut state.members[index];
            member.update(&stat, begin_ns);
            if stat.state != 'Z' {
                state.live.insert(pid, index);
            } else {
                member.end(begin_ns);
            }
        }
        for index in before.into_values() {
            state.members[index].end(begin_ns);
        }
        state.looks += 1;
        state.busy_ns += clock::monotonic_ns() - begin_ns;
    }

    /// Adds a new process as a separate subject. Returns None for a process that is not measured.
    fn admit(&self, state: &mut State, pid: i32, stat: &Stat) -> Option<usize> {
        let same =
            |member: &Member| member.subject.pid == pid && member.start_ticks == stat.start_ticks;
        if state.members.iter().rev().any(same) {
            return None; // a zombie whose parent has not reaped it yet
        }
        if state.members.len() >= MEMBERS_MAX {
            state.unfollowed += 1;
            return None;
        }
        let earlier = state.members.iter().filter(|member| member.subject.pid == pid).count();
        let name = match earlier {
            0 => format!("{}/{pid}", self.subject.name),
            _ => format!("{}/{pid}.{}", self.subject.name, earlier + 1),
        };
        let subject = Arc::new(Subject {
            name,
            pid,
            guard_pid: 0,
            reach: Reach::Alone,
            cgroup: None,
            ended: OnceLock::new(),
        });
        if stat.state != 'Z' {
            self.sampling.follow(&subject);
        }
        state.members.push(Member {
            subject,
            parent: stat.parent,
            start_ticks: stat.start_ticks,
            born_ns: born_ns(stat.start_ticks),
            ended_ns: None,
            command: String::new(),
            argv: Vec::new(),
            user_ticks: 0,
            system_ticks: 0,
            threads_max: 0,
            detail_ns: i64::MIN / 2,
            detail: Detail::default(),
        });
        Some(state.members.len() - 1)
    }
}

impl Member {
    fn update(&mut self, stat: &Stat, now_ns: i64) {
        self.user_ticks = self.user_ticks.max(stat.user_ticks);
        self.system_ticks = self.system_ticks.max(stat.system_ticks);
        self.threads_max = self.threads_max.max(stat.threads);
        let young = now_ns - self.born_ns < YOUNG_NS;
        if stat.state == 'Z' || !(young || now_ns - self.detail_ns >= DETAIL_PERIOD_NS) {
            return;
        }
        self.detail_ns = now_ns;
        let pid = self.subject.pid;
        let command = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        if !command.is_empty() {
            self.command = command.trim_end().into();
        }
        let argv = arguments(&fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default());
        if !argv.is_empty() {
            self.argv = argv;
        }
        self.detail.update(pid);
    }

    fn end(&mut self, now_ns: i64) {
        self.ended_ns.get_or_insert(now_ns);
        let _ = self.subject.ended.set(Final { cgroup_usage_ns: None, rusage: None });
    }

    fn describe(&self, tick_ns: i64) -> Value {
        json!({"subject": self.subject.name, "pid": self.subject.pid, "parent": self.parent,
               "born_ns": self.born_ns, "ended_ns": self.ended_ns, "command": self.command,
               "argv": self.argv, "user_ns": self.user_ticks as i64 * tick_ns,
               "system_ns": self.system_ticks as i64 * tick_ns, "threads_max": self.threads_max,
               "rss_peak_bytes": self.detail.rss_peak_bytes,
               "voluntary_switches": self.detail.voluntary_switches,
               "involuntary_switches": self.detail.involuntary_switches})
    }
}

impl Detail {
    /// Reads the values of a running process. A value that cannot be read stays unchanged.
    fn update(&mut self, pid: i32) {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let peak_bytes = field(&status, "VmHWM:").unwrap_or(0) * 1024;
        self.rss_peak_bytes = self.rss_peak_bytes.max(peak_bytes);
        let (mut voluntary, mut involuntary) = (0, 0);
        for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
            voluntary += field(&status, "voluntary_ctxt_switches:").unwrap_or(0);
            involuntary += field(&status, "nonvoluntary_ctxt_switches:").unwrap_or(0);
        }
        // The sum drops when a thread ends, because the thread's count is lost. Keeps the maximum.
        self.voluntary_switches = self.voluntary_switches.max(voluntary);
        self.involuntary_switches = self.involuntary_switches.max(involuntary);
    }
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
fn born_ns(start_ticks: u64) -> i64 {
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
