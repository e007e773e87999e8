//! What processes that are not ours took of the CPUs, weighted as the scheduler weighs them
//! against a normal task. No waiting of ours is in it (docs/decisions/0013-load-of-others.md).

use std::collections::HashMap;

use crate::members::Stat;
use crate::meter::{parse_number, Tree};

const IDLE_POLICY: u64 = 5;
/// SCHED_OTHER and SCHED_BATCH, which the nice value weighs; all others but SCHED_IDLE go first.
const FAIR_POLICIES: [u64; 2] = [0, 3];
/// What the scheduler gives to SCHED_IDLE, where a task of nice 0 gets 1024.
const IDLE_WEIGHT: f64 = 3.0 / 1024.0;
/// Weights of nice 1 to 19: kernel/sched/core.c, `sched_prio_to_weight`.
const NICE_WEIGHTS: [u16; 19] =
    [820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15];
const BUFFER_BYTES: usize = 1024;

/// Sums since the first reading, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// CPU time, each ns of it alike.
    pub cpu_ns: f64,
    /// CPU time, weighted.
    pub weighted_ns: f64,
    /// Weighted CPU time as it would have been had nobody made them wait for a CPU.
    pub demand_ns: f64,
}

/// The processes that were there at the last reading, and what all others have used since the
/// first.
pub struct Others {
    tree: Tree,
    own_pid: i32,
    known: HashMap<i32, Process>,
    /// Processes whose number another has by now.
    replaced: Vec<Process>,
    totals: Totals,
    read_ns: Option<i64>,
    tick_ns: i64,
    buffer: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Role {
    /// The agent and all that it has started.
    Own,
    /// Threads of the kernel: they work for whoever asked, nodes included.
    Kernel,
    Other,
}

struct Process {
    role: Role,
    parent: i32,
    cpu_ns: i64,
    /// CPU time of children that it waited for.
    waited_ns: i64,
    threads: Vec<Thread>,
    seen_ns: i64,
}

#[derive(Clone, Copy)]
struct Thread {
    id: i32,
    cpu_ns: i64,
    queued_ns: i64,
}

/// What one process did since the reading before, ended children included.
#[derive(Default)]
struct Deed {
    used: Totals,
    waited_ns: i64,
    weight: f64,
}

impl Others {
    pub fn new(tree: &Tree) -> Others {
        // SAFETY: plain system call.
        let per_second = match tree {
            Tree::Live => unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1),
            Tree::Replay(_) => 100,
        };
        Others {
            tree: tree.clone(),
            own_pid: tree.own_pid(),
            known: HashMap::new(),
            replaced: Vec::new(),
            totals: Totals::default(),
            read_ns: None,
            tick_ns: 1_000_000_000 / per_second,
            buffer: vec![0; BUFFER_BYTES],
        }
    }

    /// Looks at all processes; gives the sums so far. Processes in `ours` are no others.
    pub fn read(&mut self, now_ns: i64, ours: &[i32]) -> Totals {
        let span_ns = now_ns - self.read_ns.unwrap_or(now_ns);
        let is_first = self.read_ns.replace(now_ns).is_none();
        let changed = self.look(now_ns, ours);
        let mut deeds: HashMap<i32, Deed> = HashMap::new();
        for (pid, cpu_ns) in changed {
            if let Some(deed) = self.account(pid, cpu_ns, span_ns) {
                deeds.insert(pid, deed);
            }
        }
        let ended = self.forget_ended(now_ns, &mut deeds);
        if !is_first {
            for used in deeds.values().map(|deed| deed.used).chain([ended]) {
                self.totals.cpu_ns += used.cpu_ns;
                self.totals.weighted_ns += used.weighted_ns;
                self.totals.demand_ns += used.demand_ns;
            }
        }
        self.totals
    }

