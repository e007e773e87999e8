//! The state of the machine: `/proc/stat`, load, CPU frequency, thermal zones.

use serde_json::{Map, Value};

use crate::cpu_times::{tick_ns, BusyTime, CpuTimes, STAT_BYTES};
use crate::meter::{parse_number, Absent, Meter, Opened, Place, Samples, SeriesId, Tree, TreeFile};

const MACHINE: &str = "machine";

struct HostState {
    stat: TreeFile,
    load: Option<TreeFile>,
    frequencies: Vec<TreeFile>,
    zones: Vec<Zone>,
    series: Option<MachineSeries>,
    tick_ns: u64,
    busy_time: BusyTime,
    buffer: Vec<u8>,
}

struct Zone {
    name: String,
    kind: String,
    file: TreeFile,
    series: Option<SeriesId>,
}

struct MachineSeries {
    /// Busy, steal, softirq, irq and iowait time.
    times: [SeriesId; 5],
    context_switches: SeriesId,
    processes_started: SeriesId,
    running: SeriesId,
    load_1min: Option<SeriesId>,
    frequency: Option<SeriesId>,
}

pub fn open(tree: &Tree) -> Result<Opened, Absent> {
    let stat = tree.open("proc/stat");
    let stat = stat.map_err(|error| Absent::because(format!("/proc/stat: {error}")))?;
    let cpus = "sys/devices/system/cpu";
    let frequencies = numbered(tree, cpus, "cpu")
        .into_iter()
        .filter_map(|cpu| tree.open(&format!("{cpus}/{cpu}/cpufreq/scaling_cur_freq")).ok());
    let thermal = "sys/class/thermal";
    let zones = numbered(tree, thermal, "thermal_zone").into_iter().filter_map(|name| {
        let file = tree.open(&format!("{thermal}/{name}/temp")).ok()?;
        // Omits zones that cannot be read, such as those of a suspended device.
        file.number()?;
        let kind = tree.text(&format!("{thermal}/{name}/type")).unwrap_or_default();
        Some(Zone { name, kind, file, series: None })
    });
    let meter = HostState {
        stat,
        load: tree.open("proc/loadavg").ok(),
        frequencies: frequencies.collect(),
        zones: zones.collect(),
        series: None,
        tick_ns: tick_ns(tree),
        busy_time: BusyTime::new(tree),
        buffer: vec![0; STAT_BYTES],
    };
    let mut info = Map::new();
    info.insert("frequency".into(), (!meter.frequencies.is_empty()).into());
    info.insert("thermal_zones".into(), meter.zones.len().into());
    info.insert("tick_ns".into(), meter.tick_ns.into());
    Ok(Opened { meter: Box::new(meter), info })
}

/// Returns the names `<prefix><number>` in a folder.
fn numbered(tree: &Tree, folder: &str, prefix: &str) -> Vec<String> {
    let is_numbered =
        |name: &String| name.strip_prefix(prefix).is_some_and(|rest| rest.parse::<u32>().is_ok());
    tree.list(folder).unwrap_or_default().into_iter().filter(is_numbered).collect()
}

impl Meter for HostState {
    fn declare(&mut self, samples: &mut Samples) {
        let mut machine = |quantity| samples.declare(quantity, Place::of(MACHINE));
        self.series = Some(MachineSeries {
            times: ["busy_time", "steal_time", "softirq_time", "irq_time", "iowait_time"]
                .map(&mut machine),
            context_switches: machine("context_switches"),
            processes_started: machine("processes_started"),
            running: machine("running"),
            load_1min: self.load.as_ref().map(|_| machine("load_1min")),
            frequency: (!self.frequencies.is_empty()).then(|| machine("frequency")),
        });
        for zone in &mut self.zones {
            let mut info = Map::new();
            info.insert("type".into(), Value::from(zone.kind.as_str()));
            let place = Place { info, ..Place::of(&zone.name) };
            zone.series = Some(samples.declare("temperature", place));
        }
    }

    fn read(&mut self, samples: &mut Samples) {
        let Some(series) = &self.series else { return };
        samples.begin();
        let stat = self.stat.read(&mut self.buffer).unwrap_or_default();
        let times_ns = CpuTimes::parse(stat).map(|times| {
            let [steal, softirq, irq, iowait] =
                [times.steal, times.softirq, times.irq, times.iowait].map(|t| t * self.tick_ns);
            [self.busy_time.advance(&times), steal, softirq, irq, iowait]
        });
        for (index, id) in series.times.iter().enumerate() {
            match times_ns {
                Some(times_ns) => samples.counter(*id, times_ns[index]),
                None => samples.lost(*id),
            }
        }
        for (id, key) in
            [(series.context_switches, "ctxt "), (series.processes_started, "processes ")]
        {
            match line_number(stat, key) {
                Some(count) => samples.counter(id, count),
                None => samples.lost(id),
            }
        }
        put(samples, series.running, line_number(stat, "procs_running ").map(|n| n as f64));
        if let (Some(id), Some(file)) = (series.load_1min, &self.load) {
            samples.begin();
            let load = file.read(&mut self.buffer).ok().and_then(leading_decimal);
            put(samples, id, load);
        }
        if let Some(id) = series.frequency {
            samples.begin();
            put(samples, id, mean_hz(&self.frequencies));
        }
        for zone in &self.zones {
            let Some(id) = zone.series else { continue };
            samples.begin();
            put(samples, id, zone.file.number().map(|milli| milli as f64 / 1000.0));
        }
    }
}

fn put(samples: &mut Samples, series: SeriesId, value: Option<f64>) {
    match value {
        Some(value) => samples.put(series, value),
        None => samples.lost(series),
    }
}

fn line_number(text: &[u8], key: &str) -> Option<u64> {
    let mut lines = text.split(|byte| *byte == b'\n');
    parse_number(lines.find_map(|line| line.strip_prefix(key.as_bytes()))?)
}

fn leading_decimal(text: &[u8]) -> Option<f64> {
    let word = text.split(|byte| *byte == b' ').next()?;
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// Returns the mean over the online CPUs. The files contain kHz.
fn mean_hz(files: &[TreeFile]) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0u32);
    for khz in files.iter().filter_map(TreeFile::number) {
        sum += khz as f64 * 1000.0;
        count += 1;
    }
    (count > 0).then(|| sum / f64::from(count))
}
