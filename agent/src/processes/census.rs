//! The processes of one subject, each on its own: found by looking, then followed by the sampler.
//! What is born and ends between two looks shows in the subject's own sums only.

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

/// A tree that starts more than this is a build or a loop: its sums stay right, its rows end here.
const MEMBERS_MAX: usize = 2000;
/// Arguments, peaks and switches are read again this often, and at each look at a young process:
/// a shell's child shows the shell's arguments until it executes its own program.
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

/// Looks at one subject's processes as long as the sampling goes on.
pub struct Census {
    subject: Arc<Subject>,
    sampling: Arc<Sampling>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    members: Vec<Member>,
    /// Process id → place in `members`, of those that were there at the last look.
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

/// From `/proc/PID/status` and that of its threads.
#[derive(Default)]
struct Detail {
    rss_peak_bytes: u64,
    voluntary_switches: u64,
    involuntary_switches: u64,
}

impl Census {
    /// Takes a first look and starts the thread.
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
        census.look();
        let (looking, period_ns) = (census.clone(), request.period_ms as i64 * 1_000_000);
        thread::spawn(move || {
            let mut deadline_ns = clock::monotonic_ns();
            while !looking.sampling.is_over() && looking.subject.ended.get().is_none() {
                deadline_ns = (deadline_ns + period_ns).max(clock::monotonic_ns());
                clock::sleep_until(deadline_ns);
                looking.look();
            }
        });
        Ok(census)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// All members so far, after another look.
    pub fn answer(&self) -> Answer {
        self.look();
        let state = self.lock();
        let tick_ns = tick_ns();
        let members: Vec<Value> =
            state.members.iter().map(|member| member.describe(tick_ns)).collect();
        Ok(json!({"members": members, "unfollowed": state.unfollowed, "looks": state.looks,
                  "busy_ns": state.busy_ns}))
    }

    fn look(&self) {
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
                // Another start time: the number was given to a new process.
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

    /// A process that was not there before becomes a subject of its own. None: not followed.
    fn admit(&self, state: &mut State, pid: i32, stat: &Stat) -> Option<usize> {
        let same =
            |member: &Member| member.subject.pid == pid && member.start_ticks == stat.start_ticks;
        if state.members.iter().rev().any(same) {
            return None; // a zombie that nobody has reaped yet
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
        self.detail.renew(pid);
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
    /// Peaks and counts of a process that is there; what cannot be read keeps its last value.
    fn renew(&mut self, pid: i32) {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let peak_bytes = field(&status, "VmHWM:").unwrap_or(0) * 1024;
        self.rss_peak_bytes = self.rss_peak_bytes.max(peak_bytes);
        let (mut voluntary, mut involuntary) = (0, 0);
        for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
            voluntary += field(&status, "voluntary_ctxt_switches:").unwrap_or(0);
            involuntary += field(&status, "nonvoluntary_ctxt_switches:").unwrap_or(0);
        }
        // A thread that ended takes its count with it: the sum may not seem to go back.
        self.voluntary_switches = self.voluntary_switches.max(voluntary);
        self.involuntary_switches = self.involuntary_switches.max(involuntary);
    }
}

/// The number after `key` at the beginning of a line.
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

/// Birth in CLOCK_MONOTONIC, in steps of a clock tick; /proc counts from the boot, sleep included.
fn born_ns(start_ticks: u64) -> i64 {
    let asleep_ns = clock::read_ns(libc::CLOCK_BOOTTIME).unwrap_or(0) - clock::monotonic_ns();
    start_ticks as i64 * tick_ns() - asleep_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_keep_their_blanks_and_empty_ones_count() {
        assert_eq!(arguments(b"a b\0\0c\0"), ["a b", "", "c"]);
        assert_eq!(arguments(b""), Vec::<String>::new());
    }

    #[test]
    fn a_key_is_found_at_the_beginning_of_a_line_only() {
        let status = "nonvoluntary_ctxt_switches:\t7\nvoluntary_ctxt_switches:\t3\nVmHWM:\t 12 kB";
        assert_eq!(field(status, "voluntary_ctxt_switches:"), Some(3));
        assert_eq!(field(status, "VmHWM:"), Some(12));
        assert_eq!(field(status, "VmRSS:"), None);
    }

    #[test]
    fn this_process_was_born_before_now() {
        let own = Stat::read(std::process::id() as i32).unwrap();
        let age_ns = clock::monotonic_ns() - born_ns(own.start_ticks);
        assert!((-10_000_000..3_600_000_000_000).contains(&age_ns), "{age_ns}");
    }
}
