//! The node's clock, CLOCK_MONOTONIC in ns, and waiting.

use std::os::fd::{AsFd, AsRawFd};

pub(crate) const SECOND_NS: i64 = 1_000_000_000;

fn timespec(ns: i64) -> libc::timespec {
    libc::timespec { tv_sec: ns / SECOND_NS, tv_nsec: ns % SECOND_NS }
}

/// Returns CLOCK_MONOTONIC in ns.
#[inline]
pub fn now_ns() -> i64 {
    let mut now = timespec(0);
    // SAFETY: `now` outlives the call, and this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec * SECOND_NS + now.tv_nsec
}

/// Sleeps until `due_ns`. A signal may end the sleep early, so callers must read the clock again.
pub fn sleep_until_ns(due_ns: i64) {
    let due = timespec(due_ns.max(0));
    // SAFETY: `due` outlives the call, and an absolute sleep needs no remainder.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &due,
            std::ptr::null_mut(),
        )
    };
}

pub(crate) fn nap(ns: i64) {
    sleep_until_ns(now_ns() + ns);
}

/// Waits at most `timeout_ns` until `file` is readable. Returns whether it is.
pub fn readable(file: &impl AsFd, timeout_ns: i64) -> bool {
    let fd = file.as_fd().as_raw_fd();
    let mut polled = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let timeout = timespec(timeout_ns.max(0));
    // SAFETY: `file` keeps the descriptor open, and the timeout outlives the call.
    unsafe { libc::ppoll(&mut polled, 1, &timeout, std::ptr::null()) > 0 }
}
