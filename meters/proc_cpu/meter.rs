//! CPU time of a process tree, from its cgroup or, without a cgroup, from the processes' clocks.

use std::sync::Arc;

use crate::cgroup;
use crate::members::Stat;
use crate::meter::{
    Absent, Final, Meter, Opened, Place, Reach, Samples, SeriesId, Subject, Tree, TreeFile,
};

/// Period at which the meter lists the processes of a tree without a cgroup.
const SEARCH_PERIOD_NS: i64 = 1_000_000_000;
const BUFFER_BYTES: usize = 1024;

struct ProcCpu {
    tree: Tree,
    agent: Option<SeriesId>,
    followed: Vec<Followed>,
    buffer: [u8; BUFFER_BYTES],
}

struct Followed {
    subject: Arc<Subject>,
    series: SeriesId,
    source: Source,
    highest_ns: i64,
    finished: bool,
}

enum Source {
    Cgroup(TreeFile),
    Clocks(Clocks),
}

/// The source without a cgroup: the clocks of the live processes, and the CPU time of the children
/// that they and the guard reaped.
struct Clocks {
    pids: Vec<i32>,
    /// CPU time of reaped descendants, with the resolution of a clock tick.
    waited_ns: i64,
    searched_ns: i64,
}

pub fn open(tree: &Tree) -> Result<Opened, Absent> {
    Ok(Opened::new(ProcCpu {
        tree: tree.clone(),
        agent: None,
        followed: Vec::new(),
        buffer: [0; BUFFER_BYTES],
    }))
}

impl Meter for ProcCpu {
    fn declare(&mut self, samples: &mut Samples) {
        let place = Place { scope: "harness", ..Place::of("agent") };
        self.agent = Some(samples.declare("cpu_time", place));
    }

    fn follow(&mut self, subject: &Arc<Subject>, samples: &mut Samples) {
        let usage = subject.cgroup.as_ref().map(|cgroup| cgroup.usage.display().to_string());
        let file = usage.and_then(|path| self.tree.open(path.trim_start_matches('/')).ok());
        let (source, method) = match file {
            Some(file) => (Source::Cgroup(file), "cgroup"),
            None => (Source::Clocks(Clocks::new(subject)), "clocks"),
        };
        let series = samples.declare("cpu_time", Place::of(&subject.name));
        samples.note(series, "method", method.into());
        self.followed.push(Followed {
            subject: subject.clone(),
            series,
            source,
            highest_ns: 0,
            finished: false,
        });
    }

    fn read(&mut self, samples: &mut Samples) {
        if let Some(agent) = self.agent {
            samples.begin();
            match self.tree.own_cpu_ns() {
                Some(cpu_ns) => samples.put(agent, cpu_ns as f64),
                None => samples.lost(agent),
            }
        }
        for followed in self.followed.iter_mut().filter(|followed| !followed.finished) {
            let now_ns = samples.begin();
            let cpu_ns = match followed.subject.ended.get() {
                Some(end) => {
                    followed.finished = true;
                    final_cpu_ns(end)
                }
                None => match &mut followed.source {
                    Source::Cgroup(file) => {
                        file.read(&mut self.buffer).ok().and_then(cgroup::parse_usage_ns)
                    }
                    Source::Clocks(clocks) => {
                        clocks.read(&self.tree, &followed.subject, now_ns, samples.edge)
                    }
                },
            };
            match cpu_ns {
                Some(cpu_ns) => {
                    // Ticks and microseconds are truncated differently at a process's end, so the
                    // sum may decrease by less than a tick. Keeps the maximum.
                    followed.highest_ns = followed.highest_ns.max(cpu_ns);
                    samples.put(followed.series, followed.highest_ns as f64);
                }
                None => samples.lost(followed.series),
            }
        }
    }
}

/// Returns the CPU time of an ended process: its cgroup's count, else the sum of its guard.
fn final_cpu_ns(end: &Final) -> Option<i64> {
    let reaped = end.rusage.as_ref().map(|usage| usage.user_ns + usage.system_ns);
    end.cgroup_usage_ns.or(reaped)
}

impl Clocks {
    fn new(subject: &Subject) -> Clocks {
        Clocks { pids: vec![subject.pid], waited_ns: 0, searched_ns: i64::MIN / 2 }
    }

    fn read(&mut self, tree: &Tree, subject: &Subject, now_ns: i64, edge: bool) -> Option<i64> {
        if edge || now_ns - self.searched_ns >= SEARCH_PERIOD_NS {
            self.search(tree, subject, now_ns);
        }
        // A process that has ended was reaped, and `waited_ns` includes its time after a search.
        self.sum(tree).or_else(|| {
            self.search(tree, subject, now_ns);
            self.sum(tree)
        })
    }

    fn sum(&self, tree: &Tree) -> Option<i64> {
        let mut sum_ns = self.waited_ns;
        for pid in &self.pids {
            sum_ns += tree.process_cpu_ns(*pid)?;
        }
        Some(sum_ns)
    }

    fn search(&mut self, tree: &Tree, subject: &Subject, now_ns: i64) {
        self.searched_ns = now_ns;
        self.pids = subject.pids(tree);
        if subject.reach == Reach::Alone {
            return;
        }
        let guard = (subject.reach == Reach::Guarded).then_some(&subject.guard_pid);
        let waiting = self.pids.iter().chain(guard);
        let stats = waiting.filter_map(|pid| tree.text(&format!("proc/{pid}/stat")).ok());
        let ticks: u64 = stats
            .filter_map(|text| Stat::parse(&text))
            .map(|stat| stat.waited_children_ticks)
            .sum();
        // SAFETY: plain system call.
        let ticks_per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1);
        self.waited_ns = ticks as i64 * (1_000_000_000 / ticks_per_second);
    }
}
