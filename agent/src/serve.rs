//! `serve`: reads requests until the controller closes its end of the pipe.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{json, Value};

use crate::attach::{Attach, Attached};
use crate::attempts::Attempts;
use crate::bounded::Controls;
use crate::builder::Builder;
use crate::cache::{self, Cache};
use crate::census::{Census, Exits, Main, Members};
use crate::cgroup::Cgroups;
use crate::clock_server::ClockServer;
use crate::cpu_latency::CpuLatency;
use crate::cpu_times::BusyTime;
use crate::cpus::OwnCpus;
use crate::exit_records::ExitRecords;
use crate::input::{Input, Next};
use crate::lock::locked;
use crate::meter::Tree;
use crate::others::Others;
use crate::output::Output;
use crate::ports::Ports;
use crate::process::Processes;
use crate::protocol::{self, Answer, Kind, Problem, Request};
use crate::sampler::Sampling;
use crate::shm::Journal;
use crate::stream::Checks;
use crate::{
    addresses, clean, clock, command, disk, files, fingerprint, load, programs, registry, servers,
};

const FLUSH_WAIT: Duration = Duration::from_millis(500);
/// Requests that may take long run in threads, so that the agent still answers other requests.
const IN_THREADS: [&str; 6] = ["build", "command", "connects", "list", "meter_check", "remove"];
const THREADS_MAX: usize = 64;
/// The exit code if the environment lacks something, as that of `wattwire`.
const EXIT_ENVIRONMENT: i32 = 3;
const PATIENCE_S_MIN: f64 = 0.1;
const PATIENCE_S_MAX: f64 = 86_400.0;

/// Runs the agent until its input ends, and returns its exit code.
pub fn run() -> i32 {
    // SAFETY: plain system calls. A failing setsid (already leader) changes nothing.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
    }
    let (output, writer) = Output::to_stdout();
    let cgroups = Arc::new(Cgroups::find());
    let cache = match Cache::find() {
        Ok(cache) => cache,
        Err(why) => {
            eprintln!("wattwire-agent: {why}");
            return EXIT_ENVIRONMENT;
        }
    };
    let checks = match Checks::new() {
        Ok(checks) => Arc::new(checks),
        Err(error) => {
            eprintln!("wattwire-agent: making a socket pair: {error}");
            return EXIT_ENVIRONMENT;
        }
    };
    let shared_memory = Arc::new(Journal::new(cache.shared_memory()));
    let mut agent = Agent {
        state: None,
        processes: Processes::new(cgroups.clone(), output.clone(), shared_memory.clone()),
        shared_memory,
        cgroups,
        attempts: Attempts::new(cache.attempts()),
        cache,
        commands: Controls::default(),
        checks,
        threads: Arc::default(),
        ports: Ports::default(),
        sampling: None,
        attached: Attached::default(),
        censuses: BTreeMap::new(),
        exits: None,
        others: Others::new(&Tree::Live),
        busy_time: BusyTime::new(&Tree::Live),
        cpu_latency: CpuLatency::find(),
        own_cpus: OwnCpus::inherited(),
        clock_server: ClockServer::default(),
        patience: None,
        output,
    };
    let code = agent.serve();
    agent.end();
    drop(agent);
    // A controller that still reads receives the last events. A controller that does not read, or
    // a build thread that still holds the output, must not delay the exit any longer.
    let until = Instant::now() + FLUSH_WAIT;
    while !writer.is_finished() && Instant::now() < until {
        thread::sleep(Duration::from_millis(1));
    }
    code
}

struct Agent {
    state: Option<PathBuf>,
    processes: Arc<Processes>,
    cgroups: Arc<Cgroups>,
    shared_memory: Arc<Journal>,
    cache: Cache,
    attempts: Attempts,
    /// Pipes to the guards of builds and of other commands.
    commands: Controls,
    checks: Arc<Checks>,
    /// Cloned by each thread of a request.
    threads: Arc<()>,
    ports: Ports,
    sampling: Option<Arc<Sampling>>,
    attached: Attached,
    /// Censuses of the current sampling, by the subject's name.
    censuses: BTreeMap<String, Arc<Census>>,
    /// Of the current sampling, from its first census.
    exits: Option<Exits>,
    /// State of `load` between its requests.
    others: Others,
    busy_time: BusyTime,
    cpu_latency: CpuLatency,
    own_cpus: OwnCpus,
    clock_server: ClockServer,
    /// The longest silence of the controller; None without a heartbeat.
    patience: Option<Duration>,
    output: Output,
}

