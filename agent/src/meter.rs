//! What a meter is. The meters themselves are in `meters/<name>/`; `registry.rs` lists them,
//! and nothing here names one.

use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use crate::cgroup::Cgroup;
use crate::guard::Usage;
pub use crate::perf::PerfCounter;
pub use crate::samples::{Place, Samples, SeriesId};
pub use crate::tree::Tree;
pub use crate::tree_file::{parse_number, TreeFile};

/// Why a meter cannot read here: data, not a failure.
#[derive(Debug, PartialEq)]
pub struct Absent {
    pub reason: String,
    /// The command that would grant it; empty if nothing would.
    pub grant: String,
}

impl Absent {
    pub fn because(reason: impl Into<String>) -> Absent {
        Absent { reason: reason.into(), grant: String::new() }
    }
}

pub struct Opened {
    pub meter: Box<dyn Meter>,
    /// What holds for all its series: names, ranges, what of it is missing.
    pub info: Map<String, Value>,
}

impl Opened {
    pub fn new(meter: impl Meter + 'static) -> Opened {
        Opened { meter: Box::new(meter), info: Map::new() }
    }
}

/// Reads one thing by one method. `read` must not print or start anything, and must not allocate
/// but where a process or a device was not there before.
pub trait Meter: Send {
    /// Declares the series that do not depend on processes.
    fn declare(&mut self, samples: &mut Samples);

    /// A process is to be followed (called once for each, also while sampling goes on).
    fn follow(&mut self, _subject: &Arc<Subject>, _samples: &mut Samples) {}

    /// Reads everything once. `samples.edge` is true at start, marks and stop.
    fn read(&mut self, samples: &mut Samples);
}

/// What is measured under one name: as a rule a process with all its descendants.
pub struct Subject {
    pub name: String,
    pub pid: i32,
    /// Whose descendants count; 0 where no guard of ours is above it.
    pub guard_pid: i32,
    pub reach: Reach,
    pub cgroup: Option<Cgroup>,
    pub ended: OnceLock<Final>,
}

/// Which processes count as one subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Started here: all that is in its cgroup, or without one all descendants of its guard.
    Guarded,
    /// Attached: a running process with its descendants.
    Below,
    /// One process alone.
    Alone,
    /// Attached: whatever is in a cgroup that is not ours.
    Cgroup,
}

impl Subject {
    /// The processes that count now.
    pub fn pids(&self, tree: &Tree) -> Vec<i32> {
        match self.reach {
            Reach::Guarded => tree.descendants(self.guard_pid),
            Reach::Below => [vec![self.pid], tree.descendants(self.pid)].concat(),
            Reach::Alone => vec![self.pid],
            Reach::Cgroup => self.cgroup.iter().flat_map(Cgroup::pids_below).collect(),
        }
    }
}

/// What was known when a process had ended and everything of it was reaped.
pub struct Final {
    /// From the cgroup, before it was removed.
    pub cgroup_usage_ns: Option<i64>,
    /// Sum over everything reaped. None: the guard was lost.
    pub rusage: Option<Usage>,
}
