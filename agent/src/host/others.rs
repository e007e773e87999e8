//! Measures the CPU time and demand of processes that the agent did not start, weighted as the
//! scheduler weights them against a normal task. The time that the agent's own processes wait for
//! a CPU has no effect on it (docs/decisions/0013-load-of-others.md).

use std::collections::HashMap;

use crate::members::Stat;
use crate::meter::{parse_number, Tree};

const IDLE_POLICY: u64 = 5;
/// SCHED_OTHER and SCHED_BATCH, whose weight depends on the nice value. All other policies except
/// SCHED_IDLE have precedence over them.
const FAIR_POLICIES: [u64; 2] = [0, 3];
/// The scheduler's weight of SCHED_IDLE relative to a task with nice 0, whose weight is 1024.
const IDLE_WEIGHT: f64 = 3.0 / 1024.0;
/// Weights of nice 1 to 19: kernel/sched/core.c, `sched_prio_to_weight`.
const NICE_WEIGHTS: [u16; 19] =
    [820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15];
const BUFFER_BYTES: usize = 1024;

/// Sums since the first reading, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// CPU time without weights.
    pub cpu_ns: f64,
    /// Weighted CPU time.
    pub weighted_ns: f64,
    /// Weighted CPU time that the processes would have used without waiting for a CPU.
    pub demand_ns: f64,
}

/// The processes of the last reading, and the sums over all other processes since the first
/// reading.
pub struct Others {
    tree: Tree,
    own_pid: i32,
    known: HashMap<i32, Process>,
    /// Processes whose process id now belongs to another process.
    replaced: Vec<Process>,
    totals: Totals,
    read_ns: Option<i64>,
    tick_ns: i64,
    buffer: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Role {
    /// The agent and its descendants.
    Own,
    /// Kernel threads. They work for all processes, including nodes.
    Kernel,
    Other,
}

struct Process {
    role: Role,
    parent: i32,
    cpu_ns: i64,
    /// CPU time of the children that the process reaped.
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

/// CPU usage of a process since the previous reading, including ended children.
#[derive(Default)]
struct Usage {
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

    /// Reads all processes and returns the sums since the first reading. Excludes the processes in
    /// `ours`.
    pub fn read(&mut self, now_ns: i64, ours: &[i32]) -> Totals {
        let span_ns = now_ns - self.read_ns.unwrap_or(now_ns);
        let is_first = self.read_ns.replace(now_ns).is_none();
        let changed = self.update_processes(now_ns, ours);
        let mut usages: HashMap<i32, Usage> = HashMap::new();
        for (pid, cpu_ns) in changed {
            if let Some(usage) = self.account(pid, cpu_ns, span_ns) {
                usages.insert(pid, usage);
            }
        }
        let ended = self.forget_ended(now_ns, &mut usages);
        if !is_first {
            for used in usages.values().map(|usage| usage.used).chain([ended]) {
                self.totals.cpu_ns += used.cpu_ns;
                self.totals.weighted_ns += used.weighted_ns;
                self.totals.demand_ns += used.demand_ns;
            }
        }
        self.totals
    }

