//! Handles the processes that this agent started: spawn, write, signal, and their end.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io::Write as _;
use std::mem::take;
use std::path::PathBuf;
use std::process::ChildStdin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{json, Value};

use crate::cgroup::{Cgroup, Cgroups};
use crate::child::Order;
use crate::clean;
use crate::guard::Ended;
use crate::launch::{self, Launched};
use crate::members;
use crate::meter::{Final, Reach, Subject};
use crate::output::Output;
use crate::protocol::{Answer, Kind, Problem, Signal, Spawn, Write};
use crate::pump::{self, CappedFile, Sink, Stream};
use crate::shm::{self, Journal, Owned};
use crate::shm_events;

/// The value of `stdout` with which the agent reads lines from descriptor 3 (clause C-05).
const LINES_ON_THREE: &str = "lines-on-3";
/// A node prints only a few lines. The agent discards all lines beyond this limit, so that a node
/// cannot fill its pipe or the controller's memory.
const NODE_LINES_MAX: usize = 64;
/// Time limit of a `write` to a node that does not read its standard input.
const WRITE_WAIT: Duration = Duration::from_secs(2);

pub struct Processes {
    table: Mutex<HashMap<String, Process>>,
    cgroups: Arc<Cgroups>,
    output: Output,
    shared_memory: Arc<Journal>,
}

struct Process {
    subject: Arc<Subject>,
    watch: Arc<SharedMemoryWatch>,
    stdin: Option<fs::File>,
    /// Dropping this pipe makes the guard kill everything.
    _control: ChildStdin,
}

impl Processes {
    pub fn new(
        cgroups: Arc<Cgroups>,
        output: Output,
        shared_memory: Arc<Journal>,
    ) -> Arc<Processes> {
        let table = Mutex::new(HashMap::new());
        let all = Arc::new(Processes { table, cgroups, output, shared_memory });
        let watched = Arc::downgrade(&all);
        shm_events::watch(move || {
            watched.upgrade().iter().for_each(|processes| processes.observe_shared_memory());
        });
        all
    }

    fn table(&self) -> MutexGuard<'_, HashMap<String, Process>> {
        self.table.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub fn subjects(&self) -> Vec<Arc<Subject>> {
        self.table().values().map(|process| process.subject.clone()).collect()
    }

    fn observe_shared_memory(&self) {
        let watches: Vec<_> = self.table().values().map(|process| process.watch.clone()).collect();
        watches.iter().for_each(|watch| watch.observe());
    }

    pub fn find(&self, process: &str) -> Option<Arc<Subject>> {
        self.table().get(process).map(|process| process.subject.clone())
    }

    /// Starts a process. Calls `started`, with the time (ns) just before it executed its program,
    /// before its first line can arrive.
    pub fn spawn(
        self: &Arc<Self>,
        request: Spawn,
        state: &std::path::Path,
        started: impl FnOnce(&Arc<Subject>, i64),
    ) -> Answer {
        check(&request)?;
        let mut table = self.table();
        if table.contains_key(&request.process) {
            let message = format!("spawn: process {:?} is still running", request.process);
            return Err(Problem::new(Kind::Busy, message));
        }
        let stderr = match &request.stderr {
            Some(path) => PathBuf::from(path),
            None => state.join(format!("{}.stderr", request.process.replace('/', "_"))),
        };
        let errors = file_sink(&stderr)?;
        let owned = match request.stdout.as_str() {
            "lines" | LINES_ON_THREE => Owned::MappedOrOpen,
            _ => Owned::Mapped, // a user's command, or a program with mapped segments
        };
        let journal = self.shared_memory.clone();
        let watch = Arc::new(SharedMemoryWatch::new(&request.run, journal, owned));
        let output = match request.stdout.as_str() {
            "lines" => self.line_sink(&request.process, watch.clone(), usize::MAX),
            LINES_ON_THREE => self.line_sink(&request.process, watch.clone(), NODE_LINES_MAX),
            path => file_sink(path.as_ref())?,
        };
        let cgroup = self.cgroups.make(&request.run, &request.process).map_err(|error| {
            let folder = self.cgroups.folder.clone().unwrap_or_default();
            Problem::io("making a cgroup in", folder, &error)
        })?;
        let order = order(&request, state, cgroup.as_ref());
        let launched = launch::launch(order, &request.run).inspect_err(|_| {
            cgroup.iter().for_each(Cgroup::remove);
        })?;
        let subject = Arc::new(Subject {
            name: request.process.clone(),
            pid: launched.pid,
            guard_pid: launched.guard.id() as i32,
            reach: Reach::Guarded,
            cgroup,
            ended: OnceLock::new(),
        });
        let _ = watch.guard_pid.set(subject.guard_pid);
        started(&subject, launched.started_ns);
        let answer = json!({"pid": subject.pid, "guard_pid": subject.guard_pid,
                            "started_ns": launched.started_ns,
                            "cgroup": subject.cgroup.as_ref().map(|cgroup| &cgroup.path)});
        let Launched { guard, control, status, stdin, stdout, stderr, .. } = launched;
        let process =
            Process { subject: subject.clone(), watch, stdin: Some(stdin), _control: control };
        table.insert(request.process, process);
        drop(table);
        let streams = [Stream::new(stdout, output), Stream::new(stderr, errors)];
        let all = self.clone();
        thread::spawn(move || all.attend(&subject, &request.run, guard, status, streams));
        Ok(answer)
    }

