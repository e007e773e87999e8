//! Lists the processes of a subject periodically, and has the sampler measure each of them. The
//! final figures of a process come from the kernel's record of its end, or from the guard that
//! reaped it. Without such records, a process that starts and ends between two listings appears
//! only in the subject's sums.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread;

use serde::Deserialize;
use serde_json::{json, Value};

use crate::clock;
use crate::exit_records::{Exit, ExitRecords};
use crate::lock::locked;
use crate::member::{born_ns, Member};
use crate::members::Stat;
use crate::meter::{Reach, Subject, Tree};
use crate::protocol::{Answer, Problem};
use crate::sampler::Sampling;

/// Maximum number of processes per subject with rows of their own. The subject's sums include all
/// processes.
const MEMBERS_MAX: usize = 2000;
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Members {
    pub process: String,
    #[serde(default = "default_period_ms")]
    pub period_ms: u64,
}

fn default_period_ms() -> u64 {
    100
}

/// Lists the processes of a subject for the duration of the sampling.
pub struct Census {
    subject: Arc<Subject>,
    sampling: Arc<Sampling>,
    exits: Exits,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    members: Vec<Member>,
    /// Index in `members` by process id, for the processes of the last listing.
    live: HashMap<i32, usize>,
    /// Ended processes of this host that do not belong to the subject so far.
    others: Vec<Exit>,
    exits_taken: usize,
    all_exits_known: bool,
    unfollowed: u64,
    looks: u64,
    busy_ns: i64,
}

/// The main process of a subject that the agent starts.
pub struct Main {
    pub started_ns: i64,
    pub argv: Vec<String>,
}

/// The kernel's records of ended processes, or the reason why there are none.
pub type Exits = Result<Arc<ExitRecords>, String>;

impl Census {
    /// Lists the processes once and starts the thread. `main` is listed even if it has ended.
    pub fn start(
        request: &Members,
        subject: Arc<Subject>,
        sampling: Arc<Sampling>,
        exits: Exits,
        main: Option<Main>,
    ) -> Result<Arc<Census>, Problem> {
        if !(10..=10_000).contains(&request.period_ms) {
            return Err(Problem::usage(format!(
                "members: period_ms: found {}; allowed: 10 to 10000",
                request.period_ms
            )));
        }
        let census = Arc::new(Census { subject, sampling, exits, state: Mutex::default() });
        if let Some(main) = main {
            census.admit_main(main);
        }
        census.list(false);
        let (census_of_thread, period_ns) = (census.clone(), request.period_ms as i64 * 1_000_000);
        thread::spawn(move || {
            let mut deadline_ns = clock::monotonic_ns();
            let (sampling, subject) = (&census_of_thread.sampling, &census_of_thread.subject);
            while !sampling.is_over() && subject.ended.get().is_none() {
                deadline_ns = (deadline_ns + period_ns).max(clock::monotonic_ns());
                clock::sleep_until(deadline_ns);
                census_of_thread.list(false);
            }
        });
        Ok(census)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    /// Lists the processes again and replies with all processes since the start.
    pub fn answer(&self) -> Answer {
        self.list(true);
        let mut state = self.lock();
        self.take_exits(&mut state);
        self.take_reaped(&mut state);
        let members: Vec<Value> = state.members.iter().map(Member::describe).collect();
        let missing = match &self.exits {
            Ok(_) if state.all_exits_known => None,
            Ok(_) => Some("the kernel dropped exit records, or its version lacks a field"),
            Err(reason) => Some(reason.as_str()),
        };
        Ok(json!({"members": members, "unfollowed": state.unfollowed, "looks": state.looks,
                  "busy_ns": state.busy_ns, "exit_records_missing": missing}))
    }

    /// Assigns the kernel's records to known processes, and adds processes that no listing saw.
    fn take_exits(&self, state: &mut State) {
        let Ok(records) = &self.exits else { return };
        let (ended, all_known) = records.ended_after(state.exits_taken);
        state.exits_taken += ended.len();
        state.all_exits_known = all_known;
        let mut others = std::mem::take(&mut state.others);
        others.extend(ended);
        // A child usually ends before its parent, so its record precedes that of the parent.
        loop {
            let count = others.len();
            others.retain(|exit| !self.take_exit(state, exit));
            if others.len() == count {
                break;
            }
        }
        state.others = others;
    }

    /// Returns whether the ended process belongs to the subject.
    fn take_exit(&self, state: &mut State, exit: &Exit) -> bool {
        let known = state.members.iter().rposition(|member| {
            member.subject.pid == exit.pid && member.born_ns <= exit.ended_ns && !member.has_final()
        });
        let is_child = exit.parent == self.subject.guard_pid
            || state
                .members
                .iter()
                .any(|member| member.subject.pid == exit.parent && member.born_ns <= exit.ended_ns);
        let index = match known {
            None if is_child => self.add(state, exit.pid, exit.parent, exit.born_ns),
            known => known,
        };
        if let Some(index) = index {
            state.members[index].take_exit(exit);
        }
        index.is_some()
    }

    fn take_reaped(&self, state: &mut State) {
        let Some(end) = self.subject.ended.get() else { return };
        for reaped in &end.reaped {
            let known = state.members.iter().position(|member| {
                member.subject.pid == reaped.pid
                    && (member.start_ticks == 0 || member.start_ticks == reaped.start_ticks)
            });
            let born_ns = born_ns(reaped.start_ticks);
            let index = known.or_else(|| self.add(state, reaped.pid, reaped.parent, born_ns));
            if let Some(index) = index {
                state.members[index].take_reaped(reaped);
            }
        }
    }

    /// Lists the live processes. With `all`, reads the details of old processes, too.
    fn list(&self, all: bool) {
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
            member.update(&stat, begin_ns, all);
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
        let index = self.add(state, pid, stat.parent, born_ns(stat.start_ticks))?;
        if stat.state != 'Z' {
            self.sampling.follow(&state.members[index].subject);
        }
        state.members[index].start_ticks = stat.start_ticks;
        Some(index)
    }

    /// Adds the main process. If it has ended already, its final figures follow.
    fn admit_main(&self, main: Main) {
        let mut state = self.lock();
        let stat = Stat::read(self.subject.pid);
        let index = match stat {
            Some(stat) => self.admit(&mut state, self.subject.pid, &stat),
            None => self.add(&mut state, self.subject.pid, self.subject.guard_pid, 0),
        };
        if let Some(index) = index {
            let member = &mut state.members[index];
            (member.born_ns, member.argv) = (main.started_ns, main.argv);
            state.live.insert(self.subject.pid, index);
        }
    }

    /// Adds a process as a separate subject and returns its index. Returns None above MEMBERS_MAX.
    fn add(&self, state: &mut State, pid: i32, parent: i32, born_ns: i64) -> Option<usize> {
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
        state.members.push(Member::new(subject, parent, born_ns));
        Some(state.members.len() - 1)
    }
}
