//! The CPUs on which the threads of a process ran. Each reading attributes the run time since the
//! last one to the CPU on which the thread was last, so idle threads do not count.
//!
//! Opening a file of `/proc` costs more than reading it. Therefore the files of threads that run
//! stay open, and threads that did not run between two searches are read at searches only.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::meter::{Absent, Meter, Opened, Place, Samples, SeriesId, Subject, Tree, TreeFile};

/// Period at which the meter lists the threads of a process.
const SEARCH_PERIOD_NS: i64 = 1_000_000_000;
/// Shortest time between two readings except at marks. Ten readings per second give the share of
/// time on one CPU, and a higher rate of the sampler is meant for power and CPU time.
const READING_PERIOD_NS_MIN: i64 = 75_000_000;
/// Room for `/proc/PID/task/TID/sched`, the longest file of this meter.
const BUFFER_BYTES: usize = 4096;
/// Fields of `/proc/PID/stat` after the name in brackets (proc_pid_stat(5) counts from 1 with it).
const PROCESSOR_AFTER_NAME: usize = 36;

struct ProcCores {
    tree: Tree,
    /// Its last field is the number of the newest process or thread.
    loadavg: Option<TreeFile>,
    followed: Vec<Followed>,
    buffer: Vec<u8>,
}

struct Followed {
    subject: Arc<Subject>,
    run_delay: SeriesId,
    edge_series: [SeriesId; 3],
    threads: BTreeMap<i32, Thread>,
    /// CPU → its series and the run time on it.
    by_cpu: BTreeMap<u32, (SeriesId, u64)>,
    run_delay_ns: u64,
    /// Migrations, voluntary and involuntary switches.
    edge_counts: [u64; 3],
    searched_ns: i64,
    /// The newest thread of the machine at the last search. Without a newer one, no search is due.
    newest: Option<u64>,
    read_ns: i64,
    is_first_search: bool,
}

struct Thread {
    folder: String,
    reading: Reading,
    last: Schedstat,
    run_ns_at_search: u64,
    edge_counts: [u64; 3],
}

/// How a thread is read until the next search.
enum Reading {
    /// It is new, a mark began another phase, or no further file can be opened: at each reading.
    ByPath,
    /// It ran between the last two searches: at each reading, from open files.
    Open { schedstat: TreeFile, stat: TreeFile },
    /// It did not run between the last two searches: at the next search.
    AtSearch,
}

/// The first two fields of `schedstat`.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
struct Schedstat {
    run_ns: u64,
    delay_ns: u64,
}

pub fn open(tree: &Tree) -> Result<Opened, Absent> {
    let own = format!("proc/{}/schedstat", tree.own_pid());
    if tree.text(&own).is_err() {
        let reason = format!("/{own} is missing; the kernel has no CONFIG_SCHED_INFO");
        return Err(Absent::because(reason));
    }
    let buffer = vec![0; BUFFER_BYTES];
    let loadavg = tree.open("proc/loadavg").ok();
    Ok(Opened::new(ProcCores { tree: tree.clone(), loadavg, followed: Vec::new(), buffer }))
}

impl Meter for ProcCores {
    fn declare(&mut self, _samples: &mut Samples) {}

    fn follow(&mut self, subject: &Arc<Subject>, samples: &mut Samples) {
        let mut declare = |quantity| samples.declare(quantity, Place::of(&subject.name));
        self.followed.push(Followed {
            subject: subject.clone(),
            run_delay: declare("run_delay"),
            edge_series: [
                declare("migrations"),
                declare("thread_switches_voluntary"),
                declare("thread_switches_involuntary"),
            ],
            threads: BTreeMap::new(),
            by_cpu: BTreeMap::new(),
            run_delay_ns: 0,
            edge_counts: [0; 3],
            searched_ns: i64::MIN / 2,
            newest: None,
            read_ns: i64::MIN / 2,
            is_first_search: true,
        });
    }