    fn line_sink(&self, process: &str, watch: Arc<SharedMemoryWatch>, lines_max: usize) -> Sink {
        let (output, process) = (self.output.clone(), process.to_string());
        let mut lines = 0;
        Sink::Lines(Box::new(move |t_ns, text| {
            if lines == lines_max {
                return;
            }
            lines += 1;
            output.send_when_room(
                &json!({"event": "line", "process": process, "t_ns": t_ns, "text": text}),
            );
            watch.observe_if_due(t_ns);
        }))
    }

    /// Runs in a separate thread per process until it, its descendants and its guard have ended.
    fn attend(
        &self,
        subject: &Subject,
        run: &str,
        mut guard: std::process::Child,
        mut status: std::io::BufReader<std::process::ChildStdout>,
        mut streams: [Stream; 2],
    ) {
        let lost = || clean::kill_after_guard(subject, run);
        let mut ended = pump::until_ended(&mut status, &mut streams, lost);
        // Closes the files before the controller receives the event.
        drop(streams);
        let _ = guard.wait();
        let _ = subject.ended.set(Final {
            cgroup_usage_ns: subject.cgroup.as_ref().and_then(Cgroup::usage_ns),
            rusage: ended.as_ref().map(|ended| ended.rusage.clone()),
            reaped: ended.as_mut().map(|ended| take(&mut ended.reaped)).unwrap_or_default(),
        });
        subject.cgroup.iter().for_each(Cgroup::remove);
        self.table().remove(&subject.name);
        self.output.send(&end_event(&subject.name, ended));
    }

    pub fn write(&self, request: &Write) -> Answer {
        let mut table = self.table();
        let process = known(&mut table, &request.process, "write")?;
        if let Some(text) = &request.text {
            let stdin = process.stdin.as_mut().ok_or_else(|| {
                Problem::usage(format!("write: {}: its input is closed", request.process))
            })?;
            write_within(stdin, text.as_bytes(), WRITE_WAIT).map_err(|error| {
                let kind = match error.kind() {
                    std::io::ErrorKind::WouldBlock => Kind::Busy,
                    _ => Kind::Failed,
                };
                Problem::new(kind, format!("write: {}: {error}", request.process))
            })?;
        }
        if request.close {
            process.stdin = None;
        }
        Ok(Value::Null)
    }

    pub fn signal(&self, request: &Signal) -> Answer {
        let number = signal_number(&request.signal)?;
        let mut table = self.table();
        let process = known(&mut table, &request.process, "signal")?;
        // The signal may end the process, so its shared memory is recorded first.
        process.watch.observe();
        let subject = &process.subject;
        let pids = match request.tree {
            true => members::descendants(subject.guard_pid),
            false => vec![subject.pid],
        };
        let mut reached = Vec::new();
        for pid in pids {
            // The process id stays reserved until the guard reaps it.
            if members::kill(pid, number) {
                reached.push(pid);
            }
        }
        if reached.is_empty() {
            let message = format!("signal: {}: the process has ended", request.process);
            return Err(Problem::failed(message));
        }
        Ok(json!({"pids": reached}))
    }

    /// Ends all processes: closes the guards' pipes and waits at most `wait` for the guards.
    pub fn end_all(&self, wait: Duration) {
        let closing: Vec<Process> = self.table().drain().map(|(_, process)| process).collect();
        let subjects: Vec<_> = closing.iter().map(|process| process.subject.clone()).collect();
        drop(closing);
        let until = Instant::now() + wait;
        for subject in subjects {
            while subject.ended.get().is_none() && Instant::now() < until {
                thread::sleep(Duration::from_millis(2));
            }
        }
    }
}

/// Records the shared memory that a process tree uses: when a file appears in /dev/shm, when it
/// prints a line (usually before the measurement window) and before a signal. No timer runs.
struct SharedMemoryWatch {
    run: String,
    guard_pid: OnceLock<i32>,
    before: HashSet<u64>,
    owned: Owned,
    journal: Arc<Journal>,
    observed_ns: AtomicI64,
}

const NEVER_NS: i64 = i64::MIN / 2;

