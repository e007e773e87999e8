//! Shared memory outlives a process, and the kit leaves with `_exit`.

use std::fs;
use std::os::fd::RawFd;

/// Removes the files of shared memory that nobody but this process has.
///
/// Zenoh holds a shared lock on every segment that it uses and would do the same at exit.
pub fn remove_own() {
    let Ok(descriptors) = fs::read_dir("/proc/self/fd") else {
        return;
    };
    for entry in descriptors.flatten() {
        let Ok(path) = fs::read_link(entry.path()) else {
            continue;
        };
        let descriptor = entry.file_name().to_str().and_then(|name| name.parse::<RawFd>().ok());
        let is_segment =
            path.starts_with("/dev/shm") && path.extension().is_some_and(|e| e == "zenoh");
        if let (true, Some(descriptor)) = (is_segment, descriptor) {
            // SAFETY: a system call on a number; one that was closed meanwhile is an error.
            if unsafe { libc::flock(descriptor, libc::LOCK_EX | libc::LOCK_NB) } == 0 {
                let _ = fs::remove_file(path);
            }
        }
    }
}
