//! Counts and times system calls in the kernel: programs of ours at the tracepoints `sys_enter` and
//! `sys_exit` add up by cgroup and call, so that every process of a tree is in it from its
//! birth, whatever its namespaces.

#[path = "calls.rs"]
mod calls;
#[path = "programs.rs"]
mod programs;

use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use crate::bpf::{attach, Attached, Map};
use crate::clock;
use crate::meter::{Absent, Meter, Opened, Place, Reach, Samples, SeriesId, Subject, Tree};
use programs::{ending, entering, leaving, Entered, Key, Maps, Sum, UNCOUNTED};

const GRANT: &str = "run as root, or: setcap cap_bpf,cap_perfmon=ep target/release/wattwire-agent";
const THREADS_MAX: u32 = 8192;
const CALLS_MAX: u32 = 8192;
const SUBJECTS_MAX: u32 = 512;

struct SystemCalls {
    tree: Tree,
    /// None in a replay: a stored tree holds no kernel.
    kernel: Option<(Maps, [Attached; 3])>,
    followed: Vec<Followed>,
    sums: Vec<(Key, Sum)>,
    timed: Vec<(Key, Timed)>,
    /// Calls that were going on at the last reading, by thread, and when that was.
    pending: Vec<(u32, Entered)>,
    pending_ns: u64,
}

/// Time of calls that have returned, without what of each lay before the reading that precedes
/// its return: a wait that began in silence would otherwise count for the first message.
#[derive(Clone, Copy, Default)]
struct Timed {
    kernel_ns: u64,
    ns: u64,
}

struct Followed {
    subject: Arc<Subject>,
    cgroup: u64,
    calls: Vec<(u64, [SeriesId; 3])>,
    uncounted: SeriesId,
    cpu: [SeriesId; 2],
}

pub fn open(tree: &Tree) -> Result<Opened, Absent> {
    let refused = |error: &io::Error| Absent {
        reason: format!("the kernel takes no program from this user (bpf(2): {error})"),
        grant: GRANT.into(),
    };
    let kernel = match tree {
        Tree::Live => Some(attached().map_err(|error| refused(&error))?),
        Tree::Replay(_) => tree.open("bpf").map(|_| None).map_err(|error| refused(&error))?,
    };
    Ok(Opened::new(SystemCalls {
        tree: tree.clone(),
        kernel,
        followed: Vec::new(),
        sums: Vec::new(),
        timed: Vec::new(),
        pending: Vec::new(),
        pending_ns: 0,
    }))
}

fn attached() -> io::Result<(Maps, [Attached; 3])> {
    let bytes = |length: usize| length as u32;
    let maps = Maps {
        watched: Map::create(8, 8, SUBJECTS_MAX)?,
        entered: Map::create(4, bytes(size_of::<Entered>()), THREADS_MAX)?,
        sums: Map::create(bytes(size_of::<Key>()), bytes(size_of::<Sum>()), CALLS_MAX)?,
    };
    let programs = [
        attach(entering(&maps), c"sys_enter")?,
        attach(leaving(&maps), c"sys_exit")?,
        attach(ending(&maps), c"sched_process_exit")?,
    ];
    Ok((maps, programs))
}

impl SystemCalls {
    /// Reads the kernel's sums and replaces their times by those of `Timed`.
    fn gather(&mut self, now_ns: u64) {
        let Some((maps, _)) = &self.kernel else { return };
        let before = std::mem::take(&mut self.pending);
        // First what goes on: what returns meanwhile is then in both, and not left out of both.
        let pending = &mut self.pending;
        maps.entered.each(|thread: u32, entered: Entered| {
            if entered.t_ns != 0 {
                pending.push((thread, entered));
            }
        });
        let sums = &mut self.sums;
        sums.clear();
        maps.sums.each(|key: Key, sum: Sum| sums.push((key, sum)));
        for (key, sum) in sums {
            let at = self.timed.iter().position(|(known, _)| known == key);
            let at = at.unwrap_or_else(|| {
                self.timed.push((*key, Timed::default()));
                self.timed.len() - 1
            });
            let timed = &mut self.timed[at].1;
            let returned = before.iter().filter(|(thread, entered)| {
                let same =
                    |(other, now): &&(u32, Entered)| other == thread && now.t_ns == entered.t_ns;
                entered.is_of(key) && !self.pending.iter().any(|one| same(&one))
            });
            let early_ns: u64 =
                returned.map(|(_, entered)| self.pending_ns.saturating_sub(entered.t_ns)).sum();
            timed.ns += (sum.ns - timed.kernel_ns).saturating_sub(early_ns);
            timed.kernel_ns = sum.ns;
            sum.ns = timed.ns;
        }
        self.pending_ns = now_ns;
    }
}

