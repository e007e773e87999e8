//! A thread that wakes periodically and records its delay. A delay without waiting for a CPU is a
//! stall of the machine, regardless of the nodes' load.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::sync::Arc;
use std::thread;

use serde_json::Map;

use crate::clock;
use crate::meter::{parse_number, Absent, Meter, Opened, Place, Samples, SeriesId, Tree, TreeFile};

const PERIOD_NS: i64 = 5_000_000;
/// Shorter delays are the usual cost of a wake-up.
const STALL_NS: i64 = 1_000_000;
const MACHINE: &str = "machine";

struct Canary {
    source: Source,
    series: Option<[SeriesId; 3]>,
}

enum Source {
    Thread(Option<Running>),
    /// `stall_longest`, `stalled_time`, `wake_late_longest` from the fixture's folder `canary`.
    Replay([TreeFile; 3]),
}

struct Running {
    delays: Arc<Delays>,
    thread: Option<thread::JoinHandle<()>>,
}

/// Delays of the thread in ns.
#[derive(Default)]
struct Delays {
    stall_longest: AtomicI64,
    stalled: AtomicI64,
    late_longest: AtomicI64,
    stop: AtomicBool,
}

pub fn open(tree: &Tree) -> Result<Opened, Absent> {
    let source = match tree {
        Tree::Live => Source::Thread(None),
        Tree::Replay(_) => {
            let file = |name: &str| {
                let file = tree.open(&format!("canary/{name}"));
                file.map_err(|error| Absent::because(format!("canary/{name}: {error}")))
            };
            let files = [file("stall_longest")?, file("stalled_time")?, file("wake_late_longest")?];
            Source::Replay(files)
        }
    };
    let mut info = Map::new();
    info.insert("period_ns".into(), PERIOD_NS.into());
    let queue = tree.text("proc/self/schedstat").is_ok();
    info.insert("knows_time_in_queue".into(), queue.into());
    Ok(Opened { meter: Box::new(Canary { source, series: None }), info })
}

impl Meter for Canary {
    /// Starts the thread, because `hello` opens meters without sampling them.
    fn declare(&mut self, samples: &mut Samples) {
        self.series = Some(
            ["stall_longest", "stalled_time", "wake_late_longest"]
                .map(|quantity| samples.declare(quantity, Place::of(MACHINE))),
        );
        if let Source::Thread(running) = &mut self.source {
            *running = Some(Running::start());
        }
    }

    fn read(&mut self, samples: &mut Samples) {
        let Some(series) = self.series else { return };
        samples.begin();
        let values = match &self.source {
            Source::Thread(None) => return,
            Source::Thread(Some(Running { delays, .. })) => [
                Some(delays.stall_longest.swap(0, Relaxed)),
                Some(delays.stalled.load(Relaxed)),
                Some(delays.late_longest.swap(0, Relaxed)),
            ],
            Source::Replay(files) => {
                files.each_ref().map(|file| file.number().map(|number| number as i64))
            }
        };
        for (id, value) in series.into_iter().zip(values) {
            match value {
                Some(value) => samples.put(id, value as f64),
                None => samples.lost(id),
            }
        }
    }
}

impl Running {
    fn start() -> Running {
        let delays = Arc::new(Delays::default());
        let shared = delays.clone();
        let thread =
            thread::Builder::new().name("canary".into()).spawn(move || record(&shared)).ok();
        Running { delays, thread }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.delays.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            // The thread ends within a period. A panic has no effect except missing readings.
            let _ = thread.join();
        }
    }
}

/// Records delays until the meter stops. The loop never allocates, prints or starts a process.
fn record(delays: &Delays) {
    // By default the kernel may delay a wake-up by 50 us to combine it with another.
    // SAFETY: plain system call.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    pin_to_last_cpu();
    let queue = File::open("/proc/thread-self/schedstat").ok();
    let mut queued_ns = queue.as_ref().and_then(queued).unwrap_or(0);
    let mut deadline_ns = clock::monotonic_ns() + PERIOD_NS;
    while !delays.stop.load(Relaxed) {
        clock::sleep_until(deadline_ns);
        let late_ns = clock::monotonic_ns() - deadline_ns;
        let now_queued_ns = queue.as_ref().and_then(queued).unwrap_or(queued_ns);
        let stall_ns = late_ns - (now_queued_ns - queued_ns);
        queued_ns = now_queued_ns;
        delays.late_longest.fetch_max(late_ns, Relaxed);
        delays.stall_longest.fetch_max(stall_ns, Relaxed);
        if stall_ns >= STALL_NS {
            delays.stalled.fetch_add(stall_ns, Relaxed);
        }
        deadline_ns += (late_ns / PERIOD_NS + 1) * PERIOD_NS;
    }
}

/// Returns the time in ns that this thread has spent in a run queue.
fn queued(schedstat: &File) -> Option<i64> {
    let mut buffer = [0u8; 64];
    let length = schedstat.read_at(&mut buffer, 0).ok()?;
    let second = buffer[..length].split(|byte| *byte == b' ').nth(1)?;
    parse_number(second).map(|ns| ns as i64)
}

/// Avoids the first CPU, which handles most of the kernel's housekeeping.
fn pin_to_last_cpu() {
    // SAFETY: an all-zero cpu_set_t is an empty set, and both calls receive its size.
    unsafe {
        let mut allowed: libc::cpu_set_t = std::mem::zeroed();
        let bytes = std::mem::size_of_val(&allowed);
        if libc::sched_getaffinity(0, bytes, &mut allowed) != 0 {
            return;
        }
        let cpus = 0..libc::CPU_SETSIZE as usize;
        if let Some(last) = cpus.rev().find(|cpu| libc::CPU_ISSET(*cpu, &allowed)) {
            let mut last_only: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(last, &mut last_only);
            // If this fails, the thread may run on any allowed CPU, which is acceptable.
            libc::sched_setaffinity(0, bytes, &last_only);
        }
    }
}
