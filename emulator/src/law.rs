//! The law of one direction of one port: when a frame leaves, or why it is dropped. It is a pure
//! function of the profile, the seed and the frames before: it reads no clock.
//!
//! A frame passes these steps: finite queue, transmission at the rate or by the trace, loss, delay
//! with jitter. A frame that is lost has used its transmission time, as on air.

use std::collections::VecDeque;

use crate::profile::{Direction, Segment, Shape};
use crate::random::Random;
use crate::trace::Trace;

const NS_PER_S: u64 = 1_000_000_000;
const BITS_PER_BYTE: u64 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    QueueFull,
    /// Lost by chance: Bernoulli, or in the good state of the burst model.
    Random,
    /// Lost in the bad state of the burst model.
    Burst,
}

/// What transmits one frame after another: a direction's own wire, or the air that all share.
#[derive(Default)]
pub struct Medium {
    busy_until_ns: u64,
}

struct Waiting {
    finished_ns: u64,
    bytes: u64,
}

pub struct Law {
    segments: Vec<Segment>,
    current: usize,
    /// Beginning of the window, to which the segments' times refer.
    start_ns: Option<u64>,
    trace: Option<Trace>,
    random: Random,
    is_bad: bool,
    /// Frames whose transmission has not ended.
    queue: VecDeque<Waiting>,
    queued_bytes: u64,
    last_at_ns: u64,
    last_out_ns: u64,
}

impl Law {
    pub fn new(direction: &Direction, mut random: Random) -> Law {
        let first = &direction.segments[0];
        // The chain begins in its stationary distribution, so that no frame is special.
        let share = random.share();
        let is_bad =
            first.bursts.is_some_and(|chain| share * (chain.enter + chain.leave) < chain.enter);
        Law {
            segments: direction.segments.clone(),
            current: 0,
            start_ns: None,
            trace: Trace::new(&direction.trace_ms),
            random,
            is_bad,
            queue: VecDeque::new(),
            queued_bytes: 0,
            last_at_ns: 0,
            last_out_ns: 0,
        }
    }

    /// Begin the window, at which the changes' times and the trace begin.
    pub fn start(&mut self, start_ns: u64) {
        (self.start_ns, self.current) = (Some(start_ns), 0);
        if let Some(trace) = &mut self.trace {
            trace.restart(start_ns);
        }
    }

    /// Return when a frame that arrives now leaves, in ns, or why it is dropped.
    pub fn pass(&mut self, at_ns: u64, size: u64, medium: &mut Medium) -> Result<u64, Cause> {
        let at_ns = at_ns.max(self.last_at_ns);
        self.last_at_ns = at_ns;
        self.advance(at_ns);
        // Each frame uses three numbers and one step of the chain, also a frame that the queue
        // drops, so that a change of one parameter moves no other draw.
        let (step, chance, spread) =
            (self.random.share(), self.random.share(), self.random.share());
        let lost = self.loss(step, chance);
        let transmitted_ns = self.transmit(at_ns, size, medium)?;
        if let Some(cause) = lost {
            return Err(cause);
        }
        let segment = &self.segments[self.current];
        let out_ns = transmitted_ns + delay_ns(segment, spread);
        if segment.reorders {
            return Ok(out_ns);
        }
        self.last_out_ns = self.last_out_ns.max(out_ns);
        Ok(self.last_out_ns)
    }

    fn advance(&mut self, at_ns: u64) {
        let Some(start_ns) = self.start_ns else { return };
        let elapsed_ns = at_ns.saturating_sub(start_ns);
        while self.segments.get(self.current + 1).is_some_and(|next| next.at_ns <= elapsed_ns) {
            self.current += 1;
        }
    }

    fn transmit(&mut self, at_ns: u64, size: u64, medium: &mut Medium) -> Result<u64, Cause> {
        let segment = &self.segments[self.current];
        if segment.rate_bit_s.is_none() && self.trace.is_none() {
            return Ok(at_ns);
        }
        while self.queue.front().is_some_and(|frame| frame.finished_ns <= at_ns) {
            self.queued_bytes -= self.queue.pop_front().map_or(0, |frame| frame.bytes);
        }
        if self.queued_bytes + size > segment.queue_bytes {
            return Err(Cause::QueueFull);
        }
        let begin_ns = at_ns.max(medium.busy_until_ns);
        let bytes = size.saturating_add_signed(segment.overhead_bytes).max(1);
        let finished_ns = match (&mut self.trace, segment.rate_bit_s) {
            (Some(trace), _) => trace.carry(begin_ns, bytes),
            (None, rate) => begin_ns + transmission_ns(bytes, rate.unwrap_or(u64::MAX)),
        };
        medium.busy_until_ns = finished_ns;
        self.queue.push_back(Waiting { finished_ns, bytes: size });
        self.queued_bytes += size;
        Ok(finished_ns)
    }