    fn read(&mut self, samples: &mut Samples) {
        let ProcCores { tree, loadavg, followed, buffer } = self;
        let live = followed.iter_mut().filter(|followed| followed.subject.ended.get().is_none());
        for followed in live {
            let now_ns = samples.begin();
            if !samples.edge && now_ns - followed.read_ns < READING_PERIOD_NS_MIN {
                continue;
            }
            followed.read_ns = now_ns;
            let searches = samples.edge || now_ns - followed.searched_ns >= SEARCH_PERIOD_NS;
            if searches {
                followed.searched_ns = now_ns;
                let newest = loadavg.as_ref().and_then(|file| newest_thread(file, buffer));
                if newest.is_none() || newest != followed.newest {
                    followed.newest = newest;
                    followed.search(tree, buffer);
                }
            }
            followed.read_times(tree, samples, buffer, searches);
            if samples.edge {
                followed.read_edge_counts(tree, samples, buffer);
            }
        }
    }
}

impl Followed {
    /// Adds new threads and removes ended ones. A thread of the first search counts from now, and
    /// a later one from its start.
    fn search(&mut self, tree: &Tree, buffer: &mut [u8]) {
        let mut ended = std::mem::take(&mut self.threads);
        for pid in self.subject.pids(tree) {
            for name in tree.list(&format!("proc/{pid}/task")).unwrap_or_default() {
                let Ok(tid) = name.parse() else { continue };
                let known = ended.remove(&tid);
                if let Some(thread) = known.or_else(|| self.open(tree, pid, tid, buffer)) {
                    self.threads.insert(tid, thread);
                }
            }
        }
        self.is_first_search = false;
    }

    fn open(&self, tree: &Tree, pid: i32, tid: i32, buffer: &mut [u8]) -> Option<Thread> {
        let folder = format!("proc/{pid}/task/{tid}");
        let mut thread = Thread {
            folder,
            reading: Reading::ByPath,
            last: Schedstat::default(),
            run_ns_at_search: 0,
            edge_counts: [0; 3],
        };
        if self.is_first_search {
            thread.last = thread.schedstat(tree, buffer)?;
            thread.run_ns_at_search = thread.last.run_ns;
            thread.edge_counts = thread.edge_counts(tree, buffer).unwrap_or_default();
        }
        Some(thread)
    }

    fn read_times(
        &mut self,
        tree: &Tree,
        samples: &mut Samples,
        buffer: &mut [u8],
        searched: bool,
    ) {
        let mut ran_on = Vec::new();
        for thread in self.threads.values_mut() {
            if matches!(thread.reading, Reading::AtSearch) && !searched {
                continue;
            }
            let Some(now) = thread.schedstat(tree, buffer) else { continue }; // it has ended
            let ran_ns = now.run_ns.saturating_sub(thread.last.run_ns);
            self.run_delay_ns += now.delay_ns.saturating_sub(thread.last.delay_ns);
            if ran_ns > 0 {
                let Some(cpu) = thread.cpu(tree, buffer) else { continue };
                ran_on.push((cpu, ran_ns));
            }
            thread.last = now;
            if searched {
                thread.choose_reading(tree, samples.edge);
            }
        }
        for (cpu, ran_ns) in ran_on {
            let name = &self.subject.name;
            let entry =
                self.by_cpu.entry(cpu).or_insert_with(|| (declare_on(samples, name, cpu), 0));
            entry.1 += ran_ns;
        }
        for (series, run_ns) in self.by_cpu.values() {
            samples.put(*series, *run_ns as f64);
        }
        samples.put(self.run_delay, self.run_delay_ns as f64);
    }

