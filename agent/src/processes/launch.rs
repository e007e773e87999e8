//! The agent's side of starting a process through a guard.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use crate::child::Order;
use crate::guard::Status;
use crate::own;
use crate::protocol::{Kind, Problem};

/// A running node (or build command) with its guard.
pub struct Launched {
    pub pid: i32,
    /// Time just before the node executed its program.
    pub started_ns: i64,
    pub guard: Child,
    /// Dropping this pipe makes the guard kill everything.
    pub control: ChildStdin,
    pub status: BufReader<ChildStdout>,
    pub stdin: File,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
}

/// Creates a pipe (reading end, writing end) that other children do not inherit.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    // SAFETY: `fds` has room for two descriptors, whose ownership passes to the returned values.
    unsafe {
        if libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])))
    }
}

fn set_nonblocking(fd: RawFd) {
    // SAFETY: plain system calls on a descriptor that the agent owns.
    unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK);
    }
}

/// Returns the agent's environment without the variables that configure the agent.
pub fn inherited_env() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(key, _)| !key.starts_with("WATTWIRE_"))
        .collect()
}

/// Starts `order` with the run token `run`. Sets the three descriptors of `order`.
pub fn launch(mut order: Order, run: &str) -> Result<Launched, Problem> {
    let failed = |error: io::Error| Problem::new(Kind::Io, format!("starting a guard: {error}"));
    let (node_stdin, stdin) = pipe().map_err(failed)?;
    let (stdout, node_stdout) = pipe().map_err(failed)?;
    let (stderr, node_stderr) = pipe().map_err(failed)?;
    for fd in [&stdout, &stderr] {
        set_nonblocking(fd.as_raw_fd());
    }
    set_nonblocking(stdin.as_raw_fd());
    order.stdin = node_stdin.as_raw_fd();
    order.stdout = node_stdout.as_raw_fd();
    order.stderr = node_stderr.as_raw_fd();
    order.env.insert("WATTWIRE_RUN".into(), run.into());
    let inherited = [order.stdin, order.stdout, order.stderr];
    let mut command = own::program();
    // This name lets `clean` recognise a guard that has not set its process name yet.
    command.arg0(OsStr::from_bytes(own::AGENT.to_bytes()));
    command.arg("guard").env("WATTWIRE_RUN", run).stdin(Stdio::piped()).stdout(Stdio::piped());
    // SAFETY: fcntl is async-signal-safe. It runs in the child, so other children do not inherit
    // the descriptors.
    unsafe {
        command.pre_exec(move || {
            for fd in inherited {
                libc::fcntl(fd, libc::F_SETFD, 0);
            }
            Ok(())
        });
    }
    let mut guard = command.spawn().map_err(failed)?;
    let (control, status) = match (guard.stdin.take(), guard.stdout.take()) {
        (Some(control), Some(status)) => (control, status),
        _ => return Err(Problem::new(Kind::Io, "starting a guard: its pipes are missing")),
    };
    let mut launching = Launching { guard, control, status: BufReader::new(status) };
    match launching.order(&order) {
        Ok(Status::Started { pid, t_ns: started_ns }) => {
            let Launching { guard, control, status } = launching;
            let stdin = stdin.into();
            Ok(Launched { pid, started_ns, guard, control, status, stdin, stdout, stderr })
        }
        Ok(Status::Refused { permission, message }) => {
            let _ = launching.guard.wait();
            Err(Problem::new(if permission { Kind::Permission } else { Kind::Failed }, message))
        }
        Ok(Status::Ended(_)) | Err(_) => {
            let _ = launching.guard.kill();
            let _ = launching.guard.wait();
            Err(Problem::new(Kind::Io, "the guard ended before it started the process"))
        }
    }
}

struct Launching {
    guard: Child,
    control: ChildStdin,
    status: BufReader<ChildStdout>,
}

impl Launching {
    fn order(&mut self, order: &Order) -> io::Result<Status> {
        let mut line = serde_json::to_string(order)?;
        line.push('\n');
        self.control.write_all(line.as_bytes())?;
        let mut answer = String::new();
        self.status.read_line(&mut answer)?;
        Ok(serde_json::from_str(&answer)?)
    }
}