impl Agent {
    /// Answers requests until the input ends or the controller is silent. Returns the exit code.
    fn serve(&mut self) -> i32 {
        let input = match std::io::stdin().as_fd().try_clone_to_owned() {
            Ok(input) => input,
            Err(error) => {
                eprintln!("wattwire-agent: standard input: {error}");
                return 1;
            }
        };
        let mut input = Input::new(input.into());
        loop {
            match input.next(self.patience) {
                Next::Line(line) if line.trim_ascii().is_empty() => {}
                Next::Line(line) => self.handle(&String::from_utf8_lossy(&line)),
                Next::TooLong => {
                    let message = "a line has at most 128 MiB; this line was discarded";
                    let problem = Problem::new(Kind::Protocol, message);
                    self.output.send(&protocol::reply(&Value::Null, Err(problem)));
                }
                Next::End => return 0,
                Next::Silence => {
                    let patience_s = self.patience.unwrap_or_default().as_secs_f64();
                    eprintln!("wattwire-agent: no input for {patience_s} s; ending all processes");
                    return 1;
                }
            }
        }
    }

    fn heartbeat(&mut self, request: &protocol::Heartbeat) -> Answer {
        let patience_s = request.patience_s;
        if !(PATIENCE_S_MIN..=PATIENCE_S_MAX).contains(&patience_s) {
            return Err(Problem::usage(format!(
                "heartbeat: patience_s: found {patience_s}; allowed: {PATIENCE_S_MIN} to \
                 {PATIENCE_S_MAX}"
            )));
        }
        self.patience = Some(Duration::from_secs_f64(patience_s));
        Ok(Value::Null)
    }

    fn handle(&mut self, line: &str) {
        match Request::parse(line) {
            Err((id, problem)) => self.output.send(&protocol::reply(&id, Err(problem))),
            Ok(request) if IN_THREADS.contains(&request.op.as_str()) => self.start_thread(request),
            Ok(request) => {
                let answer = self.answer(&request);
                self.output.send(&protocol::reply(&request.id, answer));
            }
        }
    }

    fn answer(&mut self, request: &Request) -> Answer {
        if request.op == "hello" {
            check_version(&request.arguments)?;
            return self.hello(request.arguments()?);
        }
        let state = self.state()?;
        match request.op.as_str() {
            "fingerprint" => {
                request.arguments::<protocol::Nothing>()?;
                Ok(json!({"facts": fingerprint::facts(&Tree::Live)}))
            }
            "have" => self.cache.have(&request.arguments()?),
            "put" => self.cache.put(&request.arguments()?),
            "ports" => self.ports.take(request.arguments::<protocol::Ports>()?.count),
            "spawn" => self.spawn(request.arguments()?, &state),
            "write" => self.processes.write(&request.arguments()?),
            "signal" => self.processes.signal(&request.arguments()?),
            "attach" => self.attach(&request.arguments()?),
            "detach" => self.attached.detach(&request.arguments()?),
            "members" => self.members(&request.arguments()?),
            "sample_start" => self.sample_start(request.arguments()?),
            "mark" => self.mark(&request.arguments()?),
            "sample_stop" => self.sample_stop(request.arguments()?),
            "hold_cpu_latency" => self.cpu_latency.hold(&request.arguments()?),
            "release_cpu_latency" => {
                request.arguments::<protocol::Nothing>()?;
                self.cpu_latency.release()
            }
            "cpus" => self.own_cpus.describe(request.arguments()?, &Tree::Live),
            "stay_off" => self.own_cpus.stay_off(&request.arguments()?),
            "clock" => clock_answer(&request.arguments()?),
            "clock_listen" => self.clock_server.listen(&request.arguments()?),
            "clock_close" => {
                request.arguments::<protocol::Nothing>()?;
                self.clock_server.close()
            }
            "heartbeat" => self.heartbeat(&request.arguments()?),
            "load" => {
                request.arguments::<protocol::Nothing>()?;
                load::since_start(&Tree::Live, &mut self.others, &mut self.busy_time)
                    .map_err(|error| Problem::io("reading", "/proc/stat", &error))
            }
            "folder" => self.folder(&request.arguments()?),
            "write_file" => files::write_file(&request.arguments()?),
            "which" => programs::which(&request.arguments()?),
            "disk" => disk::disk(&request.arguments()?),
            "addresses" => {
                request.arguments::<protocol::Nothing>()?;
                addresses::addresses()
            }
            "fetch" => files::fetch(&request.arguments()?),
            "clean" => {
                let protocol::Clean { run, look } = request.arguments()?;
                let clean = if look { clean::look } else { clean::clean };
                Ok(clean(&run, &self.shared_memory, &self.cache.shared_memory()))
            }
            unknown => Err(Problem::usage(format!(
                "op: found {unknown:?}; allowed: hello, fingerprint, have, put, build, ports, \
                 spawn, write, signal, attach, detach, members, sample_start, mark, sample_stop, \
                 hold_cpu_latency, release_cpu_latency, clock, load, fetch, clean, folder, \
                 write_file, list, remove, which, command, connects, disk, addresses, \
                 heartbeat, clock_listen, clock_close, cpus, stay_off, meter_check"
            ))),
        }
    }