    fn loss(&mut self, step: f64, chance: f64) -> Option<Cause> {
        let segment = &self.segments[self.current];
        let Some(chain) = segment.bursts else {
            return (chance < segment.loss).then_some(Cause::Random);
        };
        let was_bad = self.is_bad;
        self.is_bad = if was_bad { step >= chain.leave } else { step < chain.enter };
        if was_bad {
            (chance < chain.loss_bad).then_some(Cause::Burst)
        } else {
            (chance < chain.loss_good).then_some(Cause::Random)
        }
    }
}

fn transmission_ns(bytes: u64, rate_bit_s: u64) -> u64 {
    (bytes * BITS_PER_BYTE * NS_PER_S + rate_bit_s / 2) / rate_bit_s
}

fn delay_ns(segment: &Segment, share: f64) -> u64 {
    if segment.jitter_ns == 0 {
        return segment.delay_ns;
    }
    let jitter = segment.jitter_ns as f64;
    let spread = match segment.jitter_shape {
        Shape::Uniform => (2.0 * share - 1.0) * jitter,
        Shape::Exponential => -(1.0 - share).ln() * jitter,
    };
    segment.delay_ns.saturating_add_signed(spread.round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::examples::{direction, plain};
    use crate::profile::Bursts;

    const MS: u64 = 1_000_000;

    fn law(segment: Segment) -> Law {
        Law::new(&direction(segment), Random::of(1, 0, 0))
    }

    fn outs(law: &mut Law, gap_ns: u64, count: u64, size: u64) -> Vec<Result<u64, Cause>> {
        let mut medium = Medium::default();
        (0..count).map(|at| law.pass(at * gap_ns, size, &mut medium)).collect()
    }

    #[test]
    fn a_delay_moves_every_frame_by_the_same_time() {
        let mut law = law(Segment { delay_ns: 20 * MS, ..plain() });
        let out = outs(&mut law, 100, 3, 1514);
        assert_eq!(out, [Ok(20 * MS), Ok(20 * MS + 100), Ok(20 * MS + 200)]);
    }

    #[test]
    fn a_rate_spaces_frames_and_counts_the_overhead() {
        let rate = Some(100_000_000);
        let segment =
            Segment { rate_bit_s: rate, queue_bytes: 10_000, overhead_bytes: 24, ..plain() };
        let out = outs(&mut law(segment), 0, 3, 1226);
        assert_eq!(out, [Ok(100_000), Ok(200_000), Ok(300_000)]);
    }

    #[test]
    fn another_length_of_the_queue_changes_the_fate_of_no_other_frame() {
        let bursts = Some(Bursts { enter: 0.2, leave: 0.4, loss_bad: 0.9, loss_good: 0.1 });
        let segment = Segment { jitter_ns: 5 * MS, bursts, reorders: true, ..plain() };
        let limited = |queue_bytes| Segment {
            rate_bit_s: Some(8_000_000), // 1 byte per µs
            queue_bytes,
            ..segment.clone()
        };
        let [long, short] =
            [1 << 40, 3000].map(|bytes| outs(&mut law(limited(bytes)), MS, 200, 1500));
        let dropped = |out: &&Result<u64, Cause>| **out == Err(Cause::QueueFull);
        assert!(short.iter().filter(dropped).count() > 50);
        for (place, (long, short)) in long.iter().zip(&short).enumerate() {
            if *short != Err(Cause::QueueFull) {
                assert_eq!(long.err(), short.err(), "frame {place}");
            }
        }
        let free = outs(&mut law(segment), MS, 200, 1500);
        let losses =
            |outs: &[Result<u64, Cause>]| outs.iter().map(|out| out.err()).collect::<Vec<_>>();
        assert_eq!(losses(&long), losses(&free));
    }

    #[test]
    fn a_frame_that_the_queue_cannot_hold_is_dropped_and_later_ones_pass() {
        let rate = Some(8_000_000); // 1 byte per µs
        let mut law = law(Segment { rate_bit_s: rate, queue_bytes: 3000, ..plain() });
        let mut medium = Medium::default();
        let mut pass = |at, size| law.pass(at, size, &mut medium);
        assert_eq!(pass(0, 1500), Ok(1_500_000));
        assert_eq!(pass(0, 1500), Ok(3_000_000));
        assert_eq!(pass(0, 60), Err(Cause::QueueFull));
        assert_eq!(pass(1_499_999, 60), Err(Cause::QueueFull));
        assert_eq!(pass(1_500_000, 1500), Ok(4_500_000));
    }

    #[test]
    fn a_lost_frame_has_used_its_transmission_time() {
        let rate = Some(8_000_000);
        let mut law = law(Segment { loss: 1.0, rate_bit_s: rate, queue_bytes: 9000, ..plain() });
        let mut medium = Medium::default();
        assert_eq!(law.pass(0, 1000, &mut medium), Err(Cause::Random));
        assert_eq!(medium.busy_until_ns, MS);
    }

    #[test]
    fn two_laws_on_one_medium_wait_for_each_other() {
        let rate = Some(8_000_000);
        let segment = Segment { rate_bit_s: rate, queue_bytes: 9000, ..plain() };
        let (mut up, mut down) = (law(segment.clone()), law(segment));
        let mut air = Medium::default();
        assert_eq!(up.pass(0, 1000, &mut air), Ok(MS));
        assert_eq!(down.pass(0, 1000, &mut air), Ok(2 * MS));
        assert_eq!(up.pass(0, 1000, &mut air), Ok(3 * MS));
    }

    #[test]
    fn jitter_in_order_keeps_the_order_and_jitter_with_reordering_does_not() {
        for shape in [Shape::Uniform, Shape::Exponential] {
            let segment =
                Segment { delay_ns: 5 * MS, jitter_ns: 4 * MS, jitter_shape: shape, ..plain() };
            let overtakes = |segment| {
                let out = outs(&mut law(segment), 1000, 5000, 64);
                out.windows(2).any(|pair| pair[0].unwrap() > pair[1].unwrap())
            };
            assert!(!overtakes(segment.clone()));
            assert!(overtakes(Segment { reorders: true, ..segment }));
        }
    }

    #[test]
    fn jitter_has_the_mean_and_the_limits_of_its_shape() {
        let cases = [(Shape::Uniform, 5.0, 1.0, 9.0), (Shape::Exponential, 9.0, 5.0, 200.0)];
        for (shape, mean, low, high) in cases {
            let segment =
                Segment { delay_ns: 5 * MS, jitter_ns: 4 * MS, jitter_shape: shape, ..plain() };
            let out = outs(&mut law(segment), 1000 * MS, 100_000, 64);
            let delays = out.iter().enumerate();
            let delays: Vec<f64> = delays
                .map(|(at, out)| (out.unwrap() - at as u64 * 1000 * MS) as f64 / MS as f64)
                .collect();
            let measured = delays.iter().sum::<f64>() / delays.len() as f64;
            assert!((measured - mean).abs() < 0.08, "{measured} instead of {mean}");
            assert!(delays.iter().all(|&delay| (low..=high).contains(&delay)));
        }
    }

    #[test]
    fn losses_have_their_share_and_bursts_their_length() {
        let lost = |segment| -> Vec<bool> {
            outs(&mut law(segment), 10, 400_000, 64).iter().map(Result::is_err).collect()
        };
        let share = |lost: &[bool]| lost.iter().filter(|&&l| l).count() as f64 / lost.len() as f64;
        let single = lost(Segment { loss: 0.05, ..plain() });
        assert!((share(&single) - 0.05).abs() < 0.002, "{}", share(&single));
        let chain = Bursts { enter: 0.01, leave: 0.25, loss_good: 0.0, loss_bad: 1.0 };
        let burst = lost(Segment { bursts: Some(chain), ..plain() });
        assert!((share(&burst) - 0.01 / 0.26).abs() < 0.003, "{}", share(&burst));
        let bursts = burst.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        let length = share(&burst) * burst.len() as f64 / bursts as f64;
        assert!((length - 4.0).abs() < 0.3, "{length}");
    }

    #[test]
    fn parameters_change_at_their_times_after_the_start_of_the_window() {
        let slow = Segment { at_ns: 2 * MS, delay_ns: 9 * MS, ..plain() };
        let direction = Direction { segments: vec![plain(), slow], trace_ms: vec![] };
        let mut law = Law::new(&direction, Random::of(1, 0, 0));
        let mut medium = Medium::default();
        assert_eq!(law.pass(100 * MS, 64, &mut medium), Ok(100 * MS)); // before the window
        law.start(200 * MS);
        assert_eq!(law.pass(202 * MS - 1, 64, &mut medium), Ok(202 * MS - 1));
        assert_eq!(law.pass(202 * MS, 64, &mut medium), Ok(211 * MS));
    }

    #[test]
    fn a_trace_delivers_at_its_times_plus_the_delay() {
        let segment = Segment { delay_ns: MS, queue_bytes: 9000, ..plain() };
        let direction = Direction { segments: vec![segment], trace_ms: vec![3, 8] };
        let mut law = Law::new(&direction, Random::of(1, 0, 0));
        let out = outs(&mut law, 0, 3, 1500);
        assert_eq!(out, [Ok(4 * MS), Ok(9 * MS), Ok(12 * MS)]);
    }

    #[test]
    fn the_same_seed_gives_the_same_fate_of_every_frame() {
        let segment = Segment { loss: 0.3, delay_ns: MS, jitter_ns: MS, ..plain() };
        let run = |seed| {
            let mut law = Law::new(&direction(segment.clone()), Random::of(seed, 0, 0));
            outs(&mut law, 10, 1000, 64)
        };
        assert_eq!(run(5), run(5));
        assert_ne!(run(5), run(6));
    }
}
