//! Reports the files that appear in /dev/shm. A file without a process in its name can be assigned
//! to its creator only while the creator uses it.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::fd::{AsRawFd, FromRawFd};
use std::thread;
use std::time::{Duration, SystemTime};

const FOLDER: &std::ffi::CStr = c"/dev/shm";

/// More than the events of the files that a process creates at its start.
const EVENTS_BYTES: usize = 16_384;

/// Time between two calls while files appear, and from a file to the last call for it. A process
/// maps a file after it has created it.
const SETTLING: Duration = Duration::from_millis(50);

/// Time between two looks at the folder if this user has no inotify instances left.
const LOOK_PERIOD: Duration = Duration::from_millis(100);

/// Calls `created` at once when a file has appeared, and again until none has for `SETTLING`, until
/// the agent ends.
pub fn watch(created: impl Fn() + Send + 'static) {
    let events = inotify();
    thread::spawn(move || match events {
        Some(events) => follow(events, created),
        None => look_periodically(created),
    });
}

fn inotify() -> Option<File> {
    // SAFETY: a plain system call.
    let descriptor = unsafe { libc::inotify_init1(libc::IN_CLOEXEC) };
    if descriptor < 0 {
        return None;
    }
    // SAFETY: nothing else owns the new descriptor.
    let events = unsafe { File::from_raw_fd(descriptor) };
    let mask = libc::IN_CREATE | libc::IN_MOVED_TO;
    // SAFETY: the path ends with a null byte, and the descriptor is open.
    let watch = unsafe { libc::inotify_add_watch(descriptor, FOLDER.as_ptr(), mask) };
    (watch >= 0).then_some(events)
}

fn follow(mut events: File, created: impl Fn()) {
    while take(&mut events) {
        created();
        loop {
            thread::sleep(SETTLING);
            let is_settled = !has_more(&events);
            if !is_settled && !take(&mut events) {
                return;
            }
            created();
            if is_settled {
                break;
            }
        }
    }
}

/// Waits for events and discards them. Returns false if no more can come.
fn take(events: &mut File) -> bool {
    let mut buffer = [0; EVENTS_BYTES];
    loop {
        match events.read(&mut buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => return read.is_ok_and(|size| size > 0),
        }
    }
}

fn has_more(events: &File) -> bool {
    let mut ready = libc::pollfd { fd: events.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: the pointer leads to one entry, and the descriptor is open.
    unsafe { libc::poll(&mut ready, 1, 0) > 0 }
}

fn look_periodically(created: impl Fn()) {
    let (mut seen, mut is_settled) = (modified(), true);
    loop {
        thread::sleep(LOOK_PERIOD);
        let has_changed = std::mem::replace(&mut seen, modified()) != seen;
        if has_changed || !is_settled {
            created();
        }
        is_settled = !has_changed;
    }
}

/// Returns when a file last appeared in the folder or left it.
fn modified() -> Option<SystemTime> {
    fs::metadata(FOLDER.to_str().ok()?).and_then(|metadata| metadata.modified()).ok()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::mpsc;
    use std::time::Instant;

    use super::*;

    fn path(name: &str) -> PathBuf {
        format!("/dev/shm/wattwire-events-{name}-{}", std::process::id()).into()
    }

    #[test]
    fn many_new_files_cause_few_calls_and_the_last_one_follows_the_last_file() {
        let (sender, calls) = mpsc::channel();
        watch(move || _ = sender.send(Instant::now()));
        let begin = Instant::now();
        let mut last_file = begin;
        for number in 0..200 {
            last_file = Instant::now();
            File::create(path(&number.to_string())).unwrap();
            thread::sleep(Duration::from_millis(1));
        }
        let first = calls.recv_timeout(Duration::from_secs(10)).unwrap();
        let mut times = vec![first];
        while times[times.len() - 1] < last_file + SETTLING {
            times.push(calls.recv_timeout(Duration::from_secs(10)).unwrap());
        }
        (0..200).for_each(|number| fs::remove_file(path(&number.to_string())).unwrap());
        let calls_max = begin.elapsed().as_millis() / SETTLING.as_millis() + 2;
        assert!(times.len() as u128 <= calls_max, "{} calls, not {calls_max}", times.len());
    }

    #[test]
    fn without_inotify_a_new_file_is_reported_twice() {
        let (sender, calls) = mpsc::channel();
        thread::spawn(move || look_periodically(move || _ = sender.send(())));
        thread::sleep(LOOK_PERIOD);
        File::create(path("polled")).unwrap();
        for _ in 0..2 {
            calls.recv_timeout(Duration::from_secs(10)).unwrap();
        }
        fs::remove_file(path("polled")).unwrap();
    }
}
