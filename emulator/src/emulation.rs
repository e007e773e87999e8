//! The link as a whole: ports with their laws, media, and the frames that are under way. It takes
//! its times as arguments, so the same code serves the wire and logical time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::law::{Law, Medium};
use crate::log::{Fate, Record, NO_PORT};
use crate::profile::Profile;
use crate::random::Random;

const UP: u64 = 0;
const DOWN: u64 = 1;

struct Port {
    is_near: bool,
    up: Law,
    down: Law,
    up_medium: usize,
    down_medium: usize,
}

/// What the log says of a frame when it arrives.
#[derive(Clone, Copy)]
pub struct Arrival {
    pub in_ns: u64,
    pub size_bytes: u32,
    pub mark: u64,
    pub from: usize,
}

/// A frame that is due at its receiver.
pub struct Delivery<F> {
    pub planned_ns: u64,
    pub to: usize,
    pub arrival: Arrival,
    pub frame: F,
}

struct UnderWay<F> {
    delivery: Delivery<F>,
    /// Whether the frame still has to pass the receiver's direction "down".
    is_before_down: bool,
    number: u64,
}

pub struct Emulation<F> {
    ports: Vec<Port>,
    media: Vec<Medium>,
    under_way: BinaryHeap<UnderWay<F>>,
    numbers: u64,
}

impl<F: Clone> Emulation<F> {
    pub fn new(profile: &Profile) -> Emulation<F> {
        let law = |direction, port, code| Law::new(direction, Random::of(profile.seed, port, code));
        let medium = |port: usize, code: u64| {
            if profile.half_duplex {
                0
            } else {
                2 * port + code as usize
            }
        };
        let ports = profile.ports.iter().enumerate().map(|(at, port)| Port {
            is_near: port.near,
            up: law(&profile.up, at, UP),
            down: law(&profile.down, at, DOWN),
            up_medium: medium(at, UP),
            down_medium: medium(at, DOWN),
        });
        Emulation {
            ports: ports.collect(),
            media: (0..2 * profile.ports.len()).map(|_| Medium::default()).collect(),
            under_way: BinaryHeap::new(),
            numbers: 0,
        }
    }

    /// Begin the window in all laws.
    pub fn start(&mut self, start_ns: u64) {
        for port in &mut self.ports {
            port.up.start(start_ns);
            port.down.start(start_ns);
        }
    }

    /// Take a frame for a set of receivers; call `drop` for each that will not get it.
    pub fn arrive(
        &mut self,
        arrival: Arrival,
        receivers: u64,
        frame: F,
        drop: &mut impl FnMut(Record),
    ) {
        let port = &mut self.ports[arrival.from];
        let mut at_ns = arrival.in_ns;
        if port.is_near {
            let medium = &mut self.media[port.up_medium];
            match port.up.pass(at_ns, u64::from(arrival.size_bytes), medium) {
                Ok(out_ns) => at_ns = out_ns,
                Err(cause) => {
                    let is_single = receivers.count_ones() == 1;
                    let to = if is_single { receivers.trailing_zeros() as u8 } else { NO_PORT };
                    return drop(dropped(arrival, to, cause.into()));
                }
            }
        }
        let mut remaining = receivers;
        while remaining != 0 {
            let to = remaining.trailing_zeros() as usize;
            remaining &= remaining - 1;
            let delivery = Delivery { planned_ns: at_ns, to, arrival, frame: frame.clone() };
            let is_before_down = self.ports[to].is_near;
            if is_before_down && at_ns <= arrival.in_ns {
                self.pass_down(delivery, drop);
            } else {
                self.push(delivery, is_before_down);
            }
        }
    }

    fn pass_down(&mut self, mut delivery: Delivery<F>, drop: &mut impl FnMut(Record)) {
        let port = &mut self.ports[delivery.to];
        let size = u64::from(delivery.arrival.size_bytes);
        match port.down.pass(delivery.planned_ns, size, &mut self.media[port.down_medium]) {
            Ok(out_ns) => {
                delivery.planned_ns = out_ns;
                self.push(delivery, false);
            }
            Err(cause) => drop(dropped(delivery.arrival, delivery.to as u8, cause.into())),
        }
    }

    fn push(&mut self, delivery: Delivery<F>, is_before_down: bool) {
        self.numbers += 1;
        self.under_way.push(UnderWay { delivery, is_before_down, number: self.numbers });
    }

