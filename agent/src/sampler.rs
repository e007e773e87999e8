//! The sampler reads meters at absolute deadlines and writes the sample file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{json, Value};

use crate::clock;
use crate::device::OpenedStream;
use crate::manifest::{Manifest, Tier};
use crate::meter::{Meter, Subject, Tree};
use crate::protocol::{Answer, Problem, SampleStart};
use crate::registry::{self, Open};
use crate::samples::{RecordWriter, Samples};
use crate::stream::Streams;

const TICK_HZ_MAX: f64 = 1000.0;

/// The sampling between `sample_start` and `sample_stop`.
pub struct Sampling {
    path: PathBuf,
    period_ns: i64,
    requested: BTreeMap<String, Value>,
    /// The requested meters that cannot read here, each with its reason.
    pub absent: Vec<Value>,
    /// The requested meters that read only values of the whole machine, which another agent reads.
    pub skipped: Vec<&'static str>,
    stop: AtomicBool,
    state: Mutex<State>,
}

struct State {
    meters: Vec<Running>,
    streams: Streams,
    samples: Samples,
    marks: Vec<Value>,
    missed: u64,
    ticks: u64,
    busy_ns: i64,
    stopped: bool,
}

struct Running {
    manifest: &'static Manifest,
    meter: Box<dyn Meter>,
}

impl Sampling {
    /// Opens the meters, reads them all once and starts the thread.
    pub fn start(request: SampleStart, subjects: &[Arc<Subject>]) -> Result<Arc<Self>, Problem> {
        if !(request.tick_hz > 0.0 && request.tick_hz <= TICK_HZ_MAX) {
            return Err(Problem::usage(format!(
                "sample_start: tick_hz: found {}; allowed: above 0, at most {TICK_HZ_MAX}",
                request.tick_hz
            )));
        }
        let Opening { meters, streams, absent, skipped } = open_meters(&request)?;
        let path = PathBuf::from(&request.path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|error| Problem::io("making folder", folder, &error))?;
        }
        let writer = RecordWriter::create(&path)
            .map_err(|error| Problem::io("creating sample file", &path, &error))?;
        let mut samples = Samples::new(writer);
        samples.machine_wide = request.machine_wide;
        let state = State {
            meters,
            streams: Streams::of(streams.len()),
            samples,
            marks: Vec::new(),
            missed: 0,
            ticks: 0,
            busy_ns: 0,
            stopped: false,
        };
        let sampling = Arc::new(Sampling {
            path,
            period_ns: (1e9 / request.tick_hz).round() as i64,
            requested: request.subjects,
            absent,
            skipped,
            stop: AtomicBool::new(false),
            state: Mutex::new(state),
        });
        let first_answers = {
            let mut state = sampling.lock();
            state.declare();
            state.start_streams(streams)?;
            for subject in subjects {
                sampling.follow_in(&mut state, subject);
            }
            state.read(|_| true, true);
            state.streams.first_answers()
        };
        if !request.marks_only {
            let ticking = sampling.clone();
            thread::spawn(move || ticking.tick());
        }
        first_answers.wait();
        Ok(sampling)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // A panic of a meter invalidates only that meter's readings.
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Follows a process that starts during the sampling.
    pub fn follow(&self, subject: &Arc<Subject>) {
        let mut state = self.lock();
        if !state.stopped {
            self.follow_in(&mut state, subject);
        }
    }

    fn follow_in(&self, state: &mut State, subject: &Arc<Subject>) {
        let requested = self.requested.is_empty() || self.requested.contains_key(&subject.name);
        if requested {
            let State { meters, samples, .. } = state;
            for running in meters {
                samples.declare_for(running.manifest);
                running.meter.follow(subject, samples);
            }
        }
    }

    /// Returns whether the sampling has stopped.
    pub fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Reads the meters of all tiers once and returns the time at the start of the reading.
    pub fn mark(&self, name: &str) -> i64 {
        self.lock().mark(name)
    }

    /// Marks a later time without a further request, unless the sampling stops before.
    pub fn mark_at(self: Arc<Self>, name: String, at_ns: i64) {
        thread::spawn(move || {
            clock::sleep_until(at_ns);
            let mut state = self.lock();
            if !state.stopped {
                state.mark(&name);
            }
        });
    }

    pub fn series(&self) -> Vec<Value> {
        self.lock().samples.describe()
    }