/// Minimum time between two observations that lines trigger.
const OBSERVATION_PERIOD_NS: i64 = 1_000_000_000;

impl SharedMemoryWatch {
    fn new(run: &str, journal: Arc<Journal>, owned: Owned) -> SharedMemoryWatch {
        SharedMemoryWatch {
            run: run.into(),
            guard_pid: OnceLock::new(),
            before: shm::inodes(),
            owned,
            journal,
            observed_ns: AtomicI64::new(NEVER_NS),
        }
    }

    fn observe_if_due(&self, t_ns: i64) {
        if t_ns - self.observed_ns.load(Ordering::Relaxed) >= OBSERVATION_PERIOD_NS {
            self.observed_ns.store(t_ns, Ordering::Relaxed);
            self.observe();
        }
    }

    fn observe(&self) {
        if let Some(guard_pid) = self.guard_pid.get() {
            let pids = members::descendants(*guard_pid);
            self.journal.observe(&self.run, &pids, &self.before, self.owned);
        }
    }
}

fn check(request: &Spawn) -> Result<(), Problem> {
    check_name("spawn", "process", &request.process)?;
    check_name("spawn", "run", &request.run)?;
    match request.argv.is_empty() {
        true => Err(Problem::usage(
            "spawn: argv: found an empty list; allowed: a program with its arguments",
        )),
        false => Ok(()),
    }
}

/// Checks a name, which becomes part of file and cgroup names.
pub fn check_name(op: &str, key: &str, name: &str) -> Result<(), Problem> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_./@:".contains(c);
    match (1..=128).contains(&name.len()) && name.chars().all(allowed) {
        true => Ok(()),
        false => Err(Problem::usage(format!(
            "{op}: {key}: found {name:?}; allowed: 1 to 128 characters, each a letter, a digit \
             or one of `-_./@:`"
        ))),
    }
}

fn file_sink(path: &std::path::Path) -> Result<Sink, Problem> {
    let file = CappedFile::create(path).map_err(|error| Problem::io("creating", path, &error))?;
    Ok(Sink::File(file))
}

fn order(request: &Spawn, state: &std::path::Path, cgroup: Option<&Cgroup>) -> Order {
    let mut env: BTreeMap<String, String> = match request.clear_env {
        true => BTreeMap::new(),
        false => launch::inherited_env(),
    };
    env.extend(request.env.clone());
    Order {
        argv: request.argv.clone(),
        env,
        cwd: request.cwd.clone().unwrap_or_else(|| state.display().to_string()),
        stdin: -1,
        stdout: -1,
        stderr: -1,
        lines_on_three: request.stdout == LINES_ON_THREE,
        cgroup: cgroup.map(|cgroup| cgroup.path.display().to_string()),
        cpus: request.cpus.clone(),
    }
}

fn known<'a>(
    table: &'a mut HashMap<String, Process>,
    name: &str,
    op: &str,
) -> Result<&'a mut Process, Problem> {
    let mut running: Vec<String> = table.keys().cloned().collect();
    running.sort();
    table.get_mut(name).ok_or_else(|| {
        let message = format!("{op}: no running process {name:?}; running: {}", running.join(", "));
        Problem::failed(message)
    })
}

fn write_within(file: &mut fs::File, mut bytes: &[u8], wait: Duration) -> std::io::Result<()> {
    let until = Instant::now() + wait;
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                if Instant::now() > until {
                    return Err(error);
                }
                thread::sleep(Duration::from_millis(2));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn signal_number(name: &str) -> Result<i32, Problem> {
    const KNOWN: [(&str, i32); 10] = [
        ("TERM", libc::SIGTERM),
        ("KILL", libc::SIGKILL),
        ("INT", libc::SIGINT),
        ("HUP", libc::SIGHUP),
        ("QUIT", libc::SIGQUIT),
        ("USR1", libc::SIGUSR1),
        ("USR2", libc::SIGUSR2),
        ("STOP", libc::SIGSTOP),
        ("CONT", libc::SIGCONT),
        ("ABRT", libc::SIGABRT),
    ];
    let short = name.strip_prefix("SIG").unwrap_or(name);
    KNOWN.iter().find(|(known, _)| *known == short).map(|(_, number)| *number).ok_or_else(|| {
        let known: Vec<&str> = KNOWN.iter().map(|(known, _)| *known).collect();
        Problem::usage(format!("signal: found {name:?}; allowed: {}", known.join(", ")))
    })
}

fn end_event(process: &str, ended: Option<Ended>) -> Value {
    match ended {
        None => json!({"event": "guard_lost", "process": process}),
        Some(ended) => {
            let mut event = json!({"event": "exit", "process": process});
            if let (Some(event), Ok(Value::Object(fields))) =
                (event.as_object_mut(), serde_json::to_value(ended))
            {
                event.extend(fields);
            }
            event
        }
    }
}