    /// Finds who is there; gives the others whose CPU time rose (at first: all of them).
    fn look(&mut self, now_ns: i64, ours: &[i32]) -> Vec<(i32, i64)> {
        let mut changed = Vec::new();
        let mut fresh = Vec::new();
        for pid in self.tree.processes() {
            let known = self.known.get_mut(&pid);
            if let Some(known) = known {
                known.seen_ns = now_ns;
                if ours.contains(&pid) {
                    known.role = Role::Own; // attached after it was first seen
                }
                if known.role != Role::Other {
                    continue;
                }
                let Some(cpu_ns) = self.tree.process_cpu_ns(pid) else { continue };
                if cpu_ns == known.cpu_ns {
                    continue;
                }
                if cpu_ns > known.cpu_ns {
                    changed.push((pid, cpu_ns));
                    continue;
                }
                // The number was given to a new process.
                self.replaced.extend(self.known.remove(&pid));
            }
            let Some(stat) = self.stat(pid) else { continue };
            let role = if stat.is_kernel_thread {
                Role::Kernel
            } else if pid == self.own_pid || ours.contains(&pid) {
                Role::Own
            } else {
                Role::Other
            };
            let process = Process {
                role,
                parent: stat.parent,
                cpu_ns: 0,
                waited_ns: 0,
                threads: Vec::new(),
                seen_ns: now_ns,
            };
            self.known.insert(pid, process);
            fresh.push(pid);
        }
        for pid in fresh {
            if self.known[&pid].role == Role::Other && self.descends_from_us(pid) {
                self.known.entry(pid).and_modify(|process| process.role = Role::Own);
            }
            if self.known[&pid].role == Role::Other {
                changed.extend(self.tree.process_cpu_ns(pid).map(|cpu_ns| (pid, cpu_ns)));
            }
        }
        changed
    }

    fn descends_from_us(&self, pid: i32) -> bool {
        let mut at = pid;
        for _ in 0..self.known.len() {
            match self.known.get(&at) {
                Some(process) if process.role == Role::Own => return true,
                Some(process) => at = process.parent,
                None => return false,
            }
        }
        false
    }

    fn stat(&mut self, pid: i32) -> Option<Stat> {
        let path = format_args!("proc/{pid}/stat");
        let text = self.tree.read_once(path, &mut self.buffer).ok()?;
        Stat::parse(&String::from_utf8_lossy(text))
    }

    /// What a process used in the last `span_ns`, thread by thread.
    fn account(&mut self, pid: i32, cpu_ns: i64, span_ns: i64) -> Option<Deed> {
        let stat = self.stat(pid)?;
        let weight = weight_of(&stat);
        let mut used = Totals::default();
        let mut threads = Vec::new();
        let mut by_threads_ns = 0;
        let before = std::mem::take(&mut self.known.get_mut(&pid)?.threads);
        for id in self.thread_ids(pid, &stat) {
            let Some(now) = self.thread(pid, id) else { continue };
            threads.push(now);
            let zero = Thread { id, cpu_ns: 0, queued_ns: 0 };
            let then = before.iter().find(|thread| thread.id == id).unwrap_or(&zero);
            let ran_ns = (now.cpu_ns - then.cpu_ns).max(0);
            if ran_ns == 0 {
                continue;
            }
            by_threads_ns += ran_ns;
            let own_weight = match stat.threads > 1 {
                true => self.thread_weight(pid, id).unwrap_or(weight),
                false => weight,
            };
            add(
                &mut used,
                ran_ns,
                own_weight,
                undelayed(ran_ns, now.queued_ns - then.queued_ns, span_ns),
            );
        }
        let process = self.known.get_mut(&pid)?;
        // Of threads that ended, only the process knows.
        let rest_ns = (cpu_ns - process.cpu_ns - by_threads_ns).max(0);
        add(&mut used, rest_ns, weight, rest_ns as f64);
        let waited_ns = stat.waited_children_ticks as i64 * self.tick_ns;
        let deed = Deed { used, waited_ns: waited_ns - process.waited_ns, weight };
        process.parent = stat.parent;
        process.cpu_ns = cpu_ns;
        process.waited_ns = waited_ns;
        process.threads = threads;
        Some(deed)
    }

    fn thread_ids(&self, pid: i32, stat: &Stat) -> Vec<i32> {
        if stat.threads <= 1 {
            return vec![pid];
        }
        let names = self.tree.list(&format!("proc/{pid}/task")).unwrap_or_default();
        names.iter().filter_map(|name| name.parse().ok()).collect()
    }

    /// CPU time and time in a run queue of one thread. None: gone, or a kernel that counts neither.
    fn thread(&mut self, pid: i32, id: i32) -> Option<Thread> {
        let path = format_args!("proc/{pid}/task/{id}/schedstat");
        let text = self.tree.read_once(path, &mut self.buffer).ok()?;
        let mut words = text.split(|byte| *byte == b' ').map(parse_number);
        Some(Thread { id, cpu_ns: words.next()?? as i64, queued_ns: words.next()?? as i64 })
    }

