//! Counts and times system calls in the kernel. eBPF programs at the tracepoints `sys_enter` and
//! `sys_exit` sum calls and times by cgroup and call. The sums therefore include every process of a
//! tree from its start, regardless of namespaces.

#[path = "calls.rs"]
mod calls;
#[path = "programs.rs"]
mod programs;

use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use crate::bpf::{attach, Attached};
use crate::clock;
use crate::meter::{Absent, Meter, Opened, Place, Reach, Samples, SeriesId, Subject, Tree};
use programs::{ending, entering, leaving};
use programs::{Entered, Maps, Sum, CALLS, SLOTS, SUBJECTS_MAX, UNCOUNTED};

const GRANT: &str = "run as root, or: setcap cap_bpf,cap_perfmon=ep target/release/wattwire-agent";

struct SystemCalls {
    tree: Tree,
    /// None in a replay.
    kernel: Option<(Maps, [Attached; 3])>,
    followed: Vec<Followed>,
    sums: Vec<(Key, Sum)>,
    timed: Vec<(Key, Timed)>,
    /// Calls that were in progress at the last reading, and the time of that reading.
    pending: Vec<Entered>,
    pending_ns: u64,
}

/// Identifies a sum by a subject's row and the number of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    row: u32,
    call: usize,
}

/// Time of calls that have returned. For each call it excludes the time before the last reading
/// that precedes its return, because a wait before the first message must not count for it.
#[derive(Clone, Copy, Default)]
struct Timed {
    kernel_ns: u64,
    ns: u64,
}

struct Followed {
    subject: Arc<Subject>,
    row: u32,
    calls: Vec<(usize, [SeriesId; 3])>,
    uncounted: SeriesId,
    cpu: [SeriesId; 2],
}

pub fn open(tree: &Tree) -> Result<Opened, Absent> {
    let refused = |error: &io::Error| Absent {
        reason: format!("the kernel rejects eBPF programs of this user (bpf(2): {error})"),
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
    let maps = Maps::create(SLOTS)?;
    let programs = [
        attach(entering(&maps), c"sys_enter")?,
        attach(leaving(&maps), c"sys_exit")?,
        attach(ending(&maps), c"sched_process_exit")?,
    ];
    Ok((maps, programs))
}

impl SystemCalls {
    /// Reads the kernel's sums and replaces their times with those of `Timed`.
    fn gather(&mut self, now_ns: u64) {
        let Some((maps, _)) = &self.kernel else { return };
        let before = std::mem::take(&mut self.pending);
        // Reads the open calls first. A call that returns before the sums are read is then part of
        // both, otherwise it could be part of neither.
        let pending = &mut self.pending;
        maps.each_entered(|entered| pending.push(entered));
        let sums = &mut self.sums;
        sums.clear();
        let mut row_sums = vec![Sum::default(); CALLS];
        for row in self.followed.iter().map(|followed| followed.row) {
            if maps.sums.get_all(row, &mut row_sums) {
                let is_used = |(call, sum): &(usize, &Sum)| *call == UNCOUNTED || sum.calls != 0;
                let used = row_sums.iter().enumerate().filter(is_used);
                sums.extend(used.map(|(call, sum)| (Key { row, call }, *sum)));
            }
        }
        for (key, sum) in sums {
            let index = self.timed.iter().position(|(known, _)| known == key);
            let index = index.unwrap_or_else(|| {
                self.timed.push((*key, Timed::default()));
                self.timed.len() - 1
            });
            let timed = &mut self.timed[index].1;
            let returned = before.iter().filter(|entered| {
                let same = |now: &Entered| now.thread == entered.thread && now.t_ns == entered.t_ns;
                entered.is_of(key) && !self.pending.iter().any(same)
            });
            let early_ns: u64 =
                returned.map(|entered| self.pending_ns.saturating_sub(entered.t_ns)).sum();
            timed.ns += (sum.ns - timed.kernel_ns).saturating_sub(early_ns);
            timed.kernel_ns = sum.ns;
            sum.ns = timed.ns;
        }
        self.pending_ns = now_ns;
    }
}

impl Entered {
    fn is_of(&self, key: &Key) -> bool {
        self.subject == u64::from(key.row) && self.call == key.call as u64
    }
}

impl Followed {
    fn put_call(&mut self, call: usize, sum: &Sum, samples: &mut Samples) {
        let series = match self.calls.iter().find(|(known, _)| *known == call) {
            Some((_, series)) => *series,
            None => {
                let subject = format!("{}/{}", self.subject.name, calls::name(call as u64));
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

    /// Returns the cgroup's CPU time in ns in the kernel and in user space.
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
            return; // the programs count only by cgroup
        };
        // In the hierarchy of version 2 a cgroup's number is the inode of its folder.
        let is_v2 = cgroup.usage.ends_with("cpu.stat");
        let number = std::fs::metadata(&cgroup.path).map(|metadata| metadata.ino());
        let (Some((maps, _)), true, Ok(number)) = (&self.kernel, is_v2, number) else { return };
        // The subject gets the next row, whose sums are initially 0.
        let row = self.followed.len() as u32;
        if row >= SUBJECTS_MAX || maps.watched.set(&number, &u64::from(row)).is_err() {
            return;
        }
        let place = || Place::of(&subject.name);
        let uncounted = samples.declare("syscalls_uncounted", place());
        let cpu = ["cpu_time_kernel", "cpu_time_user"].map(|name| samples.declare(name, place()));
        let subject = subject.clone();
        self.followed.push(Followed { subject, row, calls: Vec::new(), uncounted, cpu });
    }

    fn read(&mut self, samples: &mut Samples) {
        let now_ns = clock::monotonic_ns() as u64;
        samples.begin();
        self.gather(now_ns);
        for followed in &mut self.followed {
            let row = followed.row;
            for (key, sum) in self.sums.iter().filter(|(key, _)| key.row == row) {
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