    /// Return the next frame that is due until `now_ns`, or None.
    pub fn due(&mut self, now_ns: u64, drop: &mut impl FnMut(Record)) -> Option<Delivery<F>> {
        while self.next_ns()? <= now_ns {
            let next = self.under_way.pop()?;
            if !next.is_before_down {
                return Some(next.delivery);
            }
            self.pass_down(next.delivery, drop);
        }
        None
    }

    /// Return the time of the next step of a frame, if one is under way.
    pub fn next_ns(&self) -> Option<u64> {
        self.under_way.peek().map(|next| next.delivery.planned_ns)
    }
}

fn dropped(arrival: Arrival, to: u8, fate: Fate) -> Record {
    record(arrival, to, fate, 0, 0)
}

/// Return the record of a frame.
pub fn record(arrival: Arrival, to: u8, fate: Fate, planned_ns: u64, out_ns: u64) -> Record {
    Record {
        in_ns: arrival.in_ns,
        planned_ns,
        out_ns,
        mark: arrival.mark,
        size_bytes: arrival.size_bytes,
        from: arrival.from as u8,
        to,
        fate,
    }
}

// The heap returns its greatest entry: the earliest frame, and of several the one that came first.
impl<F> Ord for UnderWay<F> {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |frame: &Self| (frame.delivery.planned_ns, frame.number);
        key(other).cmp(&key(self))
    }
}

impl<F> PartialOrd for UnderWay<F> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<F> PartialEq for UnderWay<F> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<F> Eq for UnderWay<F> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::examples::{plain, profile};
    use crate::profile::Segment;

    const MS: u64 = 1_000_000;

    fn slow() -> Segment {
        Segment { delay_ns: 10 * MS, ..plain() }
    }

    /// Send one frame of 1,000 bytes from port 0 to a set of ports; return (receiver, time).
    fn sent(profile: &Profile, receivers: u64) -> (Vec<(usize, u64)>, Vec<Record>) {
        let mut emulation = Emulation::new(profile);
        let mut drops = vec![];
        let arrival = Arrival { in_ns: 0, size_bytes: 1000, mark: 0, from: 0 };
        emulation.arrive(arrival, receivers, (), &mut |record| drops.push(record));
        let mut out = vec![];
        while let Some(frame) = emulation.due(u64::MAX, &mut |record| drops.push(record)) {
            out.push((frame.to, frame.planned_ns));
        }
        (out, drops)
    }

    #[test]
    fn a_frame_passes_the_link_once_for_each_near_end() {
        assert_eq!(sent(&profile(slow(), &[true, false]), 2).0, [(1, 10 * MS)]);
        assert_eq!(sent(&profile(slow(), &[false, true]), 2).0, [(1, 10 * MS)]);
        assert_eq!(sent(&profile(slow(), &[true, true]), 2).0, [(1, 20 * MS)]);
        assert_eq!(sent(&profile(slow(), &[false, false]), 2).0, [(1, 0)]);
    }

    #[test]
    fn a_group_crosses_up_once_and_down_for_each_receiver() {
        let (out, _) = sent(&profile(slow(), &[true, false, true]), 0b110);
        assert_eq!(out, [(1, 10 * MS), (2, 20 * MS)]);
    }

    #[test]
    fn stations_share_the_air_of_a_half_duplex_link() {
        let segment = Segment { rate_bit_s: Some(8_000_000), queue_bytes: 9000, ..plain() };
        let mut shared = profile(segment, &[true, true, false]);
        shared.half_duplex = true;
        // Port 0 to 1 uses the air twice, and a frame to port 2 once.
        assert_eq!(sent(&shared, 0b110).0, [(2, MS), (1, 2 * MS)]);
        let mut emulation = Emulation::new(&shared);
        let mut arrival = Arrival { in_ns: 0, size_bytes: 1000, mark: 0, from: 0 };
        emulation.arrive(arrival, 0b100, (), &mut |_| ());
        arrival.from = 1;
        emulation.arrive(arrival, 0b100, (), &mut |_| ());
        let due = std::iter::from_fn(|| emulation.due(u64::MAX, &mut |_| ()));
        let times: Vec<u64> = due.map(|delivery| delivery.planned_ns).collect();
        assert_eq!(times, [MS, 2 * MS]);
    }

    #[test]
    fn a_dropped_frame_names_its_receiver_if_there_is_one() {
        let lossy = profile(Segment { loss: 1.0, ..plain() }, &[true, true, true]);
        let (out, drops) = sent(&lossy, 0b010);
        assert!(out.is_empty());
        assert_eq!((drops[0].to, drops[0].fate), (1, Fate::RandomLoss));
        assert_eq!(sent(&lossy, 0b110).1[0].to, NO_PORT);
    }
}