    fn state(&self) -> Result<PathBuf, Problem> {
        self.state.clone().ok_or_else(|| Problem::usage("the first request must be hello"))
    }

    fn hello(&mut self, hello: protocol::Hello) -> Answer {
        let state = PathBuf::from(&hello.state);
        std::fs::create_dir_all(&state)
            .map_err(|error| Problem::io("state: making folder", &state, &error))?;
        let state = std::path::absolute(&state)
            .map_err(|error| Problem::io("state: resolving", &state, &error))?;
        self.state = Some(state);
        let build = cache::hash_file(Path::new("/proc/self/exe"))
            .map_err(|error| Problem::io("reading", "/proc/self/exe", &error))?;
        let cgroup = json!({"rung": self.cgroups.rung.name(), "path": self.cgroups.folder,
                            "lost": self.cgroups.lost});
        Ok(json!({"protocol": protocol::VERSION, "version": env!("CARGO_PKG_VERSION"),
                  "build": build, "pid": std::process::id(),
                  "boot_id": fingerprint::boot_id(&Tree::Live), "cgroup": cgroup,
                  "rights": fingerprint::rights(&self.cgroups),
                  "time_namespace": fingerprint::time_namespace(),
                  "cache": self.cache.path(), "home": std::env::var("HOME").unwrap_or_default(),
                  "cpu_latency": self.cpu_latency.describe(),
                  "meters": registry::describe_all(&Tree::Live)}))
    }

    /// Answers a request of `IN_THREADS`.
    fn start_thread(&self, request: Request) {
        let slow = Slow {
            cache: self.cache.clone(),
            output: self.output.clone(),
            commands: self.commands.clone(),
            checks: self.checks.clone(),
        };
        let ready = self.state().and_then(|state| match Arc::strong_count(&self.threads) {
            0..=THREADS_MAX => Ok(state),
            _ => {
                let message = format!("{}: {THREADS_MAX} requests are running", request.op);
                Err(Problem::new(Kind::Busy, message))
            }
        });
        let running = self.threads.clone();
        thread::spawn(move || {
            let answer = ready.and_then(|state| slow.answer(&request, &state));
            // Before the reply, so that the controller may send the next request.
            drop(running);
            slow.output.send(&protocol::reply(&request.id, answer));
        });
    }

    fn folder(&mut self, request: &files::Folder) -> Answer {
        self.attempts.note(&request.path);
        files::folder(request)
    }

    fn sample_start(&mut self, request: protocol::SampleStart) -> Answer {
        if self.sampling.is_some() {
            let message = "sample_start: a sampling is already running; send sample_stop first";
            return Err(Problem::new(Kind::Busy, message));
        }
        let subjects = [self.processes.subjects(), self.attached.subjects()].concat();
        let sampling = Sampling::start(request, &subjects)?;
        let answer = json!({"series": sampling.series(), "absent": sampling.absent,
                            "skipped": sampling.skipped});
        self.sampling = Some(sampling);
        Ok(answer)
    }

    fn attach(&mut self, request: &Attach) -> Answer {
        let sampling = self.sampling.clone();
        self.attached.attach(request, |subject| {
            sampling.iter().for_each(|sampling| sampling.follow(subject));
        })
    }

    /// Starts a process. With `members_period_ms`, its census begins with it, so that a process
    /// that ends at once is listed.
    fn spawn(&mut self, request: protocol::Spawn, state: &Path) -> Answer {
        let Some(period_ms) = request.members_period_ms else {
            let sampling = self.sampling.clone();
            return self.processes.spawn(request, state, |subject, _| {
                sampling.iter().for_each(|sampling| sampling.follow(subject));
            });
        };
        let members = Members { process: request.process.clone(), period_ms };
        let argv = request.argv.clone();
        let (sampling, exits) = (self.sampling()?, self.exit_records());
        let mut census = None;
        let answer = self.processes.spawn(request, state, |subject, started_ns| {
            sampling.follow(subject);
            let main = Some(Main { started_ns, argv });
            census = Some(Census::start(&members, subject.clone(), sampling.clone(), exits, main));
        })?;
        if let Some(census) = census.transpose()? {
            self.censuses.insert(members.process, census);
        }
        Ok(answer)
    }