    fn read_edge_counts(&mut self, tree: &Tree, samples: &mut Samples, buffer: &mut [u8]) {
        samples.begin();
        let mut is_known = false;
        for thread in self.threads.values_mut() {
            let Some(now) = thread.edge_counts(tree, buffer) else { continue };
            is_known = true;
            for (index, count) in now.iter().enumerate() {
                self.edge_counts[index] += count.saturating_sub(thread.edge_counts[index]);
            }
            thread.edge_counts = now;
        }
        for (series, count) in self.edge_series.iter().zip(self.edge_counts) {
            match is_known {
                true => samples.put(*series, count as f64),
                false => samples.lost(*series),
            }
        }
    }
}

/// Returns the number of the machine's newest process or thread, from `/proc/loadavg`.
fn newest_thread(loadavg: &TreeFile, buffer: &mut [u8]) -> Option<u64> {
    let text = std::str::from_utf8(loadavg.read(buffer).ok()?).ok()?;
    text.split_ascii_whitespace().last()?.parse().ok()
}

/// Declares the run time of a process on a CPU.
fn declare_on(samples: &mut Samples, process: &str, cpu: u32) -> SeriesId {
    let series = samples.declare("run_time_on", Place::of(&format!("{process}@cpu{cpu}")));
    samples.note(series, "process", process.into());
    samples.note(series, "cpu", cpu.into());
    series
}

impl Thread {
    fn schedstat(&self, tree: &Tree, buffer: &mut [u8]) -> Option<Schedstat> {
        let text = match &self.reading {
            Reading::Open { schedstat, .. } => schedstat.read(buffer),
            _ => tree.read_once(format_args!("{}/schedstat", self.folder), buffer),
        };
        let mut numbers = std::str::from_utf8(text.ok()?).ok()?.split_ascii_whitespace();
        let mut next = || numbers.next()?.parse().ok();
        Some(Schedstat { run_ns: next()?, delay_ns: next()? })
    }

    /// Returns the CPU on which the thread ran last.
    fn cpu(&self, tree: &Tree, buffer: &mut [u8]) -> Option<u32> {
        let text = match &self.reading {
            Reading::Open { stat, .. } => stat.read(buffer),
            _ => tree.read_once(format_args!("{}/stat", self.folder), buffer),
        };
        let text = text.ok()?;
        let after_name = text.iter().rposition(|byte| *byte == b')')? + 1;
        let fields = std::str::from_utf8(&text[after_name..]).ok()?;
        fields.split_ascii_whitespace().nth(PROCESSOR_AFTER_NAME)?.parse().ok()
    }

    /// Chooses how to read the thread until the next search. `edge`: a mark may begin a phase in
    /// which a thread runs that was idle before.
    fn choose_reading(&mut self, tree: &Tree, edge: bool) {
        let ran = self.last.run_ns > self.run_ns_at_search;
        self.run_ns_at_search = self.last.run_ns;
        let reading = std::mem::replace(&mut self.reading, Reading::ByPath);
        self.reading = match reading {
            Reading::AtSearch if edge => Reading::ByPath,
            reading if edge => reading,
            _ if !ran => Reading::AtSearch,
            Reading::Open { schedstat, stat } => Reading::Open { schedstat, stat },
            _ => self.open_files(tree).unwrap_or(Reading::ByPath),
        };
    }

    fn open_files(&self, tree: &Tree) -> Option<Reading> {
        let open = |name| tree.open(&format!("{}/{name}", self.folder)).ok();
        Some(Reading::Open { schedstat: open("schedstat")?, stat: open("stat")? })
    }

    fn edge_counts(&self, tree: &Tree, buffer: &mut [u8]) -> Option<[u64; 3]> {
        let text = tree.read_once(format_args!("{}/sched", self.folder), buffer).ok()?;
        let text = std::str::from_utf8(text).ok()?;
        let count = |key: &str| -> Option<u64> {
            let line = text.lines().find(|line| line.starts_with(key))?;
            line.rsplit(':').next()?.trim().parse().ok()
        };
        Some([
            count("se.nr_migrations")?,
            count("nr_voluntary_switches")?,
            count("nr_involuntary_switches")?,
        ])
    }
}
