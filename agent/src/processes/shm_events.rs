//! Reports the files that appear in /dev/shm. A file without a process in its name can be assigned
//! to its creator only while the creator has it open.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::FromRawFd;
use std::thread;

/// More than the events of the files that a process creates at its start.
const EVENTS_BYTES: usize = 16_384;

/// Calls `created` when files have appeared, once for all files of the same moment, until the agent
/// ends. It is never called if this user has no inotify instances left.
pub fn watch(created: impl Fn() + Send + 'static) {
    // SAFETY: a plain system call.
    let descriptor = unsafe { libc::inotify_init1(libc::IN_CLOEXEC) };
    if descriptor < 0 {
        return;
    }
    // SAFETY: nothing else owns the new descriptor.
    let mut events = unsafe { File::from_raw_fd(descriptor) };
    let mask = libc::IN_CREATE | libc::IN_MOVED_TO;
    // SAFETY: the path ends with a null byte, and the descriptor is open.
    if unsafe { libc::inotify_add_watch(descriptor, c"/dev/shm".as_ptr(), mask) } < 0 {
        return;
    }
    thread::spawn(move || {
        let mut buffer = [0; EVENTS_BYTES];
        loop {
            match events.read(&mut buffer) {
                Ok(size) if size > 0 => created(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                _ => return,
            }
        }
    });
}
