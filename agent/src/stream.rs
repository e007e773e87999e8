//! The threads of devices outside the machine. Each waits for its device, and passes readings to
//! the sampler through a channel, so the sampler's loop never waits for a device.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{json, Map, Value};

use crate::clock;
use crate::device::{understand, Fault, OpenedStream, Reading, Stream, Taken, Wait};
use crate::lock::locked;
use crate::manifest::Manifest;
use crate::meter::{Absent, Tree};
use crate::protocol::{Answer, Kind, Problem};
use crate::registry::{self, Open};
use crate::samples::{Amount, Place, Samples, SeriesId};

/// The characters of a fault that a description shows.
const FAULT_CHARS_MAX: usize = 200;
/// Readings that the sampler has not taken yet. With marks only, it takes them once per mark.
const READINGS_MAX: usize = 16 << 10;
/// The longest pause after a fault, so that a device that is plugged in again is read soon.
const PAUSE_NS: i64 = 500_000_000;
/// The thread needs little more than a buffer for an answer.
const STACK_BYTES: usize = 256 << 10;
/// The time that a device has to end, before the sampling ends without it.
const END_MAX: Duration = Duration::from_millis(2500);
/// The time that devices have for their first answer, before the sampling begins without it.
const FIRST_MAX: Duration = Duration::from_millis(3000);
/// The different texts of faults that a description lists.
const FAULTS_MAX: usize = 8;
const CHECK_NS: i64 = 6_000_000_000;

/// The faults of a device by their text, and the number of all of them.
#[derive(Default)]
struct Faults {
    by_text: BTreeMap<String, u64>,
    count: u64,
}

impl Faults {
    fn add(&mut self, text: &str) {
        self.count += 1;
        let text = shown(text);
        if self.by_text.len() < FAULTS_MAX || self.by_text.contains_key(&text) {
            *self.by_text.entry(text).or_default() += 1;
        }
    }
}

/// Returns a fault as it is described: short, and without control characters, because an answer of
/// a device may contain any.
fn shown(text: &str) -> String {
    let mut shown = String::new();
    for letter in text.chars().take(FAULT_CHARS_MAX) {
        match letter.is_control() {
            true => shown.extend(letter.escape_default()),
            false => shown.push(letter),
        }
    }
    shown.chars().take(FAULT_CHARS_MAX).collect()
}

/// What the threads of the devices leave for the description of their series.
#[derive(Default)]
pub struct Left {
    faults: Faults,
    info: Map<String, Value>,
    /// The first fault after the last answer.
    open_fault: String,
    answers: u64,
    /// Readings that found no room in the channel.
    dropped: u64,
    busy_ns: i64,
}

/// The devices of a sampling.
pub struct Streams {
    readings: Receiver<Reading>,
    sender: SyncSender<Reading>,
    running: Vec<Running>,
}

struct Running {
    series: Vec<SeriesId>,
    /// Closing this end stops the thread.
    closer: UnixStream,
    thread: Option<thread::JoinHandle<()>>,
    left: Arc<Mutex<Left>>,
}

impl Streams {
    /// Returns streams with room for the readings of `count` devices; without one, for almost none.
    pub fn of(count: usize) -> Streams {
        let (sender, readings) = sync_channel(if count == 0 { 1 } else { READINGS_MAX });
        Streams { readings, sender, running: Vec::new() }
    }

    /// Declares the series of a device and starts its thread.
    pub fn start(
        &mut self,
        manifest: &'static Manifest,
        opened: OpenedStream,
        samples: &mut Samples,
    ) -> io::Result<()> {
        samples.declare_for(manifest);
        let names = manifest.quantities.iter().map(|quantity| quantity.name);
        let series = names.map(|name| samples.declare(name, Place::of("input"))).collect();
        let (closer, closed) = UnixStream::pair()?;
        let left = Arc::<Mutex<Left>>::default();
        let reader = Reader {
            manifest,
            index: self.running.len() as u16,
            wait: Wait::new(closed),
            sender: self.sender.clone(),
            left: left.clone(),
        };
        let builder = thread::Builder::new().name(manifest.name.into()).stack_size(STACK_BYTES);
        let thread = builder.spawn(move || reader.run(opened.stream))?;
        self.running.push(Running { series, closer, thread: Some(thread), left });
        Ok(())
    }

