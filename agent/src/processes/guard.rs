//! The guard is a single-threaded process between the agent and a process that the agent starts.
//! It is a session leader and a child subreaper, so its descendants cannot escape it, even by
//! double forking. It reaps all descendants and sums their resource usage. When the agent's pipe
//! closes, it kills them and exits.
//!
//! Standard input is the control pipe, whose first line is the `Order`. Standard output is the
//! status pipe.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::RawFd;

use serde::{Deserialize, Serialize};

use crate::child::{self, Order, Started};
use crate::clock;
use crate::members;
use crate::reaped::{Reaped, Usage};

/// A message of the guard to the agent, one JSON object per line.
#[derive(Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// `t_ns` is the time just before the process executed its program.
    Started {
        pid: i32,
        t_ns: i64,
    },
    Refused {
        permission: bool,
        message: String,
    },
    Ended(Ended),
}

#[derive(Serialize, Deserialize, Debug, Clone, PartialEq)]
pub struct Ended {
    pub t_ns: i64,
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub killed_by_guard: bool,
    pub rusage: Usage,
    /// The processes that the guard reaped, at most `REAPED_MAX`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reaped: Vec<Reaped>,
}

/// Time that descendants may run after the main process has ended. Then the guard kills them.
const GRACE_NS: i64 = 300_000_000;
/// The main process and the first orphans; further orphans are only in the sums.
const REAPED_MAX: usize = 500;
const CONTROL: RawFd = 0;
const STATUS: RawFd = 1;

/// Runs the guard and returns its exit code.
pub fn run() -> i32 {
    // SAFETY: plain system calls; a failing setsid (already leader) changes nothing.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
    }
    let signals = match watched_signals() {
        Ok(fd) => fd,
        Err(_) => return 1,
    };
    let order: Order = match read_line(CONTROL)
        .and_then(|line| serde_json::from_str(&line).map_err(io::Error::other))
    {
        Ok(order) => order,
        Err(_) => return 1,
    };
    let Started { pid, t_ns } = match child::start(&order) {
        Ok(started) => started,
        Err(error) => {
            let permission = error.kind() == io::ErrorKind::PermissionDenied;
            send(&Status::Refused { permission, message: error.to_string() });
            return 0;
        }
    };
    for fd in [order.stdin, order.stdout, order.stderr] {
        // SAFETY: the guard inherited these descriptors only for the node.
        unsafe { libc::close(fd) };
    }
    send(&Status::Started { pid, t_ns });
    let ended = Watch::new(pid, order.cgroup.clone()).until_all_ended(signals);
    if !send(&Status::Ended(ended)) {
        // The agent has exited, so the guard removes the cgroup in its place.
        remove_cgroup(order.cgroup.as_deref());
    }
    0
}

fn send(status: &Status) -> bool {
    let mut line = serde_json::to_string(status).unwrap_or_default();
    line.push('\n');
    // SAFETY: standard output is the status pipe and stays open, because the File is never dropped.
    let mut file = std::mem::ManuallyDrop::new(unsafe {
        <fs::File as std::os::fd::FromRawFd>::from_raw_fd(STATUS)
    });
    file.write_all(line.as_bytes()).is_ok()
}

fn read_line(fd: RawFd) -> io::Result<String> {
    // SAFETY: as in `send`.
    let mut file = std::mem::ManuallyDrop::new(unsafe {
        <fs::File as std::os::fd::FromRawFd>::from_raw_fd(fd)
    });
    let mut line = Vec::new();
    let mut byte = [0u8; 1];
    // Reads single bytes, so that the data after the line stay in the pipe. The end of the pipe is
    // the signal to kill.
    while file.read(&mut byte)? == 1 && byte[0] != b'\n' {
        line.push(byte[0]);
    }
    String::from_utf8(line).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn watched_signals() -> io::Result<RawFd> {
    // SAFETY: `set` is initialised by sigemptyset before use.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in [libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
            libc::sigaddset(&mut set, signal);
        }
        libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        match libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(fd),
        }
    }
}

/// Supervises a node and all its descendants.
struct Watch {
    main: i32,
    cgroup: Option<String>,
    /// Time in ns and wait status of the main process's end.
    main_ended: Option<(i64, i32)>,
    killing: bool,
    killed: bool,
    usage: Usage,
    reaped: Vec<Reaped>,
}

impl Watch {
    fn new(main: i32, cgroup: Option<String>) -> Self {
        let usage = Usage::default();
        let (main_ended, reaped) = (None, Vec::new());
        Watch { main, cgroup, main_ended, killing: false, killed: false, usage, reaped }
    }

