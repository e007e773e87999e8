//! Lines to the harness on descriptor 3 and from the harness on standard input (C-05, C-08, C-09).

use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::fd::FromRawFd;
use std::sync::atomic::{
    fence, AtomicI64, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::{Condvar, Mutex};

use serde_json::{json, Value};

use crate::clock::{now_ns, sleep_until_ns};

const LINES_FD: i32 = 3;
const WAKING_SIGNAL: libc::c_int = libc::SIGURG;

pub(crate) struct Dialogue {
    out: Mutex<File>,
    // Written under `changed_lock`; 0 before GO and STOP.
    start_ns: AtomicI64,
    stop_ns: AtomicI64,
    changed_lock: Mutex<()>,
    changed: Condvar,
    /// The thread that waits without a timeout, or 0.
    waiting: AtomicUsize,
}

impl Dialogue {
    /// Takes over the descriptor for lines, which children do not inherit. Fails if it is not open.
    pub fn open() -> io::Result<Self> {
        // SAFETY: the call only sets a flag of the descriptor, or fails.
        if unsafe { libc::fcntl(LINES_FD, libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Dialogue {
            // SAFETY: the descriptor is open, and by C-05 only the kit uses it.
            out: Mutex::new(unsafe { File::from_raw_fd(LINES_FD) }),
            start_ns: AtomicI64::new(0),
            stop_ns: AtomicI64::new(0),
            changed_lock: Mutex::new(()),
            changed: Condvar::new(),
            waiting: AtomicUsize::new(0),
        })
    }

    pub fn line(&self, keyword: &str, fields: &Value) {
        let text = format!("{keyword} {fields}\n");
        // Fails only if the harness has ended, and then the end of input follows.
        let _ = self.out.lock().unwrap().write_all(text.as_bytes());
    }

    /// Prints ERROR and ends the process immediately.
    pub fn fail(&self, code: i32, key: Option<&str>, reason: &str) -> ! {
        self.line("ERROR", &json!({"code": code, "key": key, "reason": reason}));
        exit_now(code)
    }

    /// Handles standard input until it ends, and then ends the process.
    pub fn listen(&'static self) {
        std::thread::spawn(|| {
            // With a separate descriptor table this thread does not force the system calls of other
            // threads to count references to files. If the call fails, they do count them.
            // SAFETY: this thread uses only descriptors that are open now, and closes none.
            unsafe { libc::unshare(libc::CLONE_FILES) };
            let mut input = io::stdin().lock();
            let mut text = Vec::new();
            loop {
                if self.stopped() {
                    self.interrupt();
                }
                text.clear();
                match input.read_until(b'\n', &mut text) {
                    Ok(count) if count > 0 => {
                        self.handle(String::from_utf8_lossy(&text).trim_end())
                    }
                    _ => exit_now(5),
                }
            }
        });
    }

    #[inline]
    pub fn stopped(&self) -> bool {
        self.stop_ns() != 0
    }
    #[inline]
    pub fn stop_ns(&self) -> i64 {
        self.stop_ns.load(Relaxed)
    }
    #[inline]
    pub fn start_ns(&self) -> i64 {
        self.start_ns.load(Relaxed)
    }

    pub fn wait_stop(&self) {
        let guard = self.changed_lock.lock().unwrap();
        drop(self.changed.wait_while(guard, |_| !self.stopped()));
    }
    pub fn wait_go_or_stop(&self) {
        let guard = self.changed_lock.lock().unwrap();
        drop(self.changed.wait_while(guard, |_| !self.stopped() && self.start_ns() == 0));
    }

    /// Runs `wait` until STOP, which interrupts its system calls with a signal (EINTR).
    pub fn until_stop(&self, mut wait: impl FnMut()) {
        // SAFETY: the handler is empty. Without SA_RESTART the signal ends system calls.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let handler: extern "C" fn(libc::c_int) = ignore_signal;
            action.sa_sigaction = handler as libc::sighandler_t;
            libc::sigaction(WAKING_SIGNAL, &action, std::ptr::null_mut());
            self.waiting.store(libc::pthread_self() as usize, SeqCst);
        }
        fence(SeqCst); // either this thread sees STOP, or the other thread sees `waiting`
        while !self.stopped() {
            wait();
        }
        self.waiting.store(0, SeqCst);
    }

    /// Sends signals until the waiting thread has ended its wait, because a signal between its
    /// check for STOP and its wait has no effect.
    fn interrupt(&self) {
        fence(SeqCst);
        loop {
            let thread = self.waiting.load(SeqCst);
            if thread == 0 {
                return;
            }
            // SAFETY: the waiting thread runs the role and lives as long as the process.
            unsafe { libc::pthread_kill(thread as libc::pthread_t, WAKING_SIGNAL) };
            sleep_until_ns(now_ns() + 1_000_000);
        }
    }

    fn handle(&self, text: &str) {
        let _guard = self.changed_lock.lock().unwrap();
        let digits = text.strip_prefix("GO ").filter(|d| d.bytes().all(|b| b.is_ascii_digit()));
        if text == "STOP" {
            let _ = self.stop_ns.compare_exchange(0, now_ns(), Relaxed, Relaxed);
        } else if let Some(start_ns) = digits.and_then(|d| d.parse::<i64>().ok()) {
            let late_ns = now_ns() - start_ns;
            if late_ns > 0 {
                let reason = format!("{text}: {late_ns} ns in the past; allowed: the future");
                self.fail(2, Some("GO"), &reason);
            }
            self.start_ns.store(start_ns, Relaxed);
        } else if !text.is_empty() {
            let word = text.split(' ').next();
            self.fail(2, word, &format!("found {text:?}; allowed: GO <start_ns>, STOP"));
        }
        self.changed.notify_all();
    }
}

extern "C" fn ignore_signal(_: libc::c_int) {}

/// Ends the process without the exit handlers of libraries, which could block (C-09, C-16).
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: the node has written its output.
    unsafe { libc::_exit(code) }
}
