//! Removes shared memory, which outlives a process that ends with `_exit`.

use std::fs;
use std::os::fd::RawFd;

/// Removes the shared-memory files that only this process uses.
///
/// Zenoh has a shared lock on every segment that it uses, and removes unused segments at exit.
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
            // SAFETY: the call returns an error if the descriptor was closed in the meantime.
            if unsafe { libc::flock(descriptor, libc::LOCK_EX | libc::LOCK_NB) } == 0 {
                let _ = fs::remove_file(path);
            }
        }
    }
}