    fn sampling(&self) -> Result<Arc<Sampling>, Problem> {
        let none = || Problem::usage("members: no sampling; send sample_start first");
        self.sampling.clone().ok_or_else(none)
    }

    /// Returns the listener of this sampling, or the reason why there is none.
    fn exit_records(&mut self) -> Exits {
        self.exits.get_or_insert_with(ExitRecords::listen).clone()
    }

    /// Replies with the processes of a subject. The first request starts a census, which measures
    /// each process separately.
    fn members(&mut self, request: &Members) -> Answer {
        if let Some(census) = self.censuses.get(&request.process) {
            return census.answer();
        }
        let sampling = self.sampling()?;
        let name = &request.process;
        let subject = self.processes.find(name).or_else(|| self.attached.find(name));
        let subject = subject.ok_or_else(|| {
            Problem::failed(format!("members: no process {name:?} is running or attached"))
        })?;
        let exits = self.exit_records();
        let census = Census::start(request, subject, sampling, exits, None)?;
        let answer = census.answer();
        self.censuses.insert(name.clone(), census);
        answer
    }

    fn mark(&self, request: &protocol::Mark) -> Answer {
        let sampling = self.sampling.as_ref().ok_or_else(|| {
            Problem::usage(format!("mark {:?}: no sampling; send sample_start first", request.name))
        })?;
        let t_ns = match request.at_ns {
            None => sampling.mark(&request.name),
            Some(at_ns) => {
                sampling.clone().mark_at(request.name.clone(), at_ns);
                at_ns
            }
        };
        Ok(json!({"t_ns": t_ns}))
    }

    fn sample_stop(&mut self, _: protocol::Nothing) -> Answer {
        let none = || Problem::usage("sample_stop: no sampling is running");
        // Nothing beside the measured processes runs after the window.
        let _ = self.clock_server.close();
        self.censuses.clear();
        self.exits = None;
        self.sampling.take().ok_or_else(none)?.finish()
    }

    /// Ends everything that this agent started. Called when the controller has closed the pipe.
    fn end(&mut self) {
        let _ = self.cpu_latency.release();
        let _ = self.clock_server.close();
        locked(&self.commands).clear();
        self.processes.end_all(Duration::from_secs(5));
        if let Some(sampling) = self.sampling.take() {
            // The controller is gone, so an error such as a full disk has no recipient.
            let _ = sampling.finish();
        }
        self.checks.end();
        self.attempts.remove_all();
        self.shared_memory.end();
        self.cgroups.remove();
    }
}

/// Checks the protocol before the other fields, which may differ in another version.
fn check_version(hello: &Value) -> Result<(), Problem> {
    match hello.get("protocol") {
        Some(version) if *version == json!(protocol::VERSION) => Ok(()),
        version => Err(Problem::new(
            Kind::Protocol,
            format!(
                "protocol: the controller has {}, this agent has {}; build the agent of the \
                 controller's version (`make agent`), or on another host, use the same version of \
                 wattwire",
                version.unwrap_or(&Value::Null),
                protocol::VERSION
            ),
        )),
    }
}

/// The parts of the agent that a request in a thread uses.
struct Slow {
    cache: Cache,
    output: Output,
    commands: Controls,
    checks: Arc<Checks>,
}

impl Slow {
    fn answer(&self, request: &Request, state: &Path) -> Answer {
        match request.op.as_str() {
            "command" => command::command(request.arguments()?, state, &self.commands),
            "connects" => servers::connects(&request.arguments()?),
            "list" => files::list(&request.arguments()?),
            "meter_check" => self.checks.check(&request.arguments()?),
            "remove" => files::remove(&request.arguments()?, &self.cache.attempts()),
            _ => {
                let builder = Builder {
                    cache: self.cache.clone(),
                    output: self.output.clone(),
                    controls: self.commands.clone(),
                };
                builder.build(&request.arguments()?)
            }
        }
    }
}

fn clock_answer(request: &protocol::Clock) -> Answer {
    match (1..=1000).contains(&request.count) {
        true => {
            let triples = clock::triples(request.count);
            Ok(json!({"triples": triples, "adjustment": clock::adjustment()}))
        }
        false => {
            let message = format!("clock: count: found {}; allowed: 1 to 1000", request.count);
            Err(Problem::usage(message))
        }
    }
}
