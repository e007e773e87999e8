//! Deterministic: 2 W for ever, read from the clock, with a counter that wraps every 5 s.

use crate::meter::{Absent, Meter, Opened, Place, Samples, SeriesId, Tree, TreeFile};

/// The counter shows 0 … RANGE_UJ − 1 and starts again.
const RANGE_UJ: u64 = 10_000_000;
const WATTS: u64 = 2;

struct Fake {
    /// In a replay, the raw counter comes from this file, so that fixtures can script it.
    script: Option<TreeFile>,
    energy: Option<SeriesId>,
}

pub fn open(tree: &Tree) -> Result<Opened, Absent> {
    let script = match tree {
        Tree::Live => None,
        Tree::Replay(..) => {
            let file = tree.open("fake/energy_uj");
            Some(file.map_err(|error| Absent::because(format!("fake/energy_uj: {error}")))?)
        }
    };
    Ok(Opened::new(Fake { script, energy: None }))
}

impl Meter for Fake {
    fn declare(&mut self, samples: &mut Samples) {
        let place = Place { wrap: Some(RANGE_UJ), ..Place::of("package-0") };
        self.energy = Some(samples.declare("energy", place));
    }

    fn read(&mut self, samples: &mut Samples) {
        let Some(energy) = self.energy else { return };
        let t_ns = samples.begin();
        let raw = match &self.script {
            Some(file) => file.number(),
            None => Some((t_ns as u64 / 1000 * WATTS) % RANGE_UJ),
        };
        match raw {
            Some(raw) => samples.counter(energy, raw),
            None => samples.lost(energy),
        }
    }
}
