//! A delivery trace in Mahimahi's format: at each time, the link can carry up to 1,500 bytes. A
//! large frame uses several opportunities and small ones share one; what no frame uses is lost.
//! After the last time, the trace repeats.

pub const OPPORTUNITY_BYTES: u64 = 1500;
const NS_PER_MS: u64 = 1_000_000;

pub struct Trace {
    times_ns: Vec<u64>,
    origin_ns: u64,
    /// The opportunity in use, counted over all repetitions, with its unused bytes.
    current: u64,
    left_bytes: u64,
}

impl Trace {
    pub fn new(times_ms: &[u64]) -> Option<Trace> {
        let times_ns: Vec<u64> = times_ms.iter().map(|time| time * NS_PER_MS).collect();
        let is_usable = times_ns.last().is_some_and(|&period| period > 0);
        is_usable.then_some(Trace {
            times_ns,
            origin_ns: 0,
            current: 0,
            left_bytes: OPPORTUNITY_BYTES,
        })
    }

    /// Begin the trace anew at a time.
    pub fn restart(&mut self, origin_ns: u64) {
        (self.origin_ns, self.current, self.left_bytes) = (origin_ns, 0, OPPORTUNITY_BYTES);
    }

    fn time_ns(&self, opportunity: u64) -> u64 {
        let count = self.times_ns.len() as u64;
        let period_ns = self.times_ns[self.times_ns.len() - 1];
        let within = self.times_ns[(opportunity % count) as usize];
        self.origin_ns + opportunity / count * period_ns + within
    }

    /// Return the first opportunity at or after a time.
    fn first_from(&self, at_ns: u64) -> u64 {
        let count = self.times_ns.len() as u64;
        let period_ns = self.times_ns[self.times_ns.len() - 1];
        let elapsed_ns = at_ns.saturating_sub(self.origin_ns);
        // A repetition begins with the time 0, which is the last time of the one before.
        let cycle = (elapsed_ns / period_ns).saturating_sub(1);
        let within_ns = elapsed_ns - cycle * period_ns;
        let position = self.times_ns.partition_point(|&time| time < within_ns);
        let first = cycle * count + position as u64;
        if position < self.times_ns.len() {
            return first;
        }
        let within_ns = within_ns - period_ns;
        first + self.times_ns.partition_point(|&time| time < within_ns) as u64
    }

    /// Carry a frame that is at the head of the queue from `at_ns`; return when its last byte
    /// has left.
    pub fn carry(&mut self, at_ns: u64, bytes: u64) -> u64 {
        let mut needed = bytes;
        if self.time_ns(self.current) < at_ns {
            (self.current, self.left_bytes) = (self.first_from(at_ns), OPPORTUNITY_BYTES);
        }
        loop {
            let taken = needed.min(self.left_bytes);
            self.left_bytes -= taken;
            needed -= taken;
            let finished_ns = self.time_ns(self.current);
            if self.left_bytes == 0 {
                (self.current, self.left_bytes) = (self.current + 1, OPPORTUNITY_BYTES);
            }
            if needed == 0 {
                return finished_ns;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(times_ms: &[u64]) -> Trace {
        Trace::new(times_ms).unwrap()
    }

    #[test]
    fn each_full_frame_leaves_at_the_next_opportunity() {
        let mut trace = trace(&[2, 5, 5, 9]);
        let out: Vec<u64> = (0..6).map(|_| trace.carry(0, 1500) / NS_PER_MS).collect();
        assert_eq!(out, [2, 5, 5, 9, 11, 14]);
    }

    #[test]
    fn small_frames_share_an_opportunity_and_a_large_one_uses_several() {
        let mut trace = trace(&[1, 2, 3, 4]);
        let out: Vec<u64> =
            [700, 700, 700, 3000].iter().map(|&size| trace.carry(0, size) / NS_PER_MS).collect();
        assert_eq!(out, [1, 1, 2, 4]);
    }

    #[test]
    fn an_unused_opportunity_is_lost() {
        let mut trace = trace(&[1, 2, 30]);
        assert_eq!(trace.carry(0, 100), NS_PER_MS);
        assert_eq!(trace.carry(1_500_000, 100), 2 * NS_PER_MS);
        assert_eq!(trace.carry(3_000_000, 1500), 30 * NS_PER_MS);
    }

    #[test]
    fn a_repetition_is_found_after_a_long_pause() {
        let mut trace = trace(&[0, 4, 10]);
        let far_ns = 1_000_000 * 10 * NS_PER_MS;
        assert_eq!(trace.carry(far_ns + 3 * NS_PER_MS, 1), far_ns + 4 * NS_PER_MS);
        trace.restart(far_ns + 7 * NS_PER_MS);
        assert_eq!(trace.carry(far_ns + 8 * NS_PER_MS, 1), far_ns + 11 * NS_PER_MS);
        assert_eq!(trace.carry(far_ns + 17 * NS_PER_MS, 1), far_ns + 17 * NS_PER_MS);
        assert_eq!(trace.carry(far_ns + 17 * NS_PER_MS, 1500), far_ns + 17 * NS_PER_MS);
    }
}
