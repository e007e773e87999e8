//! Parses the CPU times of the host from `/proc/stat` (proc(5)), and computes its busy time from
//! the idle time, which is exact.

use crate::meter::Absent;
use crate::tree::Tree;
use crate::tree_file::{parse_number, TreeFile};

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
    /// Number of CPUs that are online.
    pub cpus: u64,
}

impl CpuTimes {
    /// Parses `/proc/stat` without allocating. Returns None if the first line has no CPU times.
    pub fn parse(stat: &[u8]) -> Option<CpuTimes> {
        let mut lines = stat.split(|byte| *byte == b'\n');
        let line = lines.next()?.strip_prefix(b"cpu ")?;
        let mut fields = [0u64; 8];
        let mut count = 0;
        let words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        for (field, word) in fields.iter_mut().zip(words) {
            *field = parse_number(word)?;
            count += 1;
        }
        let [user, nice, system, idle, iowait, irq, softirq, steal] = fields;
        let busy = user + nice + system + irq + softirq;
        let cpus = lines.take_while(|line| line.starts_with(b"cpu")).count() as u64;
        (count >= 4).then_some(CpuTimes { busy, steal, softirq, irq, iowait, idle, cpus })
    }

    /// Returns the time in which a CPU was online, but not busy.
    pub fn unused(&self) -> u64 {
        self.idle + self.iowait + self.steal
    }
}

/// The busy time of the host since boot, as a counter in ns.
///
/// A kernel that charges whole ticks to the task that a tick finds (TICK_CPU_ACCOUNTING) misses or
/// repeats the work of programs that wake with its ticks. The columns idle and iowait have no such
/// error where the kernel stops the tick of an idle CPU (NO_HZ): `get_idle_time` (fs/proc/stat.c)
/// takes them from the clock. So busy time is the time of all CPUs minus idle, iowait and steal.
/// The other columns add only the value at the first reading, because a counter needs a start.
/// Without NO_HZ, the idle time has the errors of the ticks, and so has this difference.
pub struct BusyTime {
    tree: Tree,
    tick_ns: u64,
    last: Option<(i64, CpuTimes)>,
    busy_ns: i64,
    largest_ns: i64,
}

impl BusyTime {
    pub fn new(tree: &Tree) -> BusyTime {
        let tree = tree.clone();
        BusyTime { tick_ns: tick_ns(&tree), tree, last: None, busy_ns: 0, largest_ns: 0 }
    }

    /// Returns the busy time at the times of `/proc/stat`, which the caller has just read. A replay
    /// without a clock returns the sum of the columns.
    pub fn advance(&mut self, times: &CpuTimes) -> u64 {
        match self.tree.monotonic_ns() {
            Some(now_ns) => self.advance_at(now_ns, times),
            None => times.busy * self.tick_ns,
        }
    }

    fn advance_at(&mut self, now_ns: i64, times: &CpuTimes) -> u64 {
        let ns = |ticks: u64| (ticks * self.tick_ns) as i64;
        self.busy_ns += match &self.last {
            None => ns(times.busy),
            Some((then_ns, last)) if last.idle > 0 && last.cpus == times.cpus => {
                (now_ns - then_ns) * times.cpus as i64 - (ns(times.unused()) - ns(last.unused()))
            }
            // Nothing says how long a CPU that came or went was online. Some sandboxes have no idle
            // time.
            Some((_, last)) => (ns(times.busy) - ns(last.busy)).max(0),
        };
        self.last = Some((now_ns, *times));
        // Idle time is rounded to ticks, and some kernels correct it afterwards.
        self.largest_ns = self.largest_ns.max(self.busy_ns);
        self.largest_ns as u64
    }
}

/// Holds the lines of the CPUs in `/proc/stat`.
pub const STAT_BYTES: usize = 64 << 10;

/// Reads the busy time of the host for a meter that needs no other value of `/proc/stat`.
pub struct BusyReader {
    stat: TreeFile,
    busy_time: BusyTime,
    buffer: Vec<u8>,
}

