//! Energy events of the kernel's PMU `power`, with a counter per event and package.

use std::io;
use std::time::{Duration, Instant};

use serde_json::{json, Map};

use crate::meter::{Absent, Meter, Opened, PerfCounter, Place, Samples, SeriesId, Tree};

const FOLDER: &str = "sys/bus/event_source/devices/power";
const GRANT: &str = "sudo sysctl kernel.perf_event_paranoid=0";
const PREFIX: &str = "energy-";
/// Even on an idle processor a working counter changes every millisecond. A counter that stays at
/// 0 for this time does not work.
const MOVES_WITHIN: Duration = Duration::from_millis(100);

struct PerfPower {
    counters: Vec<Counter>,
}

struct Counter {
    event: Event,
    subject: String,
    cpu: u32,
    counter: PerfCounter,
    series: Option<SeriesId>,
}

impl Counter {
    fn name(&self) -> String {
        format!("{PREFIX}{} on cpu{}", self.event.name, self.cpu)
    }
}

#[derive(Clone)]
struct Event {
    name: String,
    config: u64,
    /// Energy of a count in µJ.
    step_uj: f64,
}

pub fn open(tree: &Tree) -> Result<Opened, Absent> {
    let absent = |reason: String| Absent::because(format!("/{FOLDER}{reason}"));
    let pmu = tree.text(&format!("{FOLDER}/type")).ok().and_then(|text| text.parse().ok());
    let pmu: u32 = pmu.ok_or_else(|| {
        let reason = " does not exist: the kernel has no such PMU (usual in a virtual machine; on \
                      hardware: the module rapl is missing)";
        absent(reason.into())
    })?;
    let mask = tree.text(&format!("{FOLDER}/cpumask")).unwrap_or_default();
    let cpus = cpus_of(&mask)
        .ok_or_else(|| absent(format!("/cpumask: found {mask:?}; allowed: 0 or 0,18 or 0-3")))?;
    let (events, skipped) = events(tree);
    let mut counters = Vec::new();
    let mut refused: Option<io::Error> = None;
    for event in &events {
        // The platform has a single counter, regardless of the number of packages.
        let cpus = if event.name == "psys" { &cpus[..1] } else { &cpus[..] };
        for cpu in cpus {
            match tree.perf_counter(pmu, event.config, *cpu) {
                Ok(counter) => {
                    let subject = event.subject(tree, *cpu);
                    let event = event.clone();
                    counters.push(Counter { event, subject, cpu: *cpu, counter, series: None });
                }
                Err(error) => refused = Some(error),
            }
        }
    }
    // All counters are open before the wait, so it is equally long for each of them.
    let deadline = Instant::now() + MOVES_WITHIN;
    let (counters, still): (Vec<Counter>, Vec<Counter>) =
        counters.into_iter().partition(|counter| counter.counter.moves(deadline));
    let still: Vec<String> = still.iter().map(Counter::name).collect();
    if counters.is_empty() {
        return Err(match refused {
            Some(error) if is_denied(&error) => Absent {
                reason: format!(
                    "system-wide events need CAP_PERFMON or a kernel.perf_event_paranoid of at \
                     most 0 (found: {})",
                    tree.text("proc/sys/kernel/perf_event_paranoid").unwrap_or("unknown".into())
                ),
                grant: GRANT.into(),
            },
            Some(error) => absent(format!(": cannot open any event: {error}")),
            None if !still.is_empty() => absent(format!(
                ": no counter changed within {} ms (usual in a virtual machine): {}",
                MOVES_WITHIN.as_millis(),
                still.join(", ")
            )),
            None => absent("/events has no energy event".into()),
        });
    }
    let opened: Vec<String> = counters.iter().map(Counter::name).collect();
    let mut info = Map::new();
    info.insert("events".into(), json!(opened));
    info.insert("skipped".into(), json!(skipped));
    info.insert("still".into(), json!(still));
    info.insert("refused".into(), json!(refused.map(|error| error.to_string())));
    Ok(Opened { meter: Box::new(PerfPower { counters }), info })
}

fn is_denied(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

/// Returns the PMU's energy events, and the names of events whose files cannot be parsed.
fn events(tree: &Tree) -> (Vec<Event>, Vec<String>) {
    let (mut events, mut skipped) = (Vec::new(), Vec::new());
    for name in tree.list(&format!("{FOLDER}/events")).unwrap_or_default() {
        let Some(short) = name.strip_prefix(PREFIX).filter(|short| !short.contains('.')) else {
            continue;
        };
        match event(tree, &name, short) {
            Some(event) => events.push(event),
            None => skipped.push(name),
        }
    }
    (events, skipped)
}

fn event(tree: &Tree, name: &str, short: &str) -> Option<Event> {
    let text = |suffix: &str| tree.text(&format!("{FOLDER}/events/{name}{suffix}")).ok();
    let config = text("")?;
    let hexadecimal = config.strip_prefix("event=0x")?;
    let scale: f64 = text(".scale")?.parse().ok()?;
    let is_joules = text(".unit")? == "Joules" && scale > 0.0;
    let config = u64::from_str_radix(hexadecimal, 16).ok()?;
    is_joules.then(|| Event { name: short.into(), config, step_uj: scale * 1e6 })
}

impl Event {
    fn quantity(&self) -> &'static str {
        match self.name.as_str() {
            "pkg" => "energy",
            "psys" => "energy_platform",
            _ => "energy_part",
        }
    }

    fn subject(&self, tree: &Tree, cpu: u32) -> String {
        match self.quantity() {
            "energy" => package(tree, cpu),
            "energy_platform" => "psys".into(),
            _ => format!("{}/{}", package(tree, cpu), self.name),
        }
    }
}

/// Returns `package-0`, or `package-0-die-1` for further dies of a package.
fn package(tree: &Tree, cpu: u32) -> String {
    let topology = format!("sys/devices/system/cpu/cpu{cpu}/topology");
    let number = |file: &str| tree.text(&format!("{topology}/{file}")).ok();
    let package = number("physical_package_id").unwrap_or_else(|| format!("of-cpu{cpu}"));
    match number("die_id").filter(|die| die != "0") {
        Some(die) => format!("package-{package}-die-{die}"),
        None => format!("package-{package}"),
    }
}

/// Parses a list of CPUs such as `0`, `0,18` or `0-3,8`. The PMU counts on each of them for its
/// package.
fn cpus_of(mask: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in mask.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        cpus.extend(first..=last);
    }
    Some(cpus).filter(|cpus| !cpus.is_empty())
}

impl Meter for PerfPower {
    fn declare(&mut self, samples: &mut Samples) {
        for counter in &mut self.counters {
            let mut info = Map::new();
            info.insert("event".into(), format!("{PREFIX}{}", counter.event.name).into());
            info.insert("cpu".into(), counter.cpu.into());
            let place = Place { info, ..Place::of(&counter.subject) };
            counter.series = Some(samples.declare(counter.event.quantity(), place));
        }
    }

    fn read(&mut self, samples: &mut Samples) {
        for counter in &self.counters {
            let Some(series) = counter.series else { continue };
            samples.begin();
            match counter.counter.read() {
                // The kernel extends the count to 64 bits, so it never wraps.
                Some(raw) => samples.put(series, raw as f64 * counter.event.step_uj),
                None => samples.lost(series),
            }
        }
    }
}
