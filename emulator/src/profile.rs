//! The profile of a link as JSON. wattwire validates `link.toml` and writes this document; the
//! types here reject only what the law could not compute with.

use std::path::PathBuf;

use serde::Deserialize;

pub const PORTS_MAX: usize = 64;
const RATE_BIT_S_MAX: u64 = 1_000_000_000_000;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub seed: u64,
    /// One medium for all ports and both directions, instead of one per port and direction.
    pub half_duplex: bool,
    pub up: Direction,
    pub down: Direction,
    pub ports: Vec<Port>,
    /// The file that keeps the frames from the hosts, as pcap; only on the wire.
    #[serde(default)]
    pub capture: Option<PathBuf>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Direction {
    /// In increasing order of `at_ns`; the first begins at 0.
    pub segments: Vec<Segment>,
    /// Delivery opportunities in ms, or none if the segments have a rate.
    #[serde(default)]
    pub trace_ms: Vec<u64>,
}

/// The parameters from a time of the window until the next segment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    pub at_ns: u64,
    pub delay_ns: u64,
    pub jitter_ns: u64,
    pub jitter_shape: Shape,
    pub reorders: bool,
    pub loss: f64,
    pub bursts: Option<Bursts>,
    /// Absent for an unlimited rate, or with a trace.
    pub rate_bit_s: Option<u64>,
    pub queue_bytes: u64,
    pub overhead_bytes: i64,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    Uniform,
    Exponential,
}

/// The Gilbert–Elliott model: probabilities per frame.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bursts {
    pub enter: f64,
    pub leave: f64,
    pub loss_good: f64,
    pub loss_bad: f64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Port {
    pub name: String,
    /// Frames of a near port pass the link; a far port is connected to the switch directly.
    pub near: bool,
    /// A process in the network namespace of this host, with the TAP device to create there.
    #[serde(default)]
    pub tap: Option<Tap>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tap {
    pub pid: i32,
    pub device: String,
    pub address: std::net::Ipv4Addr,
    pub prefix_bits: u8,
    pub mtu_bytes: u32,
}

impl Profile {
    pub fn parse(text: &str) -> Result<Profile, String> {
        let profile: Profile = serde_json::from_str(text).map_err(|error| error.to_string())?;
        for (name, direction) in [("up", &profile.up), ("down", &profile.down)] {
            direction.check().map_err(|error| format!("{name}: {error}"))?;
        }
        if profile.ports.len() < 2 || profile.ports.len() > PORTS_MAX {
            let count = profile.ports.len();
            return Err(format!("ports: found {count}; allowed: 2 to {PORTS_MAX}"));
        }
        Ok(profile)
    }
}

impl Direction {
    fn check(&self) -> Result<(), String> {
        if self.segments.first().map(|segment| segment.at_ns) != Some(0) {
            return Err("segments: the first one begins at 0".into());
        }
        if !self.segments.windows(2).all(|pair| pair[0].at_ns < pair[1].at_ns) {
            return Err("segments: their times increase".into());
        }
        for segment in &self.segments {
            if segment.rate_bit_s.is_some_and(|rate| rate == 0 || rate > RATE_BIT_S_MAX) {
                return Err(format!("rate_bit_s: allowed: 1 to {RATE_BIT_S_MAX}"));
            }
        }
        let rises = self.trace_ms.windows(2).all(|pair| pair[0] <= pair[1]);
        if !self.trace_ms.is_empty() && (!rises || self.trace_ms.last() == Some(&0)) {
            return Err("trace_ms: the times rise, and the last one is above 0".into());
        }
        Ok(())
    }
}

#[cfg(test)]
pub mod examples {
    use super::*;

    /// A direction without delay, loss or limit.
    pub fn plain() -> Segment {
        Segment {
            at_ns: 0,
            delay_ns: 0,
            jitter_ns: 0,
            jitter_shape: Shape::Uniform,
            reorders: false,
            loss: 0.0,
            bursts: None,
            rate_bit_s: None,
            queue_bytes: 0,
            overhead_bytes: 0,
        }
    }

    pub fn direction(segment: Segment) -> Direction {
        Direction { segments: vec![segment], trace_ms: vec![] }
    }

    /// A profile with equal directions, and ports that are near where `near` is true.
    pub fn profile(segment: Segment, near: &[bool]) -> Profile {
        let ports = near.iter().enumerate();
        let ports = ports.map(|(at, &near)| Port { name: format!("host{at}"), near, tap: None });
        Profile {
            seed: 7,
            half_duplex: false,
            up: direction(segment.clone()),
            down: direction(segment),
            ports: ports.collect(),
            capture: None,
        }
    }

    #[test]
    fn a_profile_with_an_unknown_key_is_rejected() {
        let error = Profile::parse(r#"{"seed": 1, "colour": 2}"#).unwrap_err();
        assert!(error.contains("colour"), "{error}");
    }

    #[test]
    fn a_direction_with_falling_times_or_a_rate_of_zero_is_rejected() {
        let mut falling = direction(plain());
        falling.trace_ms = vec![3, 2];
        assert!(falling.check().unwrap_err().contains("trace_ms"));
        let stopped = direction(Segment { rate_bit_s: Some(0), ..plain() });
        assert!(stopped.check().unwrap_err().contains("rate_bit_s"));
        let mut late = direction(plain());
        late.segments[0].at_ns = 1;
        assert!(late.check().unwrap_err().contains("begins at 0"));
    }
}
