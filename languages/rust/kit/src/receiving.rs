//! Subscribers and servers, and their end (C-15 to C-17, C-21 to C-23).

use crate::clock::{nap, now_ns};
use crate::constants::{flag, Kind, PROBE, UNKNOWN_NS};
use crate::kit::{Kit, State, NAP_NS};
use crate::message::{Answer, Message};
use crate::payload::{Verdict, COUNTER_MASK};

/// A request in hand, with the reply that it gets.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    answer: Answer<'a>,
    seen: Seen,
}

impl Request<'_> {
    /// Hand it over, then tell `Kit::served`.
    pub fn reply(&self) -> Message<'_> {
        self.answer.message()
    }
}

/// An arrival of this run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    /// False for a probe, and where the sequence cannot be read.
    pub counted: bool,
    pub seq: u64,
    pub sent_ns: i64,
    pub arrived_ns: i64,
    pub bytes: usize,
    pub flags: u8,
}

impl Kit {
    /// A subscriber's callback was entered with this payload.
    #[inline]
    pub fn received<'a>(&self, data: impl Into<Message<'a>>) {
        let at_ns = now_ns();
        let data = data.into();
        let mut state = self.lock();
        if let Some(seen) = self.arrive(&mut state, data, at_ns).filter(|seen| seen.counted) {
            let (times, what) = ((seen.sent_ns, at_ns), (Kind::Message, seen.flags));
            self.record_arrived(&mut state, seen.seq, times, seen.bytes, what);
        }
    }

    /// A request in hand; None where it is foreign or unreadable and must not be answered.
    #[inline]
    pub fn serve<'a>(&'a self, data: impl Into<Message<'a>>) -> Option<Request<'a>> {
        let at_ns = now_ns();
        let data = data.into();
        let seen = self.arrive(&mut self.lock(), data, at_ns)?;
        data.is_readable().then(|| Request { answer: self.form.answer(data), seen })
    }

    /// The reply to this request was handed over.
    #[inline]
    pub fn served(&self, request: &Request) {
        self.record_served(&request.seen, request.seen.arrived_ns, Kind::Call);
    }

    /// Drives a receiver's `poll(timeout_ns)` until STOP and then quiet or linger (C-15).
    pub fn poll(&self, mut poll: impl FnMut(i64)) {
        while !self.dialogue.stopped() {
            poll(NAP_NS);
        }
        self.drain(poll);
    }

    /// The same without a timer in each wait: until STOP the timeout is None. A system call that
    /// waits then ends with EINTR, and `poll` must return.
    pub fn poll_untimed(&self, mut poll: impl FnMut(Option<i64>)) {
        self.dialogue.until_stop(|| poll(None));
        self.drain(|timeout_ns| poll(Some(timeout_ns)));
    }

    fn drain(&self, mut poll: impl FnMut(i64)) {
        loop {
            match self.left_ns() {
                left_ns if left_ns > 0 => poll(left_ns.min(NAP_NS)),
                _ => return,
            }
        }
    }

    /// Blocks this thread until the end, while the library's own threads receive.
    pub fn wait(&self) {
        self.dialogue.wait_stop();
        self.poll(nap);
    }

    /// Calls `function` at the end, in a thread of its own.
    pub fn on_end(&'static self, function: impl FnOnce() + Send + 'static) {
        std::thread::spawn(move || {
            self.wait();
            function();
        });
    }

    fn left_ns(&self) -> i64 {
        let stop_ns = self.dialogue.stop_ns();
        let quiet_ns = self.lock().arrival_ns.max(stop_ns) + self.times.quiet_ns;
        quiet_ns.min(stop_ns + self.times.linger_ns) - now_ns()
    }

    #[inline]
    pub(crate) fn record_served(&self, seen: &Seen, begin_ns: i64, kind: Kind) {
        let end_ns = now_ns();
        if seen.counted {
            let (times, what) = ((begin_ns, end_ns), (kind, seen.flags));
            self.record_arrived(&mut self.lock(), seen.seq, times, seen.bytes, what);
        }
    }

    /// None: foreign.
    #[inline]
    pub(crate) fn arrive(&self, state: &mut State, data: Message, arrived_ns: i64) -> Option<Seen> {
        let (sent_ns, bytes) = (UNKNOWN_NS, data.nominal_bytes());
        let probe = Seen { counted: false, seq: 0, sent_ns, arrived_ns, bytes, flags: 0 };
        if !self.carries_seq() && arrived_ns < state.schedule.start_ns() {
            state.counts.probes += 1; // nothing but a probe comes before the start
            return Some(probe);
        }
        let seen = self.form.check(data, &mut state.expected);
        if seen.verdict == Verdict::Foreign {
            state.counts.foreign += 1;
            return None;
        }
        let seq = seen.seq.unwrap_or_default();
        if self.carries_seq() && seen.seq.is_some() && seq & COUNTER_MASK == PROBE {
            state.counts.probes += 1;
            return Some(Seen { seq, ..probe });
        }
        state.arrival_ns = arrived_ns;
        state.counts.corrupt += u64::from(seen.verdict == Verdict::Corrupt);
        state.counts.received += u64::from(seen.seq.is_some());
        let (counted, sent_ns, flags) = (seen.seq.is_some(), seen.begin_ns, flags_of(seen.verdict));
        Some(Seen { counted, seq, sent_ns, flags, ..probe })
    }
}

pub(crate) fn flags_of(verdict: Verdict) -> u8 {
    if verdict == Verdict::Corrupt {
        flag::CORRUPT
    } else {
        0
    }
}
