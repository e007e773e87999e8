//! A deterministic counter of 2 W, computed from the clock, which wraps every 5 s. A test may add
//! energy per CPU second.

use crate::cpu_times::BusyReader;
use crate::meter::{Absent, Meter, Opened, Place, Samples, SeriesId, Tree, TreeFile};

/// The counter wraps from RANGE_UJ − 1 to 0.
const RANGE_UJ: u64 = 10_000_000;
const WATTS: u64 = 2;
/// Energy in joules that each second of busy CPU time adds to the 2 W.
const PLANTED: &str = "WATTWIRE_FAKE_JOULES_PER_CPU_SECOND";

struct Fake {
    /// The raw counter's file in a replay, with which fixtures determine the values.
    script: Option<TreeFile>,
    /// The host's busy time, and the added joules per CPU second.
    planted: Option<(BusyReader, f64)>,
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
    let planted = match std::env::var(PLANTED) {
        Ok(text) if script.is_none() => {
            let joules: f64 = text.parse().map_err(|_| {
                Absent::because(format!("{PLANTED}: found {text:?}; allowed: a number, in joules"))
            })?;
            Some((BusyReader::open(tree)?, joules))
        }
        _ => None,
    };
    Ok(Opened::new(Fake { script, planted, energy: None }))
}

impl Fake {
    /// Returns the energy that the machine's busy time has added, or 0 without planted energy.
    fn planted_uj(&mut self) -> Option<u64> {
        let Some((busy, joules_per_cpu_second)) = &mut self.planted else { return Some(0) };
        Some((busy.read_us()? * *joules_per_cpu_second) as u64)
    }
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
            None => self.planted_uj().map(|uj| (t_ns as u64 / 1000 * WATTS + uj) % RANGE_UJ),
        };
        match raw {
            Some(raw) => samples.counter(energy, raw),
            None => samples.lost(energy),
        }
    }
}