impl Entered {
    fn is_of(&self, key: &Key) -> bool {
        self.cgroup == key.cgroup && self.call == key.call
    }
}

impl Followed {
    fn put_call(&mut self, call: u64, sum: &Sum, samples: &mut Samples) {
        let series = match self.calls.iter().find(|(known, _)| *known == call) {
            Some((_, series)) => *series,
            None => {
                let subject = format!("{}/{}", self.subject.name, calls::name(call));
                let quantities = ["syscall_calls", "syscall_time", "syscall_errors"];
                let series = quantities.map(|name| samples.declare(name, Place::of(&subject)));
                self.calls.push((call, series));
                series
            }
        };
        samples.counter(series[0], sum.calls);
        samples.counter(series[1], sum.ns);
        samples.counter(series[2], sum.errors);
    }

    /// The cgroup's own division of its CPU time, in ns: in the kernel, and outside of it.
    fn cpu_ns(&self, tree: &Tree) -> Option<[u64; 2]> {
        let folder = &self.subject.cgroup.as_ref()?.path;
        let path = folder.join("cpu.stat");
        let text = tree.text(path.to_str()?.trim_start_matches('/')).ok()?;
        let value = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key))?;
            line.trim().parse::<u64>().ok().map(|us| us * 1000)
        };
        Some([value("system_usec ")?, value("user_usec ")?])
    }
}

impl Meter for SystemCalls {
    fn declare(&mut self, _samples: &mut Samples) {}

    fn follow(&mut self, subject: &Arc<Subject>, samples: &mut Samples) {
        let Some(cgroup) = subject.cgroup.as_ref().filter(|_| subject.reach == Reach::Guarded)
        else {
            return; // counted by cgroup only
        };
        // Its number is its folder's, in the hierarchy of version 2 and there only.
        let is_v2 = cgroup.usage.ends_with("cpu.stat");
        let number = std::fs::metadata(&cgroup.path).map(|found| found.ino());
        let (Some((maps, _)), true, Ok(number)) = (&self.kernel, is_v2, number) else { return };
        let key = Key { cgroup: number, call: UNCOUNTED };
        let room = maps.sums.set(&key, &Sum::default()).and(maps.watched.set(&number, &1u64));
        if room.is_err() {
            return;
        }
        let place = || Place::of(&subject.name);
        let uncounted = samples.declare("syscalls_uncounted", place());
        let cpu = ["cpu_time_kernel", "cpu_time_user"].map(|name| samples.declare(name, place()));
        let subject = subject.clone();
        self.followed.push(Followed { subject, cgroup: number, calls: Vec::new(), uncounted, cpu });
    }

    fn read(&mut self, samples: &mut Samples) {
        let now_ns = clock::monotonic_ns() as u64;
        samples.begin();
        self.gather(now_ns);
        for followed in &mut self.followed {
            let cgroup = followed.cgroup;
            for (key, sum) in self.sums.iter().filter(|(key, _)| key.cgroup == cgroup) {
                match key.call {
                    UNCOUNTED => samples.counter(followed.uncounted, sum.calls),
                    call => followed.put_call(call, sum, samples),
                }
            }
            if let Some(ns) = followed.cpu_ns(&self.tree) {
                followed.cpu.iter().zip(ns).for_each(|(series, ns)| samples.counter(*series, ns));
            }
        }
    }
}