    /// Returns handles that wait for the first answers without the lock of the sampler.
    pub fn first_answers(&self) -> FirstAnswers {
        FirstAnswers(self.running.iter().map(|running| running.left.clone()).collect())
    }

    /// Writes the readings that have come since the last call. It neither waits nor allocates.
    pub fn take(&mut self, samples: &mut Samples) {
        while let Ok(reading) = self.readings.try_recv() {
            let running = &self.running[usize::from(reading.stream)];
            let series = running.series[usize::from(reading.quantity)];
            samples.take(series, reading.t_ns, reading.read_ns, reading.amount);
        }
    }

    /// Returns handles that end the threads without the lock of the sampler.
    pub fn ending(&mut self) -> Ending {
        let ending = |running: &mut Running| {
            Some((running.closer.try_clone().ok()?, running.thread.take()?))
        };
        Ending(self.running.iter_mut().filter_map(ending).collect())
    }

    /// Adds to the series of each device what its thread has left.
    pub fn describe(&self, samples: &mut Samples) {
        for running in &self.running {
            let left = locked(&running.left);
            for series in &running.series {
                samples.note(*series, "answers", left.answers.into());
                samples.note(*series, "faults", left.faults.count.into());
                samples.note(*series, "dropped", left.dropped.into());
                samples.note(*series, "thread_cpu_ns", left.busy_ns.into());
                if !left.open_fault.is_empty() {
                    samples.note(*series, "open_fault", left.open_fault.clone().into());
                }
                if !left.faults.by_text.is_empty() {
                    samples.note(*series, "fault_texts", json!(left.faults.by_text));
                }
                for (key, value) in &left.info {
                    samples.note(*series, key, value.clone());
                }
            }
        }
    }
}

/// The devices whose first answers a sampling awaits.
pub struct FirstAnswers(Vec<Arc<Mutex<Left>>>);