    /// Updates the known processes. Returns the other processes whose CPU time increased; the first
    /// call returns all of them.
    fn update_processes(&mut self, now_ns: i64, ours: &[i32]) -> Vec<(i32, i64)> {
        let mut changed = Vec::new();
        let mut new_pids = Vec::new();
        for pid in self.tree.processes() {
            let known = self.known.get_mut(&pid);
            if let Some(known) = known {
                known.seen_ns = now_ns;
                if ours.contains(&pid) {
                    known.role = Role::Own; // the agent attached to it after an earlier reading
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
                // A lower CPU time means that a new process has this process id.
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
            new_pids.push(pid);
        }
        for pid in new_pids {
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
        let mut ancestor = pid;
        for _ in 0..self.known.len() {
            match self.known.get(&ancestor) {
                Some(process) if process.role == Role::Own => return true,
                Some(process) => ancestor = process.parent,
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

    /// Returns the CPU usage of a process in the last `span_ns`, summed over its threads.
    fn account(&mut self, pid: i32, cpu_ns: i64, span_ns: i64) -> Option<Usage> {
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
        // Only the CPU time of the process includes its ended threads.
        let rest_ns = (cpu_ns - process.cpu_ns - by_threads_ns).max(0);
        add(&mut used, rest_ns, weight, rest_ns as f64);
        let waited_ns = stat.waited_children_ticks as i64 * self.tick_ns;
        let usage = Usage { used, waited_ns: waited_ns - process.waited_ns, weight };
        process.parent = stat.parent;
        process.cpu_ns = cpu_ns;
        process.waited_ns = waited_ns;
        process.threads = threads;
        Some(usage)
    }

    fn thread_ids(&self, pid: i32, stat: &Stat) -> Vec<i32> {
        if stat.threads <= 1 {
            return vec![pid];
        }
        let names = self.tree.list(&format!("proc/{pid}/task")).unwrap_or_default();
        names.iter().filter_map(|name| name.parse().ok()).collect()
    }

    /// Returns the CPU time of a thread and its time in a run queue. Returns None if the thread has
    /// ended or the kernel provides no schedstat.
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

    /// Returns the CPU usage of children that started and ended between readings: the CPU time of
    /// reaped children minus the part that earlier readings included. Forgets ended processes.
    fn forget_ended(&mut self, now_ns: i64, usages: &mut HashMap<i32, Usage>) -> Totals {
        let mut without_parent_ns = 0;
        let gone = self.known.values().filter(|process| process.seen_ns != now_ns);
        for process in gone.chain(&self.replaced).filter(|process| process.role == Role::Other) {
            let seen_ns = process.cpu_ns + process.waited_ns;
            match usages.get_mut(&process.parent) {
                Some(usage) => usage.waited_ns -= seen_ns,
                None => without_parent_ns += seen_ns, // its parent has ended too
            }
        }
        self.known.retain(|_, process| process.seen_ns == now_ns);
        self.replaced.clear();
        let mut ended = Totals::default();
        for usage in usages.values().filter(|usage| usage.waited_ns > 0) {
            add(&mut ended, usage.waited_ns, usage.weight, usage.waited_ns as f64);
        }
        let unseen_ns = (ended.cpu_ns - without_parent_ns as f64).max(0.0);
        let share = if ended.cpu_ns > 0.0 { unseen_ns / ended.cpu_ns } else { 0.0 };
        Totals {
            cpu_ns: unseen_ns,
            weighted_ns: ended.weighted_ns * share,
            demand_ns: ended.demand_ns * share,
        }
    }
}

/// Returns the share of a thread's CPU time that a normal task loses, from 3/1024 for SCHED_IDLE
/// to 1 for a thread of equal or higher priority.
fn weight_of(stat: &Stat) -> f64 {
    match stat.policy {
        IDLE_POLICY => IDLE_WEIGHT,
        policy if !FAIR_POLICIES.contains(&policy) => 1.0,
        _ => match usize::try_from(stat.nice - 1).ok().and_then(|index| NICE_WEIGHTS.get(index)) {
            Some(weight) => f64::from(*weight) / 1024.0,
            None => 1.0,
        },
    }
}

/// Returns the CPU time that a thread would have used in `span_ns` without waiting `queued_ns` for
/// a CPU. It extrapolates the thread's share of the remaining time to the span.
fn undelayed(ran_ns: i64, queued_ns: i64, span_ns: i64) -> f64 {
    let free_ns = (span_ns - queued_ns.max(0)).max(ran_ns);
    if free_ns == 0 {
        return 0.0;
    }
    // The reading of a thread's clock may be slightly later than the end of the span.
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
    fn weights_agree_with_the_scheduler_and_are_at_most_one() {
        assert_eq!(weight_of(&stat(0, 0)), 1.0);
        assert_eq!(weight_of(&stat(19, 0)), 15.0 / 1024.0);
        assert_eq!(weight_of(&stat(10, 3)), 110.0 / 1024.0);
        assert_eq!(weight_of(&stat(0, 5)), 3.0 / 1024.0);
        for (nice, policy) in [(-20, 0), (0, 1), (0, 2), (0, 6), (0, 7)] {
            assert_eq!(weight_of(&stat(nice, policy)), 1.0, "nice {nice}, policy {policy}");
        }
    }

    #[test]
    fn undelayed_time_extrapolates_the_share_of_the_time_without_waiting() {
        assert_eq!(undelayed(50, 50, 100), 100.0, "the thread never slept");
        assert_eq!(undelayed(20, 0, 100), 20.0);
        assert_eq!(undelayed(20, 60, 100), 50.0);
        assert_eq!(
            undelayed(103, 0, 100),
            103.0,
            "the readings of the clocks are not simultaneous"
        );
        assert_eq!(undelayed(20, 300, 100), 100.0);
        assert_eq!(undelayed(0, 0, 0), 0.0);
    }

    fn spin(prefix: &[&str]) -> Child {
        let argv = [prefix, &["sh", "-c", "while :; do :; done"]].concat();
        let spinner = Command::new(argv[0]).args(&argv[1..]).spawn().unwrap();
        let name = format!("/proc/{}/comm", spinner.id());
        while std::fs::read_to_string(&name).unwrap() != "sh\n" {
            std::thread::sleep(Duration::from_millis(2)); // until `prefix` has executed the shell
        }
        spinner
    }

    /// Returns the CPU usage of a process, measured as another process, and the time (ns) in which
    /// it was used: at least 200 ms, and as long as a busy machine does not run the process.
    fn used_by(pid: i32) -> (Usage, i64) {
        let mut others = Others { own_pid: 0, ..Others::new(&Tree::Live) };
        let begin_ns = clock::monotonic_ns();
        others.read(begin_ns, &[]);
        assert_eq!(others.known[&pid].role, Role::Other);
        let known_ns = others.known[&pid].cpu_ns;
        let mut cpu_ns = known_ns;
        while cpu_ns == known_ns {
            std::thread::sleep(Duration::from_millis(200));
            cpu_ns = Tree::Live.process_cpu_ns(pid).unwrap();
        }
        let usage = others.account(pid, cpu_ns, clock::monotonic_ns() - begin_ns).unwrap();
        (usage, clock::monotonic_ns() - begin_ns)
    }

    #[test]
    fn the_demand_of_a_busy_loop_has_its_weight_and_includes_its_waiting_time() {
        let normal: [&str; 0] = [];
        let default_weight = weight_of(&Stat::read(std::process::id() as i32).unwrap());
        for (prefix, weight) in
            [(&normal[..], default_weight), (&["nice", "-n", "19"][..], 15.0 / 1024.0)]
        {
            let mut spinner = spin(prefix);
            let (usage, elapsed_ns) = used_by(spinner.id() as i32);
            spinner.kill().unwrap();
            spinner.wait().unwrap();
            let used = usage.used;
            assert!(used.cpu_ns > 0.0, "{used:?}");
            assert!((used.weighted_ns / used.cpu_ns - weight).abs() < 1e-9, "{used:?}");
            // The loop never sleeps, so its demand is its CPU time plus its waiting time.
            let demand_ns = used.demand_ns / weight;
            // The clocks are not read at the same time.
            assert!(
                (used.cpu_ns * 0.99..elapsed_ns as f64 * 1.01).contains(&demand_ns),
                "{used:?}"
            );
        }
    }

    #[test]
    fn descendants_of_own_and_attached_processes_are_not_others() {
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
            crate::members::kill(pid, libc::SIGKILL);
        }
        shell.wait().unwrap();
        assert_eq!((roles, roles_attached), ([Role::Own; 2], [Role::Own; 2]));
    }

    #[test]
    fn the_reaped_cpu_time_of_a_parent_includes_children_between_readings() {
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
        let usage = others.account(pid, cpu_ns, clock::monotonic_ns() - begin_ns).unwrap();
        crate::members::kill(pid, libc::SIGKILL);
        shell.wait().unwrap();
        assert!(usage.waited_ns >= 5 * others.tick_ns, "{} ns", usage.waited_ns);
    }
}
