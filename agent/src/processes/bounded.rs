//! Runs a command below a guard until it ends, its time is over or the agent exits.

use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use std::process::ChildStdin;
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use crate::child::Order;
use crate::guard::Ended;
use crate::launch;
use crate::lock::locked;
use crate::members;
use crate::protocol::Problem;
use crate::pump::{self, Sink, Stream};

/// Pipes to the guards of running commands. Dropping a pipe kills its command.
pub type Controls = Arc<Mutex<Vec<ChildStdin>>>;

pub struct Bounded {
    pub argv: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub cwd: String,
    pub until: Instant,
}

impl Bounded {
    pub fn program(&self) -> String {
        self.argv.first().cloned().unwrap_or_default()
    }

    /// Runs the command with the token `run`. `sinks` receive its standard output and its standard
    /// error. Fails if the command does not start or exceeds its time.
    pub fn run(self, run: &str, controls: &Controls, sinks: [Sink; 2]) -> Result<Ended, Problem> {
        let program = self.program();
        let order = Order {
            argv: self.argv,
            env: self.env,
            cwd: self.cwd,
            stdin: -1,
            stdout: -1,
            stderr: -1,
            lines_on_three: false,
            cgroup: None,
            cpus: Vec::new(),
        };
        let mut launched = launch::launch(order, run)?;
        drop(launched.stdin);
        let guard_pid = launched.guard.id();
        let control = Registration::add(controls, launched.control);
        let expiry = Expiry::after(self.until, guard_pid);
        let [output, errors] = sinks;
        let mut streams =
            [Stream::new(launched.stdout, output), Stream::new(launched.stderr, errors)];
        let ended = pump::until_ended(&mut launched.status, &mut streams, || {});
        let expired = expiry.finish();
        drop(control);
        let _ = launched.guard.wait();
        match ended {
            _ if expired => Err(Problem::failed(format!("{program}: exceeded the time limit"))),
            Some(ended) => Ok(ended),
            None => Err(Problem::failed(format!("{program}: its guard was killed"))),
        }
    }
}

/// Registers a control pipe, which the agent closes when it exits.
struct Registration {
    controls: Controls,
    fd: i32,
}

impl Registration {
    fn add(controls: &Controls, control: ChildStdin) -> Registration {
        let fd = control.as_raw_fd();
        locked(controls).push(control);
        Registration { controls: controls.clone(), fd }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        locked(&self.controls).retain(|control| control.as_raw_fd() != self.fd);
    }
}

/// Sends SIGTERM to a guard at the time limit, which makes the guard kill everything.
struct Expiry {
    done: Sender<()>,
    thread: thread::JoinHandle<bool>,
}

impl Expiry {
    fn after(until: Instant, guard_pid: u32) -> Expiry {
        let (done, finished) = channel();
        let thread = thread::spawn(move || {
            let left = until.saturating_duration_since(Instant::now());
            let expired = finished.recv_timeout(left) == Err(RecvTimeoutError::Timeout);
            if expired {
                // The guard is not reaped before `finish`.
                members::kill(guard_pid as i32, libc::SIGTERM);
            }
            expired
        });
        Expiry { done, thread }
    }

    fn finish(self) -> bool {
        let _ = self.done.send(());
        self.thread.join().unwrap_or(false)
    }
}
