//! Keeps RustDDS alive in a process that is stopped and continued.

use libc::{c_int, epoll_event};

/// What all of this program calls in place of libc's function of this name.
///
/// RustDDS 0.15.1 ends its event loop for good where a wait is interrupted, as SIGCONT or the end
/// of a suspension do with every wait: the process lives on and hears nothing. An interrupted
/// wait is one without events here.
///
/// # Safety
/// As libc's: `events` has room for `count`.
#[no_mangle]
pub unsafe extern "C" fn epoll_wait(
    epoll: c_int,
    events: *mut epoll_event,
    count: c_int,
    timeout_ms: c_int,
) -> c_int {
    let no_mask = std::ptr::null::<libc::sigset_t>();
    // SAFETY: the caller's promise; without a mask its size does not matter.
    let found = unsafe {
        libc::syscall(libc::SYS_epoll_pwait, epoll, events, count, timeout_ms, no_mask, 8usize)
    } as c_int;
    let is_interrupted =
        found < 0 && std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted;
    if is_interrupted {
        0
    } else {
        found
    }
}