    /// Reads all meters a last time, closes the file and writes its description to `PATH.json`.
    pub fn finish(&self) -> Answer {
        self.stop.store(true, Ordering::Relaxed);
        let ending = self.lock().streams.ending();
        ending.end();
        let mut state = self.lock();
        if state.stopped {
            return Err(Problem::usage("sample_stop: already stopped"));
        }
        state.read(|_| true, true);
        state.stopped = true;
        state.describe_streams();
        let written = state.samples.writer().finish();
        written.map_err(|error| Problem::io("writing sample file", &self.path, &error))?;
        let description = json!({
            "samples": state.samples.writer().records, "dropped": state.samples.writer().dropped,
            "missed": state.missed, "ticks": state.ticks, "busy_ns": state.busy_ns,
            "period_ns": self.period_ns, "absent": self.absent,
            "skipped": self.skipped, "marks": state.marks,
            "series": state.samples.describe()});
        let description_path = with_suffix(&self.path, ".json");
        std::fs::write(&description_path, format!("{description}\n"))
            .map_err(|error| Problem::io("writing", &description_path, &error))?;
        Ok(description)
    }

    /// Runs the sampling thread, which does not allocate, print or start processes.
    fn tick(&self) {
        // By default, the kernel may delay a wake-up by 50 µs to combine it with another timer's.
        // SAFETY: the system call has no pointer arguments.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
        let begin_ns = clock::monotonic_ns();
        let mut deadline_ns = begin_ns + self.period_ns;
        let mut second_ns = begin_ns + 1_000_000_000;
        while !self.stop.load(Ordering::Relaxed) {
            clock::sleep_until(deadline_ns);
            let mut state = self.lock();
            if state.stopped {
                return;
            }
            let second = deadline_ns >= second_ns;
            state.ticks += 1;
            state.read(|tier| tier == Tier::Tick || (second && tier == Tier::Second), false);
            if second {
                second_ns += 1_000_000_000;
                state.samples.writer().hand_over_half_full();
            }
            let missed = (clock::monotonic_ns() - deadline_ns) / self.period_ns;
            state.missed += missed.max(0) as u64;
            drop(state);
            deadline_ns += (missed.max(0) + 1) * self.period_ns;
        }
    }
}

impl State {
    fn declare(&mut self) {
        for running in &mut self.meters {
            self.samples.declare_for(running.manifest);
            running.meter.declare(&mut self.samples);
        }
    }

    fn start_streams(
        &mut self,
        opened: Vec<(&'static Manifest, OpenedStream)>,
    ) -> Result<(), Problem> {
        for (manifest, stream) in opened {
            let started = self.streams.start(manifest, stream, &mut self.samples);
            started
                .map_err(|error| Problem::io("starting the thread of", manifest.name, &error))?;
        }
        Ok(())
    }

    fn describe_streams(&mut self) {
        let State { streams, samples, .. } = self;
        streams.describe(samples);
    }

    fn mark(&mut self, name: &str) -> i64 {
        let t_ns = self.read(|_| true, true);
        self.marks.push(json!({"name": name, "t_ns": t_ns}));
        t_ns
    }

    fn read(&mut self, is_due: impl Fn(Tier) -> bool, edge: bool) -> i64 {
        let begin_ns = clock::monotonic_ns();
        self.samples.edge = edge;
        for running in &mut self.meters {
            if is_due(running.manifest.tier) {
                // A meter declares the series of a new device during the reading.
                self.samples.declare_for(running.manifest);
                running.meter.read(&mut self.samples);
            }
        }
        self.streams.take(&mut self.samples);
        self.busy_ns += clock::monotonic_ns() - begin_ns;
        begin_ns
    }
}

#[derive(Default)]
struct Opening {
    meters: Vec<Running>,
    streams: Vec<(&'static Manifest, OpenedStream)>,
    absent: Vec<Value>,
    skipped: Vec<&'static str>,
}

/// Opens the requested meters. Absent meters are data and not an error.
fn open_meters(request: &SampleStart) -> Result<Opening, Problem> {
    let mut opening = Opening::default();
    for name in &request.meters {
        let entry = registry::find(name).ok_or_else(|| {
            let known: Vec<&str> =
                registry::METERS.iter().map(|known| known.manifest.name).collect();
            Problem::usage(format!(
                "sample_start: meters: unknown {name:?}; known: {}",
                known.join(", ")
            ))
        })?;
        let mut scopes = entry.manifest.quantities.iter().map(|quantity| quantity.scope);
        if !request.machine_wide && scopes.all(|scope| entry.manifest.is_machine_wide(scope)) {
            opening.skipped.push(entry.manifest.name);
            continue;
        }
        let manifest = &entry.manifest;
        let absence = match (&entry.open, request.addresses.get(name)) {
            (Open::Polled(open), None) => open(&Tree::Live)
                .map(|opened| opening.meters.push(Running { manifest, meter: opened.meter })),
            (Open::Stream(open), Some(at)) => {
                open(&Tree::Live, at).map(|opened| opening.streams.push((manifest, opened)))
            }
            (Open::Stream(_), None) => Err(entry.without_address()),
            (Open::Polled(_), Some(_)) => return Err(registry::no_stream(name)),
        };
        if let Err(reason) = absence {
            let absent = json!({"name": name, "reason": reason.reason, "grant": reason.grant});
            opening.absent.push(absent);
        }
    }
    Ok(opening)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