impl FirstAnswers {
    /// Waits for an answer of each device, so that a baseline right after the start has readings.
    pub fn wait(&self) {
        let until = Instant::now() + FIRST_MAX;
        let is_silent = |left: &Arc<Mutex<Left>>| locked(left).answers == 0;
        while self.0.iter().any(is_silent) && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The threads of devices that are to end.
pub struct Ending(Vec<(UnixStream, thread::JoinHandle<()>)>);

impl Ending {
    /// Ends the threads. A thread that waits for a name server or a connection ends later by
    /// itself.
    pub fn end(mut self) {
        for (closer, _) in &mut self.0 {
            // The byte fails if the thread has already ended.
            let _ = closer.write_all(b"x");
        }
        let until = Instant::now() + END_MAX;
        while self.0.iter().any(|(_, thread)| !thread.is_finished()) && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

struct Reader {
    manifest: &'static Manifest,
    index: u16,
    wait: Wait,
    sender: SyncSender<Reading>,
    left: Arc<Mutex<Left>>,
}

impl Reader {
    fn run(self, mut stream: Box<dyn Stream>) {
        let mut answer = Vec::new();
        loop {
            answer.clear();
            match stream.receive(&self.wait, &mut answer) {
                // The next answer may come at once, so there is no pause after an invalid one.
                Ok(received) => {
                    let device = (self.manifest, self.index);
                    match understand(&mut *stream, device, &answer, received) {
                        Ok(taken) => self.pass_on(taken),
                        Err(text) => locked(&self.left).faults.add(&text),
                    }
                }
                Err(Fault::Stopped) => break,
                Err(Fault::Because(text)) => {
                    let mut left = locked(&self.left);
                    left.faults.add(&text);
                    // The first one has the cause. Later ones may only say that it lasts.
                    if left.open_fault.is_empty() {
                        left.open_fault = shown(&text);
                    }
                    drop(left);
                    if self.wait.until(clock::monotonic_ns() + PAUSE_NS).is_err() {
                        break;
                    }
                }
            }
        }
        stream.close();
        let mut left = locked(&self.left);
        left.info = stream.info();
        left.busy_ns = clock::read_ns(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0);
    }

    fn pass_on(&self, taken: Taken) {
        let failed =
            taken.readings.iter().filter(|reading| self.sender.try_send(**reading).is_err());
        let dropped = failed.count() as u64;
        let mut left = locked(&self.left);
        left.answers += 1;
        left.open_fault.clear();
        left.dropped += dropped;
        taken.remarks.iter().for_each(|text| left.faults.add(text));
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    meter: String,
    at: String,
}

/// The checks of devices that run. They end with the agent, so that each leaves its device as it
/// was.
pub struct Checks {
    /// Closing this end stops all checks.
    closer: UnixStream,
    closed: UnixStream,
    /// Cloned by each check.
    running: Arc<()>,
}

impl Checks {
    pub fn new() -> io::Result<Checks> {
        let (closer, closed) = UnixStream::pair()?;
        Ok(Checks { closer, closed, running: Arc::default() })
    }

    pub fn check(&self, request: &Check) -> Answer {
        let _running = self.running.clone();
        let closed = self.closed.try_clone();
        let closed =
            closed.map_err(|error| Problem::new(Kind::Io, format!("meter_check: {error}")))?;
        check(request, &Wait::new(closed))
    }

    /// Ends all checks. One that waits for a connection ends later by itself.
    pub fn end(&self) {
        let _ = self.closer.shutdown(Shutdown::Both);
        let until = Instant::now() + END_MAX;
        while Arc::strong_count(&self.running) > 1 && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Opens a device, waits for its first readings and closes it again.
fn check(request: &Check, wait: &Wait) -> Answer {
    let entry = registry::find(&request.meter)
        .ok_or_else(|| Problem::usage(format!("meter_check: no meter {:?}", request.meter)))?;
    let Open::Stream(open) = entry.open else {
        return Err(registry::no_stream(entry.manifest.name));
    };
    let mut stream = open(&Tree::Live, &request.at).map_err(absence)?.stream;
    let until_ns = clock::monotonic_ns() + CHECK_NS;
    let mut reason = format!("no reading within {} s", CHECK_NS / 1_000_000_000);
    let mut answer = Vec::new();
    let mut readings = Vec::new();
    while readings.is_empty() && clock::monotonic_ns() < until_ns {
        answer.clear();
        let received = stream.receive(wait, &mut answer);
        let understood = received.and_then(|received| {
            let device = (&entry.manifest, 0);
            understand(&mut *stream, device, &answer, received).map_err(Fault::Because)
        });
        match understood {
            Ok(taken) => readings = taken.readings,
            Err(Fault::Because(text)) => {
                reason = shown(&text);
                let _ = wait.until(clock::monotonic_ns() + PAUSE_NS);
            }
            Err(Fault::Stopped) => break,
        }
    }
    stream.close();
    if readings.is_empty() {
        return Err(Problem::new(Kind::Absent, reason));
    }
    let values = readings.iter().map(|reading| {
        let quantity = &entry.manifest.quantities[usize::from(reading.quantity)];
        let value = match reading.amount {
            Amount::Counter(raw) => raw as f64,
            Amount::Gauge(value) => value,
        };
        json!({"quantity": quantity.name, "unit": quantity.unit, "value": value})
    });
    Ok(json!({"readings": values.collect::<Vec<_>>(), "info": stream.info()}))
}

fn absence(absent: Absent) -> Problem {
    match absent.grant.is_empty() {
        true => Problem::new(Kind::Absent, absent.reason),
        false => Problem::new(Kind::Permission, format!("{}: {}", absent.reason, absent.grant)),
    }
}
