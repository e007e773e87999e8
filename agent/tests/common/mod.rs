//! A controller for tests, which starts the real agent and sends it requests.

#![allow(dead_code)] // no test file uses all functions

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde_json::{json, Value};

/// Prevents a broken test from hanging. No test of a working agent takes this long.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the lock of tests that own processes without an agent, or that end all of these: `clean`
/// of every run finds those of the tests in other threads.
pub fn unowned_processes() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

pub struct Agent {
    pub child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    next: u64,
    events: Vec<Value>,
    pub hello: Value,
    pub folder: PathBuf,
}

/// Returns a unique run token.
pub fn token() -> String {
    static SERIAL: AtomicU32 = AtomicU32::new(0);
    format!("t{}x{}", std::process::id(), SERIAL.fetch_add(1, Ordering::Relaxed))
}

/// Returns a folder for a test, which is removed with the test's agent, and a run token.
pub fn scratch() -> (PathBuf, String) {
    let token = token();
    let folder = std::env::temp_dir().join(format!("wattwire-test-{token}"));
    std::fs::create_dir_all(&folder).unwrap();
    (folder, token)
}

impl Agent {
    pub fn start(folder: &Path, rung: &str) -> Agent {
        Agent::start_by(Command::new(env!("CARGO_BIN_EXE_wattwire-agent")), folder, rung)
    }

    pub fn start_by(mut command: Command, folder: &Path, rung: &str) -> Agent {
        let mut child = command
            .arg("serve")
            .env("WATTWIRE_CACHE", folder.join("cache"))
            .env("WATTWIRE_CGROUP", rung)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let folder = folder.to_path_buf();
        let (hello, events) = (Value::Null, Vec::new());
        let mut agent = Agent { child, stdin, stdout, next: 0, events, hello, folder };
        let state = agent.folder.join("state");
        agent.hello = agent.request("hello", json!({"protocol": 2, "state": state}));
        agent
    }

    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    pub fn send_raw(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line.as_bytes()).unwrap();
        stdin.write_all(b"\n").unwrap();
    }

    pub fn send(&mut self, op: &str, arguments: Value) -> u64 {
        self.next += 1;
        let mut request = arguments;
        request["id"] = self.next.into();
        request["op"] = op.into();
        self.send_raw(&request.to_string());
        self.next
    }

    /// Waits for the reply to a request, which may be an error.
    pub fn reply(&mut self, id: u64) -> Value {
        self.wait(|message| message["id"] == json!(id))
    }

    /// Sends a request and expects a successful reply.
    pub fn request(&mut self, op: &str, arguments: Value) -> Value {
        let id = self.send(op, arguments);
        let reply = self.reply(id);
        assert_eq!(reply["ok"], json!(true), "{op}: {reply}");
        reply
    }

    /// Sends a request and expects an error of this kind. Returns the error's message.
    pub fn expect_error(&mut self, op: &str, arguments: Value, kind: &str) -> String {
        let id = self.send(op, arguments);
        let reply = self.reply(id);
        assert_eq!(reply["error"]["kind"], json!(kind), "{op}: {reply}");
        reply["error"]["message"].as_str().unwrap().to_string()
    }

    pub fn event(&mut self, kind: &str, process: &str) -> Value {
        self.wait(|message| message["event"] == json!(kind) && message["process"] == json!(process))
    }

    pub fn line(&mut self, process: &str) -> String {
        self.event("line", process)["text"].as_str().unwrap().to_string()
    }

    pub fn wait(&mut self, matches: impl Fn(&Value) -> bool) -> Value {
        if let Some(index) = self.events.iter().position(&matches) {
            return self.events.remove(index);
        }
        loop {
            let mut line = String::new();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "the agent ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if matches(&message) {
                return message;
            }
            self.events.push(message);
        }
    }

    /// Spawns a shell or Python program in the scratch folder.
    pub fn spawn(&mut self, process: &str, run: &str, argv: &[&str]) -> Value {
        self.spawn_with(process, run, argv, "lines")
    }

    /// Like `spawn`, with a value for `stdout`.
    pub fn spawn_with(&mut self, process: &str, run: &str, argv: &[&str], stdout: &str) -> Value {
        let stderr = self.folder.join(format!("{process}.stderr"));
        self.request(
            "spawn",
            json!({"process": process, "run": run, "argv": argv, "env": {}, "cwd": self.folder,
                   "stdout": stdout, "stderr": stderr, "clear_env": false}),
        )
    }

    /// Closes the agent's input and returns its exit code.
    pub fn end(&mut self) -> Option<i32> {
        self.stdin = None;
        let status = self.child.wait().unwrap();
        status.code()
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.child.wait();
        // Guards of a killed agent may still write to the folder.
        let end = Instant::now() + TIMEOUT;
        while std::fs::remove_dir_all(&self.folder).is_err() && self.folder.exists() {
            assert!(Instant::now() < end, "{} cannot be removed", self.folder.display());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Returns the live processes (without zombies) that have this run token in their environment.
pub fn marked(run: &str) -> Vec<i32> {
    let mark = format!("WATTWIRE_RUN={run}");
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
    })
    .collect()
}

/// Polls until the condition is true; panics with its description after the timeout.
pub fn wait_until(description: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + TIMEOUT;
    while !condition() {
        assert!(Instant::now() < end, "timeout while waiting until {description}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn kill(pid: i32) {
    // SAFETY: plain system call on a process that a test started.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

/// Reads the records of a sample file: (t_ns, series, read_ns, value).
pub fn records(path: &Path) -> Vec<(i64, u32, u32, f64)> {
    let bytes = std::fs::read(path).unwrap();
    assert_eq!(&bytes[..8], b"WWSAMPLE");
    assert_eq!(bytes[8..12], [1, 0, 24, 0]);
    assert_eq!((bytes.len() - 64) % 24, 0);
    let records = bytes[64..].chunks_exact(24);
    records
        .map(|record| {
            (
                i64::from_le_bytes(record[..8].try_into().unwrap()),
                u32::from_le_bytes(record[8..12].try_into().unwrap()),
                u32::from_le_bytes(record[12..16].try_into().unwrap()),
                f64::from_le_bytes(record[16..].try_into().unwrap()),
            )
        })
        .collect()
}

/// Returns the number of a series from the reply to `sample_stop`.
pub fn series(reply: &Value, quantity: &str, subject: &str) -> u32 {
    let all = reply["series"].as_array().unwrap();
    let series = all.iter().find(|series| {
        series["quantity"] == json!(quantity) && series["subject"] == json!(subject)
    });
    let series = series.unwrap_or_else(|| panic!("no {quantity} of {subject} in {reply}"));
    series["series"].as_u64().unwrap() as u32
}
