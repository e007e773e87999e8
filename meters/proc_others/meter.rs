//! CPU time of all processes except the agent, its descendants and attached processes.

use std::sync::Arc;

use serde_json::Map;

use crate::meter::{Absent, Meter, Opened, Place, Reach, Samples, SeriesId, Subject, Tree};
use crate::others::Others;

const MACHINE: &str = "machine";

struct ProcOthers {
    tree: Tree,
    others: Others,
    /// Attached subjects. `Others` identifies the agent's descendants by their parents.
    attached: Vec<Arc<Subject>>,
    series: Option<[SeriesId; 3]>,
}

pub fn open(tree: &Tree) -> Result<Opened, Absent> {
    let own_pid = tree.own_pid();
    if let Err(error) = tree.text(&format!("proc/{own_pid}/stat")) {
        return Err(Absent::because(format!("/proc/{own_pid}/stat: {error}")));
    }
    let mut info = Map::new();
    let has_schedstat = tree.text(&format!("proc/{own_pid}/schedstat")).is_ok();
    info.insert("knows_time_in_queue".into(), has_schedstat.into());
    info.insert("unseen".into(), tree.unseen_processes().into());
    let others = Others::new(tree);
    let meter = ProcOthers { tree: tree.clone(), others, attached: Vec::new(), series: None };
    Ok(Opened { meter: Box::new(meter), info })
}

impl Meter for ProcOthers {
    fn declare(&mut self, samples: &mut Samples) {
        self.series = Some(
            ["other_cpu_time", "other_weighted_time", "other_demand"]
                .map(|quantity| samples.declare(quantity, Place::of(MACHINE))),
        );
    }

    fn follow(&mut self, subject: &Arc<Subject>, _samples: &mut Samples) {
        if subject.reach != Reach::Guarded {
            self.attached.push(subject.clone());
        }
    }

    fn read(&mut self, samples: &mut Samples) {
        let Some(series) = self.series else { return };
        let now_ns = samples.begin();
        let ours: Vec<i32> =
            self.attached.iter().flat_map(|subject| subject.pids(&self.tree)).collect();
        let totals = self.others.read(now_ns, &ours);
        let values = [totals.cpu_ns, totals.weighted_ns, totals.demand_ns];
        for (id, value) in series.into_iter().zip(values) {
            samples.put(id, value.round());
        }
    }
}
