//! The interface that a meter implements. The meters are in `meters/<name>/`, and `registry.rs`
//! lists them. No code of the agent refers to a meter by name.

use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use crate::cgroup::Cgroup;
pub use crate::device::{Fault, OpenedStream, Out, Received, Stream, Wait};
pub use crate::perf::PerfCounter;
use crate::reaped::{Reaped, Usage};
pub use crate::samples::{Place, Samples, SeriesId};
pub use crate::tree::Tree;
pub use crate::tree_file::{parse_number, TreeFile};

/// The reason why a meter cannot read on this host. An absent meter is not an error.
#[derive(Debug, PartialEq)]
pub struct Absent {
    pub reason: String,
    /// The command that grants the missing right; empty if there is none.
    pub grant: String,
}

impl Absent {
    pub fn because(reason: impl Into<String>) -> Absent {
        Absent { reason: reason.into(), grant: String::new() }
    }
}

pub struct Opened {
    pub meter: Box<dyn Meter>,
    /// Metadata that applies to all series of the meter, such as names, ranges and missing parts.
    pub info: Map<String, Value>,
}

impl Opened {
    pub fn new(meter: impl Meter + 'static) -> Opened {
        Opened { meter: Box::new(meter), info: Map::new() }
    }
}

/// Reads quantities by one method. `read` must not print or start a process. It may allocate only
/// for a new process or device.
pub trait Meter: Send {
    /// Declares the series that do not depend on processes.
    fn declare(&mut self, samples: &mut Samples);

    /// Starts measuring a subject. Called once per subject, also during sampling.
    fn follow(&mut self, _subject: &Arc<Subject>, _samples: &mut Samples) {}

    /// Reads all quantities once. `samples.edge` is true at the start, at marks and at the stop.
    fn read(&mut self, samples: &mut Samples);
}

/// The processes that are measured under one name, usually a process with all its descendants.
pub struct Subject {
    pub name: String,
    pub pid: i32,
    /// The guard whose descendants belong to the subject; 0 without a guard of this agent.
    pub guard_pid: i32,
    pub reach: Reach,
    pub cgroup: Option<Cgroup>,
    pub ended: OnceLock<Final>,
}

/// Defines which processes belong to a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// A process that this agent started: all processes in its cgroup or, without a cgroup, all
    /// descendants of its guard.
    Guarded,
    /// An attached process with its descendants.
    Below,
    /// A single process.
    Alone,
    /// All processes in an attached cgroup, which this agent did not create.
    Cgroup,
}

impl Subject {
    /// Returns the current processes of the subject.
    pub fn pids(&self, tree: &Tree) -> Vec<i32> {
        match self.reach {
            Reach::Guarded => tree.descendants(self.guard_pid),
            Reach::Below => [vec![self.pid], tree.descendants(self.pid)].concat(),
            Reach::Alone => vec![self.pid],
            Reach::Cgroup => self.cgroup.iter().flat_map(Cgroup::pids_below).collect(),
        }
    }
}

/// The final CPU times of a subject, after its main process ended and all its processes were
/// reaped.
pub struct Final {
    /// From the cgroup, read before the agent removed it.
    pub cgroup_usage_ns: Option<i64>,
    /// Sum over all reaped processes. None: the guard was killed.
    pub rusage: Option<Usage>,
    /// The processes that the guard reaped.
    pub reaped: Vec<Reaped>,
}