impl BusyReader {
    pub fn open(tree: &Tree) -> Result<BusyReader, Absent> {
        let stat = tree.open("proc/stat");
        let stat = stat.map_err(|error| Absent::because(format!("/proc/stat: {error}")))?;
        Ok(BusyReader { stat, busy_time: BusyTime::new(tree), buffer: vec![0; STAT_BYTES] })
    }

    /// Returns the busy time since boot in µs.
    pub fn read_us(&mut self) -> Option<f64> {
        let times = CpuTimes::parse(self.stat.read(&mut self.buffer).ok()?)?;
        Some(self.busy_time.advance(&times) as f64 / 1000.0)
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
        let expected =
            CpuTimes { busy: 160, steal: 8, softirq: 6, irq: 4, iowait: 50, idle: 1000, cpus: 1 };
        assert_eq!(times, expected);
        assert_eq!(times.unused(), 1050 + 8);
    }

    #[test]
    fn at_least_four_numeric_times_are_required() {
        let times = CpuTimes::parse(b"cpu 1 2 3 4").unwrap();
        assert_eq!((times.busy, times.unused(), times.cpus), (6, 4, 0));
        assert_eq!(CpuTimes::parse(b"cpu 1 2"), None);
        assert_eq!(CpuTimes::parse(b"cpu 1 2 x 4"), None);
        assert_eq!(CpuTimes::parse(b"intr 1 2 3 4 5"), None);
    }

    fn advanced(times_of_stat: &[(i64, &str)]) -> Vec<u64> {
        let mut busy_time = BusyTime::new(&Tree::Live);
        busy_time.tick_ns = 10_000_000;
        let advance = |(now_ms, stat): &(i64, &str)| {
            let times = CpuTimes::parse(stat.as_bytes()).unwrap();
            busy_time.advance_at(now_ms * 1_000_000, &times) / 1_000_000
        };
        times_of_stat.iter().map(advance).collect()
    }

    #[test]
    fn work_that_no_tick_found_is_busy_time() {
        // In 1 s, two CPUs were idle for 1.1 s, waited for 0.1 s and were stolen for 0.2 s.
        let busy_ms = advanced(&[
            (5000, "cpu 10 0 5 900 10 0 0 0\ncpu0 5\ncpu1 5\nintr 1"),
            (6000, "cpu 11 0 5 1010 20 0 0 20\ncpu0 5\ncpu1 6\nintr 2"),
        ]);
        assert_eq!(busy_ms, [150, 150 + 600]);
    }

    #[test]
    fn ticks_that_repeat_the_work_of_a_program_add_no_busy_time() {
        let busy_ms =
            advanced(&[(5000, "cpu 10 0 0 900\ncpu0 10\n"), (6000, "cpu 110 0 0 986\ncpu0 110\n")]);
        assert_eq!(busy_ms, [100, 240]);
    }

    #[test]
    fn busy_time_never_decreases_and_loses_nothing_to_a_correction() {
        let busy_ms = advanced(&[
            (0, "cpu 10 0 0 900\ncpu0 10\n"),
            (1000, "cpu 10 0 0 1002\ncpu0 10\n"),
            (2000, "cpu 10 0 0 1090\ncpu0 10\n"),
        ]);
        assert_eq!(busy_ms, [100, 100, 200]);
    }

    #[test]
    fn a_host_without_idle_time_is_not_busy_all_the_time() {
        let stat = "cpu 0 0 0 0\ncpu0 0\n";
        assert_eq!(advanced(&[(0, stat), (1000, stat)]), [0, 0]);
    }

    #[test]
    fn a_cpu_that_comes_online_adds_only_its_ticks_until_the_next_reading() {
        let busy_ms = advanced(&[
            (0, "cpu 10 0 0 900\ncpu0 10\n"),
            (1000, "cpu 30 0 0 950\ncpu0 20\ncpu1 10\n"),
            (2000, "cpu 30 0 0 1100\ncpu0 20\ncpu1 10\n"),
        ]);
        assert_eq!(busy_ms, [100, 300, 300 + 500]);
    }
}