    fn until_all_ended(mut self, signals: RawFd) -> Ended {
        let mut control_open = true;
        while self.reap() {
            if let Some((ended_ns, _)) = self.main_ended {
                self.killing |= clock::monotonic_ns() >= ended_ns + GRACE_NS;
            }
            if self.killing {
                self.kill_all();
            }
            let wait_ms = match (self.killing, self.main_ended) {
                (true, _) => 5,
                (false, Some(_)) => 20,
                (false, None) => -1,
            };
            let mut polled = [
                libc::pollfd { fd: signals, events: libc::POLLIN, revents: 0 },
                libc::pollfd {
                    fd: if control_open { CONTROL } else { -1 },
                    events: libc::POLLIN,
                    revents: 0,
                },
            ];
            // SAFETY: `polled` has two entries.
            unsafe { libc::poll(polled.as_mut_ptr(), 2, wait_ms) };
            if polled[0].revents != 0 && received_stop_signal(signals) {
                self.killing = true;
            }
            if polled[1].revents != 0 && is_at_end(CONTROL) {
                control_open = false;
                self.killing = true;
            }
        }
        self.ended()
    }

    /// Reaps ended processes; returns false if no child is left.
    fn reap(&mut self) -> bool {
        loop {
            let pid = match ended_child() {
                Ok(Some(pid)) => pid,
                Ok(None) => return true,
                Err(_) => return false,
            };
            let ended_ns = clock::monotonic_ns();
            // A process's clock is readable until the process is reaped.
            let reaped = Reaped::look(pid, ended_ns).filter(|_| self.reaped.len() < REAPED_MAX);
            let mut status = 0;
            // SAFETY: an all-zero rusage is valid.
            let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
            // SAFETY: both out-parameters outlive the call.
            if unsafe { libc::wait4(pid, &mut status, 0, &mut usage) } != pid {
                continue;
            }
            self.usage.add(&usage);
            if let Some(mut reaped) = reaped {
                reaped.usage.add(&usage);
                self.reaped.push(reaped);
            }
            if pid == self.main {
                self.main_ended = Some((ended_ns, status));
            }
        }
    }

    fn kill_all(&mut self) {
        if let Some(folder) = &self.cgroup {
            // Only cgroup v2 since Linux 5.14 has this file. The loop below covers other kernels.
            let _ = fs::write(format!("{folder}/cgroup.kill"), "1");
        }
        // SAFETY: plain system call.
        for pid in members::descendants(unsafe { libc::getpid() }) {
            // A descendant's process id stays reserved until this guard or its parent, which is
            // killed too, reaps it.
            self.killed |= members::kill(pid, libc::SIGKILL);
        }
    }

    fn ended(self) -> Ended {
        let (t_ns, status) = self.main_ended.unwrap_or((clock::monotonic_ns(), 0));
        Ended {
            t_ns,
            code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
            signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
            killed_by_guard: self.killed,
            rusage: self.usage,
            reaped: self.reaped,
        }
    }
}

/// Returns a child that has ended and is not reaped, or None if all children run. Without a child,
/// returns an error.
fn ended_child() -> io::Result<Option<i32>> {
    // SAFETY: an all-zero siginfo_t is valid, and it outlives the call.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: see above.
    match unsafe { libc::waitid(libc::P_ALL, 0, &mut info, options) } {
        // SAFETY: the call has filled the fields of SIGCHLD, or left them zero.
        0 => Ok(Some(unsafe { info.si_pid() }).filter(|pid| *pid != 0)),
        _ => Err(io::Error::last_os_error()),
    }
}

fn received_stop_signal(signals: RawFd) -> bool {
    let mut stop = false;
    loop {
        // SAFETY: an all-zero signalfd_siginfo is valid, and the read is limited to its size.
        let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
        let bytes = std::mem::size_of_val(&info);
        // SAFETY: see above.
        let length = unsafe { libc::read(signals, (&raw mut info).cast(), bytes) };
        if length != bytes as isize {
            return stop;
        }
        stop |= info.ssi_signo != libc::SIGCHLD as u32;
    }
}

fn is_at_end(fd: RawFd) -> bool {
    let mut byte = 0u8;
    // SAFETY: `byte` has room for the byte that is read.
    unsafe { libc::read(fd, (&raw mut byte).cast(), 1) <= 0 }
}

fn remove_cgroup(folder: Option<&str>) {
    if let Some(folder) = folder {
        let folder = std::path::Path::new(folder);
        let _ = fs::remove_dir(folder);
        // Succeeds only for the last process: then the agent's folder is empty.
        let _ = folder.parent().map(fs::remove_dir);
    }
}