    fn thread_weight(&mut self, pid: i32, id: i32) -> Option<f64> {
        let path = format_args!("proc/{pid}/task/{id}/stat");
        let text = self.tree.read_once(path, &mut self.buffer).ok()?;
        Some(weight_of(&Stat::parse(&String::from_utf8_lossy(text))?))
    }

    /// What children used that nobody saw: what their parents waited for, less what had been seen
    /// of children that are gone. Forgets those.
    fn forget_ended(&mut self, now_ns: i64, deeds: &mut HashMap<i32, Deed>) -> Totals {
        let mut without_parent_ns = 0;
        let gone = self.known.values().filter(|process| process.seen_ns != now_ns);
        for process in gone.chain(&self.replaced).filter(|process| process.role == Role::Other) {
            let seen_ns = process.cpu_ns + process.waited_ns;
            match deeds.get_mut(&process.parent) {
                Some(deed) => deed.waited_ns -= seen_ns,
                None => without_parent_ns += seen_ns, // its parent went as well
            }
        }
        self.known.retain(|_, process| process.seen_ns == now_ns);
        self.replaced.clear();
        let mut ended = Totals::default();
        for deed in deeds.values().filter(|deed| deed.waited_ns > 0) {
            add(&mut ended, deed.waited_ns, deed.weight, deed.waited_ns as f64);
        }
        let left = (ended.cpu_ns - without_parent_ns as f64).max(0.0);
        let share = if ended.cpu_ns > 0.0 { left / ended.cpu_ns } else { 0.0 };
        Totals {
            cpu_ns: left,
            weighted_ns: ended.weighted_ns * share,
            demand_ns: ended.demand_ns * share,
        }
    }
}

/// How much of a thread's CPU time a normal task goes without: 1 where it takes all that it
/// wants, down to 3/1024 of SCHED_IDLE.
fn weight_of(stat: &Stat) -> f64 {
    match stat.policy {
        IDLE_POLICY => IDLE_WEIGHT,
        policy if !FAIR_POLICIES.contains(&policy) => 1.0,
        _ => match usize::try_from(stat.nice - 1).ok().and_then(|at| NICE_WEIGHTS.get(at)) {
            Some(weight) => f64::from(*weight) / 1024.0,
            None => 1.0,
        },
    }
}

/// The CPU time that a thread would have used in `span_ns` had it not waited `queued_ns` of it for
/// a CPU: its share of the time in which nothing held it up.
fn undelayed(ran_ns: i64, queued_ns: i64, span_ns: i64) -> f64 {
    let free_ns = (span_ns - queued_ns.max(0)).max(ran_ns);
    if free_ns == 0 {
        return 0.0;
    }
    // A thread's clock may be read a little later than the span ends.
    (ran_ns as f64 / free_ns as f64).min(1.0) * span_ns.max(ran_ns) as f64
}

