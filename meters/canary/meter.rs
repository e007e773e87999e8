//! A thread that wakes at a steady pace and notes how late it was: what makes it late without
//! letting it wait for a CPU is a stall of the machine, whatever the nodes do.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::sync::Arc;
use std::thread;

use serde_json::Map;

use crate::clock;
use crate::meter::{parse_number, Absent, Meter, Opened, Place, Samples, SeriesId, Tree, TreeFile};

const PERIOD_NS: i64 = 5_000_000;
/// Shorter delays are what waking up costs.
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
    noted: Arc<Noted>,
    thread: Option<thread::JoinHandle<()>>,
}

/// What the thread tells; all in ns.
#[derive(Default)]
struct Noted {
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
    /// The thread begins here: a meter that is only described has none.
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
            Source::Thread(Some(Running { noted, .. })) => [
                Some(noted.stall_longest.swap(0, Relaxed)),
                Some(noted.stalled.load(Relaxed)),
                Some(noted.late_longest.swap(0, Relaxed)),
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
        let noted = Arc::new(Noted::default());
        let told = noted.clone();
        let thread = thread::Builder::new().name("canary".into()).spawn(move || wake(&told)).ok();
        Running { noted, thread }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.noted.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            // It ends within a period; a panic of it has no more consequences than its silence.
            let _ = thread.join();
        }
    }
}

/// The thread's life. No allocation, printing or starting of processes once it wakes.
fn wake(noted: &Noted) {
    // The kernel may otherwise wake this thread 50 us late to save a wake-up.
    // SAFETY: plain system call.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    pin_to_last_cpu();
    let queue = File::open("/proc/thread-self/schedstat").ok();
    let mut queued_ns = queue.as_ref().and_then(queued).unwrap_or(0);
    let mut deadline_ns = clock::monotonic_ns() + PERIOD_NS;
    while !noted.stop.load(Relaxed) {
        clock::sleep_until(deadline_ns);
        let late_ns = clock::monotonic_ns() - deadline_ns;
        let now_queued_ns = queue.as_ref().and_then(queued).unwrap_or(queued_ns);
        let stall_ns = late_ns - (now_queued_ns - queued_ns);
        queued_ns = now_queued_ns;
        noted.late_longest.fetch_max(late_ns, Relaxed);
        noted.stall_longest.fetch_max(stall_ns, Relaxed);
        if stall_ns >= STALL_NS {
            noted.stalled.fetch_add(stall_ns, Relaxed);
        }
        deadline_ns += (late_ns / PERIOD_NS + 1) * PERIOD_NS;
    }
}

/// How long this thread has waited in a run queue so far, in ns.
fn queued(schedstat: &File) -> Option<i64> {
    let mut buffer = [0u8; 64];
    let length = schedstat.read_at(&mut buffer, 0).ok()?;
    let second = buffer[..length].split(|byte| *byte == b' ').nth(1)?;
    parse_number(second).map(|ns| ns as i64)
}

/// The first CPU does most of the kernel's chores; with one CPU only there is no choice.
fn pin_to_last_cpu() {
    // SAFETY: an all-zero cpu_set_t is an empty set; both calls get its size.
    unsafe {
        let mut allowed: libc::cpu_set_t = std::mem::zeroed();
        let bytes = std::mem::size_of_val(&allowed);
        if libc::sched_getaffinity(0, bytes, &mut allowed) != 0 {
            return;
        }
        let cpus = 0..libc::CPU_SETSIZE as usize;
        if let Some(last) = cpus.rev().find(|cpu| libc::CPU_ISSET(*cpu, &allowed)) {
            let mut one: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(last, &mut one);
            // Refused: it runs wherever it may, which is as good.
            libc::sched_setaffinity(0, bytes, &one);
        }
    }
}
