//! Keeps RustDDS working in a process that is stopped and continued.

use libc::{c_int, epoll_event};

/// Replaces libc's function of this name in the whole program.
///
/// RustDDS 0.15.1 ends its event loop permanently if a wait is interrupted, which SIGCONT and the
/// end of a suspension do. The process would then receive nothing. This function returns no events
/// for an interrupted wait.
///
/// # Safety
/// As for libc's function, `events` must have room for `count` events.
#[no_mangle]
pub unsafe extern "C" fn epoll_wait(
    epoll: c_int,
    events: *mut epoll_event,
    count: c_int,
    timeout_ms: c_int,
) -> c_int {
    let no_mask = std::ptr::null::<libc::sigset_t>();
    // SAFETY: the caller guarantees the buffer. Without a mask its size has no effect.
    let count_ready = unsafe {
        libc::syscall(libc::SYS_epoll_pwait, epoll, events, count, timeout_ms, no_mask, 8usize)
    } as c_int;
    let is_interrupted = count_ready < 0
        && std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted;
    if is_interrupted {
        0
    } else {
        count_ready
    }
}
