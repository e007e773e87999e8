//! Counters of the kernel's performance events that belong to a whole CPU or package: opened once,
//! read with one system call.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use crate::tree_file::TreeFile;

/// `struct perf_event_attr` in its first published size (PERF_ATTR_SIZE_VER0): that is all a plain
/// counter needs, and every kernel takes it.
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

/// An open counter; it counts from 0 from the moment it was opened.
pub enum PerfCounter {
    Live(File),
    Replay(TreeFile),
}

impl PerfCounter {
    /// Opens the event `config` of the PMU with that type number, for everything on `cpu`.
    /// EACCES or EPERM: `perf_event_paranoid` forbids it.
    pub fn open(pmu: u32, config: u64, cpu: u32) -> io::Result<PerfCounter> {
        let size = std::mem::size_of::<Attributes>() as u32;
        let attributes = Attributes { kind: pmu, size, config, ..Attributes::default() };
        // SAFETY: `attributes` is as long as its `size` says and outlives the call.
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
        // SAFETY: the kernel has just given this descriptor to us alone.
        Ok(PerfCounter::Live(File::from(unsafe { OwnedFd::from_raw_fd(fd as i32) })))
    }

    /// The raw count. None: it cannot be read any more (its CPU went offline).
    pub fn read(&self) -> Option<u64> {
        match self {
            PerfCounter::Live(file) => {
                let mut bytes = [0u8; 8];
                let mut file = file;
                file.read_exact(&mut bytes).ok()?;
                Some(u64::from_ne_bytes(bytes))
            }
            PerfCounter::Replay(file) => file.number(),
        }
    }

    /// Whether it has counted anything since it was opened, or does before `deadline`. A hypervisor
    /// may show events that nothing fills. A replay holds one state at a time and is believed.
    pub fn moves(&self, deadline: Instant) -> bool {
        if matches!(self, PerfCounter::Replay(_)) {
            return true;
        }
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

    /// PERF_TYPE_SOFTWARE and PERF_COUNT_SW_CPU_CLOCK: ns of CPU time, on every machine.
    const SOFTWARE: u32 = 1;
    const CPU_CLOCK: u64 = 0;

    #[test]
    fn a_counter_of_a_cpu_grows() {
        let counter = match PerfCounter::open(SOFTWARE, CPU_CLOCK, 0) {
            Ok(counter) => counter,
            Err(error) => {
                eprintln!("events of a whole CPU are not to be had here: {error}");
                return;
            }
        };
        let first = counter.read().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let grown = counter.read().unwrap() - first;
        assert!(grown >= 20_000_000, "{grown} ns of CPU clock in at least 20 ms");
    }

    /// PERF_COUNT_SW_DUMMY: an event that never happens.
    const DUMMY: u64 = 9;

    #[test]
    fn a_counter_that_nothing_fills_stands_still() {
        for (event, moving) in [(CPU_CLOCK, true), (DUMMY, false)] {
            let Ok(counter) = PerfCounter::open(SOFTWARE, event, 0) else {
                eprintln!("events of a whole CPU are not to be had here");
                return;
            };
            let deadline = Instant::now() + Duration::from_millis(50);
            assert_eq!(counter.moves(deadline), moving, "event {event}");
        }
    }

    #[test]
    fn an_event_that_no_pmu_has_is_refused() {
        assert!(PerfCounter::open(u32::MAX, 0, 0).is_err());
    }
}
