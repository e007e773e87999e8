//! SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): a stream of numbers that depends on its seed
//! alone, on every machine.

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

pub struct Random {
    state: u64,
}

impl Random {
    /// Return the stream of a port and a direction. Equal arguments give equal streams.
    pub fn of(seed: u64, port: usize, direction: u64) -> Random {
        let mut random = Random { state: seed };
        random.state = random.next() ^ (port as u64).wrapping_mul(GOLDEN);
        random.state = random.next() ^ direction;
        Random { state: random.next() }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Return a number of [0, 1) with 53 bits.
    pub fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_that_of_the_published_generator() {
        // The first outputs for the seed 1234567 in the authors' reference implementation.
        let mut random = Random { state: 1_234_567 };
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn streams_of_ports_and_directions_differ_and_repeat() {
        let first = |seed, port, direction| Random::of(seed, port, direction).share();
        assert_eq!(first(1, 0, 0), first(1, 0, 0));
        let streams = [first(1, 0, 0), first(1, 0, 1), first(1, 1, 0), first(2, 0, 0)];
        for (at, number) in streams.iter().enumerate() {
            assert!(!streams[..at].contains(number));
        }
    }
}
