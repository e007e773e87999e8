//! Builds artifacts: writes files and runs commands in `<cache>/builds/<key>`, once per key and
//! host.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::bounded::{Bounded, Controls};
use crate::cache::Cache;
use crate::contents;
use crate::guard::Ended;
use crate::launch::inherited_env;
use crate::lock::locked;
use crate::output::Output;
use crate::protocol::{Answer, Build, Problem};
use crate::pump::Sink;

const TAIL_BYTES: usize = 8 << 10;
/// Marks the folder of a complete build; its text is the duration of the build in seconds.
const MARKER: &str = ".wattwire-complete";
/// Folder of the commands' temporary files, in the folder of the build.
const TEMPORARY: &str = "tmp";

pub struct Builder {
    pub cache: Cache,
    pub output: Output,
    pub controls: Controls,
}

impl Builder {
    /// Builds the artifact unless the cache has it; blocks while another builder has the key.
    pub fn build(&self, request: &Build) -> Answer {
        check(request)?;
        let directory = self.cache.builds().join(&request.key);
        let log_path = self.cache.builds().join(format!("{}.log", request.key));
        let reply = |cached: bool, seconds: f64| {
            Ok(json!({"directory": directory, "log": log_path, "cached": cached,
                      "seconds": seconds}))
        };
        let finished = || {
            let text = fs::read_to_string(directory.join(MARKER)).ok()?;
            if !contents::is_intact(&directory) {
                // The marker goes first: no one may use the folder while it is built again.
                let _ = fs::remove_file(directory.join(MARKER));
                self.progress(&request.key, "its files changed after the build; building again");
                return None;
            }
            touch(&directory.join(MARKER));
            Some(text)
        };
        // Checked before locking, so that a read-only cache can provide a finished build.
        if let Some(text) = finished() {
            return reply(true, text.trim().parse().unwrap_or(0.0));
        }
        // Checked before locking, because another builder may hold the lock for its whole build.
        if request.cached_only {
            let text = format!("build {}: not built yet", request.key);
            return Err(Problem::new(crate::protocol::Kind::Absent, text));
        }
        fs::create_dir_all(self.cache.builds())
            .map_err(|error| Problem::io("making folder", self.cache.builds(), &error))?;
        let begin = Instant::now();
        let until = begin + Duration::from_secs_f64(request.timeout_s);
        let _lock = self.lock(&request.key, until)?;
        if let Some(text) = finished() {
            return reply(true, text.trim().parse().unwrap_or(0.0));
        }
        // A failed or killed builder may have left incomplete files.
        match fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Problem::io("removing an incomplete build", &directory, &error));
            }
            _ => {}
        }
        let log = Log::create(&log_path)
            .map_err(|error| Problem::io("creating log", &log_path, &error))?;
        let outcome = self.run_commands(request, &directory, &log, until);
        let _ = fs::remove_dir_all(directory.join(TEMPORARY));
        outcome.map_err(|problem| with_tail(problem, &log_path))?;
        let seconds = begin.elapsed().as_secs_f64();
        complete(&directory, seconds).map_err(|e| Problem::io("marking", &directory, &e))?;
        reply(false, seconds)
    }

    fn progress(&self, key: &str, text: &str) {
        self.output.send_when_room(&json!({"event": "build", "key": key, "text": text}));
    }

    /// Takes an flock on the key, which also excludes other agents on this host. Dropping the file
    /// releases the lock.
    fn lock(&self, key: &str, until: Instant) -> Result<fs::File, Problem> {
        let path = self.cache.builds().join(format!("{key}.lock"));
        let file = fs::File::create(&path).map_err(|e| Problem::io("creating", &path, &e))?;
        let mut is_reported = false;
        loop {
            // SAFETY: plain system call on a descriptor of ours.
            if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
                return Ok(file);
            }
            if Instant::now() > until {
                return Err(Problem::new(
                    crate::protocol::Kind::Busy,
                    format!("build {key}: another builder still holds {}", path.display()),
                ));
            }
            if !is_reported {
                self.progress(key, "waiting for another builder of the same key");
                is_reported = true;
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn run_commands(
        &self,
        request: &Build,
        directory: &Path,
        log: &Log,
        until: Instant,
    ) -> Result<(), Problem> {
        let source = directory.join("source");
        fs::create_dir_all(&source).map_err(|e| Problem::io("making folder", &source, &e))?;
        for file in &request.files {
            self.cache.copy_to(&file.hash, &source.join(&file.path), file.mode)?;
        }
        // A killed command cannot remove its temporary files; the next build of the key does.
        let temporary = directory.join(TEMPORARY);
        fs::create_dir(&temporary).map_err(|e| Problem::io("making folder", &temporary, &e))?;
        let env = request.env.iter();
        let substituted = |text: &String| self.substituted(text, directory);
        let env: BTreeMap<String, String> =
            env.map(|(key, value)| (key.clone(), substituted(value))).collect();
        for (index, command) in request.commands.iter().enumerate() {
            let argv: Vec<String> = command.iter().map(substituted).collect();
            let text = format!("[{}/{}] {}", index + 1, request.commands.len(), argv.join(" "));
            log.line(&text);
            self.progress(&request.key, &text);
            self.run(&request.key, argv, env.clone(), directory, log, until)?;
        }
        Ok(())
    }

    /// Runs a command below a guard. The command and its descendants end with the agent, or at the
    /// time limit.
    fn run(
        &self,
        key: &str,
        argv: Vec<String>,
        env: BTreeMap<String, String>,
        directory: &Path,
        log: &Log,
        until: Instant,
    ) -> Result<(), Problem> {
        let mut all_env = inherited_env();
        all_env.insert("TMPDIR".into(), directory.join(TEMPORARY).display().to_string());
        all_env.extend(env);
        let command = Bounded { argv, env: all_env, cwd: directory.display().to_string(), until };
        let sinks = [self.lines(key, log), self.lines(key, log)];
        let program = command.program();
        match command.run(&format!("build-{key}"), &self.controls, sinks)? {
            Ended { code: Some(0), .. } => Ok(()),
            Ended { code: Some(code), .. } => {
                Err(Problem::failed(format!("{program}: exit code {code}")))
            }
            Ended { signal, .. } => {
                Err(Problem::failed(format!("{program}: signal {}", signal.unwrap_or(0))))
            }
        }
    }

    fn substituted(&self, text: &str, directory: &Path) -> String {
        text.replace("{source}", &directory.join("source").display().to_string())
            .replace("{build}", &directory.display().to_string())
            .replace("{cache}", &self.cache.compilers().display().to_string())
    }

    fn lines(&self, key: &str, log: &Log) -> Sink {
        let (output, key, log) = (self.output.clone(), key.to_string(), log.clone());
        Sink::Lines(Box::new(move |_, text| {
            log.line(text);
            output.send_when_room(&json!({"event": "build", "key": key, "text": text}));
        }))
    }
}

/// Records the time of the last use, by which old builds can be deleted.
fn touch(marker: &Path) {
    // A cache that is not writable needs no record, because nothing can be deleted from it.
    let _ = fs::File::options()
        .append(true)
        .open(marker)
        .and_then(|file| file.set_modified(std::time::SystemTime::now()));
}

#[derive(Clone)]
struct Log(Arc<Mutex<fs::File>>);

impl Log {
    fn create(path: &Path) -> io::Result<Log> {
        Ok(Log(Arc::new(Mutex::new(fs::File::create(path)?))))
    }

    fn line(&self, text: &str) {
        // On a full disk the build itself fails.
        let _ = locked(&self.0).write_all(format!("{text}\n").as_bytes());
    }
}

fn check(request: &Build) -> Result<(), Problem> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let key = &request.key;
    if !(1..=128).contains(&key.len()) || !key.chars().all(allowed) || key.starts_with('.') {
        return Err(Problem::usage(format!(
            "build: key: found {key:?}; allowed: 1 to 128 characters, each a letter, a digit, `-`, \
             `_` or `.`; the first may not be `.`"
        )));
    }
    if !(request.timeout_s > 0.0 && request.timeout_s < 1e6) {
        let timeout_s = request.timeout_s;
        let message = format!("build: timeout_s: found {timeout_s}; allowed: above 0, below 1e6");
        return Err(Problem::usage(message));
    }
    for file in &request.files {
        let inside = |part| matches!(part, Component::Normal(_));
        let path = PathBuf::from(&file.path);
        if file.path.is_empty() || !path.components().all(inside) {
            return Err(Problem::usage(format!(
                "build: files: path: found {:?}; allowed: a relative path without `..`",
                file.path
            )));
        }
    }
    match request.commands.iter().any(Vec::is_empty) {
        true => Err(Problem::usage(
            "build: commands: found an empty command; allowed: a program with its arguments",
        )),
        false => Ok(()),
    }
}

fn complete(directory: &Path, seconds: f64) -> io::Result<()> {
    contents::record(directory)?;
    let mut marker = fs::File::create(directory.join(MARKER))?;
    marker.write_all(format!("{seconds:.3}\n").as_bytes())?;
    marker.sync_all()
}

fn with_tail(problem: Problem, log: &Path) -> Problem {
    let bytes = fs::read(log).unwrap_or_default();
    let tail = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(TAIL_BYTES)..]);
    let message = format!("{}; the end of {}:\n{tail}", problem.message, log.display());
    Problem { kind: problem.kind, message }
}
