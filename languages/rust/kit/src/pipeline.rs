//! The channels of a pipeline, and the arrivals that a relay sends to its successor (C-37).

use crate::clock::now_ns;
use crate::constants::{flag, Kind, UNKNOWN_NS};
use crate::kit::Kit;
use crate::message::Message;
use crate::receiving::Arrival;
use crate::recorder::Record;

/// An arrival that the cell must send to its successor.
#[derive(Debug, Clone, Copy)]
pub struct Relay {
    arrival: Arrival,
    begin_ns: i64,
}

impl Kit {
    /// Returns the name of the topic on which this node sends, without the run token (C-18):
    /// `topic`, or `channel_K` for channel K of a pipeline.
    pub fn sending_topic(&self) -> String {
        self.topic(1)
    }

    /// Returns the name of the topic on which this node receives, like `sending_topic`.
    pub fn receiving_topic(&self) -> String {
        self.topic(0)
    }

    fn topic(&self, hops: i64) -> String {
        match self.string("pattern") {
            "pipeline" => format!("channel_{}", self.integer("hop") + hops),
            _ => "topic".into(),
        }
    }

    /// Checks an arrival; first statement of a relay's callback. Returns None if it is foreign; the
    /// cell must then not send it. Otherwise the next statement must send the arrival unchanged,
    /// even if it is corrupt.
    #[inline]
    pub fn relay<'a>(&self, data: impl Into<Message<'a>>) -> Option<Relay> {
        let at_ns = now_ns();
        let data = data.into();
        let arrival = self.arrive(&mut self.lock(), data, at_ns)?;
        Some(Relay { arrival, begin_ns: now_ns() })
    }

    /// Records that the send call of this arrival has returned `result`.
    #[inline]
    pub fn relayed<T, E>(&self, relay: &Relay, result: Result<T, E>) {
        let returned_ns = now_ns();
        let arrival = &relay.arrival;
        if arrival.is_probe {
            return;
        }
        let mut state = self.lock();
        state.counts.sent += u64::from(result.is_ok());
        if !arrival.counted {
            return;
        }
        let (end_ns, failed) =
            if result.is_ok() { (returned_ns, 0) } else { (UNKNOWN_NS, flag::FAILED) };
        let is_warm_up = state.schedule.is_warm_up(arrival.arrived_ns);
        let warm_up = if is_warm_up { flag::WARM_UP } else { 0 };
        state.recorder.add(Record {
            seq: arrival.seq,
            intended_ns: arrival.arrived_ns,
            begin_ns: relay.begin_ns,
            end_ns,
            bytes: arrival.bytes as u32,
            peer: (arrival.seq >> 48) as u16,
            kind: Kind::Relay as u8,
            flags: arrival.flags | failed | warm_up,
        });
    }
}
