//! An ESTIMATE of energy: busy CPU time times a range of joules per CPU second. It contains no
//! information beyond CPU time.

use serde::Deserialize;
use serde_json::{json, Map};

use crate::cpu_times::BusyReader;
use crate::meter::{Absent, Meter, Opened, Place, Samples, SeriesId, Tree};

/// A kind of machine with its range. README.md explains the ranges.
#[derive(Clone)]
struct Model {
    name: &'static str,
    low: f64,
    high: f64,
    because: &'static str,
}

/// The file that `wattwire calibrate` writes.
const CALIBRATION: &str = "calibration.json";

#[derive(Deserialize)]
struct Calibrations {
    calibrations: Vec<Calibration>,
}

#[derive(Deserialize)]
struct Calibration {
    cpu_name: String,
    virtualisation: String,
    joules_per_cpu_second: Range,
}

#[derive(Deserialize)]
struct Range {
    low: f64,
    high: f64,
}

const BOARD: Model = Model {
    name: "single-board computer",
    low: 0.3,
    high: 2.5,
    because: "boards draw a total of 2 to 10 W, of which four busy cores draw 2 to 6 W",
};
const SERVER: Model = Model {
    name: "server",
    low: 1.0,
    high: 15.0,
    because: "1 to 4 W per hardware thread at full load, up to 15 W for a single boosted core",
};
const DESKTOP: Model = Model {
    name: "desktop or laptop",
    low: 1.0,
    high: 30.0,
    because: "2 W for an efficiency core, up to 30 W for a single core at its highest clock",
};
const VIRTUAL: Model = Model {
    name: "virtual machine",
    low: 0.5,
    high: 30.0,
    because: "a virtual CPU may be a thread of any machine, shared or not",
};

/// Minimum number of hardware threads of a server.
const SERVER_CPUS: usize = 48;

struct CpuModel {
    busy: BusyReader,
    model: Model,
    series: Option<(SeriesId, SeriesId)>,
}

pub fn open(tree: &Tree) -> Result<Opened, Absent> {
    let busy = BusyReader::open(tree)?;
    let mut info = Map::new();
    let model = match calibrated(tree) {
        Ok(Some(model)) => model,
        Ok(None) => choose(tree).clone(),
        Err(problem) => {
            info.insert("calibration_refused".into(), problem.into());
            choose(tree).clone()
        }
    };
    info.insert("model".into(), model.name.into());
    info.insert("joules_per_cpu_second_low".into(), model.low.into());
    info.insert("joules_per_cpu_second_high".into(), model.high.into());
    info.insert("because".into(), model.because.into());
    info.insert("warning".into(), json!("an estimate without information beyond CPU time"));
    let meter = CpuModel { busy, model, series: None };
    Ok(Opened { meter: Box::new(meter), info })
}

/// Returns the last calibrated range of a processor with this name in the same kind of (virtual)
/// machine. Returns an error if the file of calibrations is invalid.
fn calibrated(tree: &Tree) -> Result<Option<Model>, String> {
    let Some(text) = tree.user_config(CALIBRATION) else { return Ok(None) };
    let file: Calibrations =
        serde_json::from_str(&text).map_err(|error| format!("{CALIBRATION}: {error}"))?;
    let cpuinfo = tree.text("proc/cpuinfo").unwrap_or_default();
    let name = crate::fingerprint::cpu_name(&cpuinfo).unwrap_or_default();
    let machine = crate::fingerprint::virtualisation(tree);
    let matches = |entry: &&Calibration| entry.cpu_name == name && entry.virtualisation == machine;
    let Some(calibration) = file.calibrations.iter().rev().find(matches) else { return Ok(None) };
    let Range { low, high } = calibration.joules_per_cpu_second;
    if !(low > 0.0 && low <= high && high.is_finite()) {
        return Err(format!(
            "{CALIBRATION}: joules_per_cpu_second of {name:?}: found {low} to {high}; allowed: \
             two positive numbers, the smaller first"
        ));
    }
    let because = "calibrated on a processor of this name against its energy counter";
    Ok(Some(Model { name: "calibrated", low, high, because }))
}

fn choose(tree: &Tree) -> &'static Model {
    let cpuinfo = tree.text("proc/cpuinfo").unwrap_or_default();
    let board = tree.text("proc/device-tree/model").unwrap_or_default();
    let virtual_machine = crate::fingerprint::virtualisation(tree) != "none";
    let cpus = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
    let is_server = cpus >= SERVER_CPUS || cpuinfo.contains("Xeon") || cpuinfo.contains("EPYC");
    match (virtual_machine, board.is_empty(), is_server) {
        (true, _, _) => &VIRTUAL,
        (false, false, _) => &BOARD,
        (false, true, true) => &SERVER,
        (false, true, false) => &DESKTOP,
    }
}

impl Meter for CpuModel {
    fn declare(&mut self, samples: &mut Samples) {
        let mut end = |quantity, joules: f64| {
            let mut info = Map::new();
            info.insert("model".into(), self.model.name.into());
            info.insert("joules_per_cpu_second".into(), joules.into());
            samples.declare(quantity, Place { info, ..Place::of("machine") })
        };
        self.series =
            Some((end("energy_low", self.model.low), end("energy_high", self.model.high)));
    }

    fn read(&mut self, samples: &mut Samples) {
        let Some((low, high)) = self.series else { return };
        samples.begin();
        match self.busy.read_us() {
            Some(busy_us) => {
                // J/s equals uJ/us.
                samples.put(low, busy_us * self.model.low);
                samples.put(high, busy_us * self.model.high);
            }
            None => {
                samples.lost(low);
                samples.lost(high);
            }
        }
    }
}
