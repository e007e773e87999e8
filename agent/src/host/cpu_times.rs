//! Parses the CPU times of the host from the first line of `/proc/stat` (proc(5)).

use crate::tree::Tree;
use crate::tree_file::parse_number;

/// Times since boot in clock ticks, summed over all CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuTimes {
    /// Sum of user, nice, system, irq and softirq. User time already includes guest time.
    pub busy: u64,
    pub steal: u64,
    pub softirq: u64,
    pub irq: u64,
    pub iowait: u64,
    pub idle: u64,
}

impl CpuTimes {
    /// Parses `/proc/stat` without allocating. Returns None if the first line has no CPU times.
    pub fn parse(stat: &[u8]) -> Option<CpuTimes> {
        let line = stat.split(|byte| *byte == b'\n').next()?.strip_prefix(b"cpu ")?;
        let mut fields = [0u64; 8];
        let mut count = 0;
        let words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        for (field, word) in fields.iter_mut().zip(words) {
            *field = parse_number(word)?;
            count += 1;
        }
        let [user, nice, system, idle, iowait, irq, softirq, steal] = fields;
        let busy = user + nice + system + irq + softirq;
        (count >= 4).then_some(CpuTimes { busy, steal, softirq, irq, iowait, idle })
    }

    pub fn total(&self) -> u64 {
        self.busy + self.idle + self.iowait + self.steal
    }
}

/// Returns the duration of a clock tick. Fixtures have the usual 100 ticks per second.
pub fn tick_ns(tree: &Tree) -> u64 {
    let per_second = match tree {
        // SAFETY: plain system call.
        Tree::Live => unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as u64,
        Tree::Replay(_) => 100,
    };
    1_000_000_000 / per_second
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sums_include_guest_time_only_once() {
        let times = CpuTimes::parse(b"cpu  100 20 30 1000 50 4 6 8 90 10\ncpu0 1 2 3 4\n").unwrap();
        let expected = CpuTimes { busy: 160, steal: 8, softirq: 6, irq: 4, iowait: 50, idle: 1000 };
        assert_eq!(times, expected);
        assert_eq!(times.total(), 160 + 1050 + 8);
    }

    #[test]
    fn at_least_four_numeric_times_are_required() {
        let times = CpuTimes::parse(b"cpu 1 2 3 4").unwrap();
        assert_eq!((times.busy, times.steal, times.total()), (6, 0, 10));
        assert_eq!(CpuTimes::parse(b"cpu 1 2"), None);
        assert_eq!(CpuTimes::parse(b"cpu 1 2 x 4"), None);
        assert_eq!(CpuTimes::parse(b"intr 1 2 3 4 5"), None);
    }
}
