//! Counters of the kernel's performance events for a complete CPU or package. A counter is opened
//! once and read with a single system call.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::lock::locked;
use crate::tree_file::TreeFile;

/// `struct perf_event_attr` in its first published size (PERF_ATTR_SIZE_VER0), which every kernel
/// accepts. A plain counter needs no later fields.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
}

/// An open counter, which starts at 0.
pub enum PerfCounter {
    Live(File, Event),
    Replay(TreeFile),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event {
    pmu: u32,
    config: u64,
    cpu: u32,
}

/// Whether each checked event counts. The host determines this, so this agent waits for an event
/// only once and not at the start of every sampling.
static MOVING: Mutex<BTreeMap<Event, bool>> = Mutex::new(BTreeMap::new());

impl PerfCounter {
    /// Opens the event `config` of the PMU with type number `pmu` for all processes on `cpu`.
    /// Returns EACCES or EPERM if `perf_event_paranoid` forbids it.
    pub fn open(pmu: u32, config: u64, cpu: u32) -> io::Result<PerfCounter> {
        let size = std::mem::size_of::<Attributes>() as u32;
        let attributes = Attributes { kind: pmu, size, config, ..Attributes::default() };
        // SAFETY: `attributes` has the size in its field `size` and outlives the call.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                -1 as libc::pid_t,
                cpu as libc::c_int,
                -1 as libc::c_int,
                PERF_FLAG_FD_CLOEXEC,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just created this descriptor, and nothing else owns it.
        let file = File::from(unsafe { OwnedFd::from_raw_fd(fd as i32) });
        Ok(PerfCounter::Live(file, Event { pmu, config, cpu }))
    }

    /// Returns the raw count, or None if the CPU went offline.
    pub fn read(&self) -> Option<u64> {
        match self {
            PerfCounter::Live(file, _) => {
                let mut bytes = [0u8; 8];
                let mut file = file;
                file.read_exact(&mut bytes).ok()?;
                Some(u64::from_ne_bytes(bytes))
            }
            PerfCounter::Replay(file) => file.number(),
        }
    }

    /// Returns whether the counter of this event increased before `deadline` when it was first
    /// checked. A hypervisor may offer events that never count. In a replay, which has a single
    /// state at a time, every counter passes.
    pub fn moves(&self, deadline: Instant) -> bool {
        let PerfCounter::Live(_, event) = self else { return true };
        let checked = locked(&MOVING).get(event).copied();
        checked.unwrap_or_else(|| {
            let moves = self.increases(deadline);
            locked(&MOVING).insert(*event, moves);
            moves
        })
    }

    fn increases(&self, deadline: Instant) -> bool {
        loop {
            if self.read() != Some(0) {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;

#[cfg(test)]
mod tests {
    use super::*;

    /// PERF_TYPE_SOFTWARE and PERF_COUNT_SW_CPU_CLOCK, the CPU time in ns, which every host has.
    const SOFTWARE: u32 = 1;
    const CPU_CLOCK: u64 = 0;

    #[test]
    fn the_cpu_clock_of_a_cpu_increases() {
        let counter = match PerfCounter::open(SOFTWARE, CPU_CLOCK, 0) {
            Ok(counter) => counter,
            Err(error) => {
                eprintln!("events of a complete CPU are not available on this host: {error}");
                return;
            }
        };
        let first = counter.read().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let increase_ns = counter.read().unwrap() - first;
        assert!(increase_ns >= 20_000_000, "{increase_ns} ns of CPU clock in at least 20 ms");
    }

    /// PERF_COUNT_SW_DUMMY: an event that never happens.
    const DUMMY: u64 = 9;

    #[test]
    fn a_counter_of_an_unused_event_does_not_move() {
        for (event, moving) in [(CPU_CLOCK, true), (DUMMY, false)] {
            let Ok(counter) = PerfCounter::open(SOFTWARE, event, 0) else {
                eprintln!("events of a complete CPU are not available on this host");
                return;
            };
            let deadline = Instant::now() + Duration::from_millis(50);
            assert_eq!(counter.moves(deadline), moving, "event {event}");
        }
    }

    #[test]
    fn an_event_is_checked_only_once() {
        let Ok(counter) = PerfCounter::open(SOFTWARE, DUMMY, 0) else {
            eprintln!("events of a complete CPU are not available on this host");
            return;
        };
        assert!(!counter.moves(Instant::now()));
        // A second check would not end.
        assert!(!counter.moves(Instant::now() + Duration::from_secs(86_400)));
    }

    #[test]
    fn an_unknown_pmu_is_an_error() {
        assert!(PerfCounter::open(u32::MAX, 0, 0).is_err());
    }
}