fn add(totals: &mut Totals, ran_ns: i64, weight: f64, demand_ns: f64) {
    totals.cpu_ns += ran_ns as f64;
    totals.weighted_ns += weight * ran_ns as f64;
    totals.demand_ns += weight * demand_ns;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use std::process::{Child, Command};
    use std::time::Duration;

    fn stat(nice: i64, policy: u64) -> Stat {
        let line = format!(
            "42 (a) S 7 42 40 0 -1 4194304 1 2 3 4 10 20 30 40 20 {nice} 1 0 999 0 0 0 0 0 0 0 0 \
             0 0 0 0 0 0 0 17 0 0 {policy} 0 0 0"
        );
        Stat::parse(&line).unwrap()
    }

    #[test]
    fn weights_are_those_of_the_scheduler_and_at_most_one() {
        assert_eq!(weight_of(&stat(0, 0)), 1.0);
        assert_eq!(weight_of(&stat(19, 0)), 15.0 / 1024.0);
        assert_eq!(weight_of(&stat(10, 3)), 110.0 / 1024.0);
        assert_eq!(weight_of(&stat(0, 5)), 3.0 / 1024.0);
        for (nice, policy) in [(-20, 0), (0, 1), (0, 2), (0, 6), (0, 7)] {
            assert_eq!(weight_of(&stat(nice, policy)), 1.0, "nice {nice}, policy {policy}");
        }
    }

    #[test]
    fn a_thread_that_waited_would_have_used_its_share_of_the_time_left() {
        assert_eq!(undelayed(50, 50, 100), 100.0, "it never slept");
        assert_eq!(undelayed(20, 0, 100), 20.0);
        assert_eq!(undelayed(20, 60, 100), 50.0);
        assert_eq!(undelayed(103, 0, 100), 103.0, "clocks are not read at one time");
        assert_eq!(undelayed(20, 300, 100), 100.0);
        assert_eq!(undelayed(0, 0, 0), 0.0);
    }

    fn spin(prefix: &[&str]) -> Child {
        let words = [prefix, &["sh", "-c", "while :; do :; done"]].concat();
        Command::new(words[0]).args(&words[1..]).spawn().unwrap()
    }

    /// What one process did in 200 ms, as one of the others.
    fn used_by(pid: i32) -> Deed {
        let mut others = Others { own_pid: 0, ..Others::new(&Tree::Live) };
        let begin_ns = clock::monotonic_ns();
        others.read(begin_ns, &[]);
        assert_eq!(others.known[&pid].role, Role::Other);
        std::thread::sleep(Duration::from_millis(200));
        let cpu_ns = Tree::Live.process_cpu_ns(pid).unwrap();
        others.account(pid, cpu_ns, clock::monotonic_ns() - begin_ns).unwrap()
    }

    #[test]
    fn a_spinner_counts_with_its_weight_and_as_if_it_had_not_waited() {
        let normal: [&str; 0] = [];
        let own = weight_of(&Stat::read(std::process::id() as i32).unwrap());
        for (prefix, weight) in [(&normal[..], own), (&["nice", "-n", "19"][..], 15.0 / 1024.0)] {
            let mut spinner = spin(prefix);
            std::thread::sleep(Duration::from_millis(100)); // `nice` has executed the shell
            let deed = used_by(spinner.id() as i32);
            spinner.kill().unwrap();
            spinner.wait().unwrap();
            let used = deed.used;
            assert!(used.cpu_ns > 0.0, "{used:?}");
            assert!((used.weighted_ns / used.cpu_ns - weight).abs() < 1e-9, "{used:?}");
            // It never sleeps: what it waited for comes on top of what it got.
            let wanted_ns = used.demand_ns / weight;
            assert!((used.cpu_ns..1e9).contains(&wanted_ns), "{used:?}");
        }
    }

    #[test]
    fn what_we_started_and_what_it_started_is_no_other() {
        let mut shell = Command::new("sh").args(["-c", "sleep 30 & wait"]).spawn().unwrap();
        let pid = shell.id() as i32;
        while crate::members::descendants(pid).is_empty() {
            std::thread::sleep(Duration::from_millis(2));
        }
        let child = crate::members::descendants(pid)[0];
        let mut others = Others::new(&Tree::Live);
        others.read(clock::monotonic_ns(), &[]);
        let roles = [pid, child].map(|pid| others.known[&pid].role);
        let mut attached = Others { own_pid: 0, ..Others::new(&Tree::Live) };
        attached.read(clock::monotonic_ns(), &[pid]);
        let roles_attached = [pid, child].map(|pid| attached.known[&pid].role);
        for pid in [child, pid] {
            // SAFETY: plain system call on a process of this test.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        shell.wait().unwrap();
        assert_eq!((roles, roles_attached), ([Role::Own; 2], [Role::Own; 2]));
    }

    #[test]
    fn children_that_nobody_saw_count_by_what_their_parent_waited_for() {
        let code = "sleep 0.3; i=0; while [ $i -lt 40 ]; do \
                    sh -c 'j=0; while [ $j -lt 3000 ]; do j=$((j+1)); done'; i=$((i+1)); done; \
                    sleep 30";
        let mut shell = Command::new("sh").args(["-c", code]).spawn().unwrap();
        let pid = shell.id() as i32;
        let mut others = Others { own_pid: 0, ..Others::new(&Tree::Live) };
        let begin_ns = clock::monotonic_ns();
        others.read(begin_ns, &[]);
        let is_done = || Stat::read(pid).unwrap().waited_children_ticks >= 5;
        while !is_done() {
            std::thread::sleep(Duration::from_millis(10));
        }
        let cpu_ns = Tree::Live.process_cpu_ns(pid).unwrap();
        let deed = others.account(pid, cpu_ns, clock::monotonic_ns() - begin_ns).unwrap();
        unsafe { libc::kill(pid, libc::SIGKILL) };
        shell.wait().unwrap();
        assert!(deed.waited_ns >= 5 * others.tick_ns, "{} ns", deed.waited_ns);
    }
}
