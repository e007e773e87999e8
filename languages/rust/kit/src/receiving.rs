//! Arrivals at subscribers and servers, and their drain (C-15 to C-17, C-21 to C-23).

use crate::clock::{nap, now_ns};
use crate::constants::{flag, Kind, PROBE, UNKNOWN_NS};
use crate::kit::{Kit, State, NAP_NS};
use crate::message::{Answer, Message};
use crate::payload::{Verdict, COUNTER_MASK};

/// A request with its reply.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    answer: Answer<'a>,
    arrival: Arrival,
}

impl Request<'_> {
    /// Returns the reply. Hand it over and then call `Kit::served`.
    pub fn reply(&self) -> Message<'_> {
        self.answer.message()
    }
}

/// An arrival of this run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
    /// False for a probe or an unreadable sequence.
    pub counted: bool,
    pub is_probe: bool,
    pub seq: u64,
    pub sent_ns: i64,
    pub arrived_ns: i64,
    pub bytes: usize,
    pub flags: u8,
}

impl Kit {
    /// Records an arrival; first statement of a subscriber's callback.
    #[inline]
    pub fn received<'a>(&self, data: impl Into<Message<'a>>) {
        let at_ns = now_ns();
        let data = data.into();
        let mut state = self.lock();
        if let Some(arrival) =
            self.arrive(&mut state, data, at_ns).filter(|arrival| arrival.counted)
        {
            let (times, what) = ((arrival.sent_ns, at_ns), (Kind::Message, arrival.flags));
            self.record_arrived(&mut state, arrival.seq, times, arrival.bytes, what);
        }
    }

    /// Returns the request with its reply. Returns None if the request is foreign or unreadable;
    /// the cell must then send no reply.
    #[inline]
    pub fn serve<'a>(&'a self, data: impl Into<Message<'a>>) -> Option<Request<'a>> {
        let at_ns = now_ns();
        let data = data.into();
        let arrival = self.arrive(&mut self.lock(), data, at_ns)?;
        data.is_readable().then(|| Request { answer: self.form.answer(data), arrival })
    }

    /// Records that the reply to this request was handed over.
    #[inline]
    pub fn served(&self, request: &Request) {
        self.record_served(&request.arrival, request.arrival.arrived_ns, Kind::Call);
    }

    /// Calls `poll(timeout_ns)` until STOP, and then until quiet or linger (C-15).
    pub fn poll(&self, mut poll: impl FnMut(i64)) {
        while !self.dialogue.stopped() {
            poll(NAP_NS);
        }
        self.drain(poll);
    }

    /// Like `poll`, but the timeout is None until STOP, so that waits need no timer. STOP ends a
    /// waiting system call with EINTR, and `poll` must then return.
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

    /// Blocks this thread until the end, while threads of the library receive.
    pub fn wait(&self) {
        self.dialogue.wait_stop();
        self.poll(nap);
    }

    /// Calls `function` at the end, in a separate thread.
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
    pub(crate) fn record_served(&self, arrival: &Arrival, begin_ns: i64, kind: Kind) {
        let end_ns = now_ns();
        if arrival.counted {
            let (times, what) = ((begin_ns, end_ns), (kind, arrival.flags));
            self.record_arrived(&mut self.lock(), arrival.seq, times, arrival.bytes, what);
        }
    }

    /// Checks and counts an arrival. Returns None if it is foreign.
    #[inline]
    pub(crate) fn arrive(
        &self,
        state: &mut State,
        data: Message,
        arrived_ns: i64,
    ) -> Option<Arrival> {
        let (sent_ns, bytes) = (UNKNOWN_NS, data.nominal_bytes());
        let probe = Arrival {
            counted: false,
            is_probe: true,
            seq: 0,
            sent_ns,
            arrived_ns,
            bytes,
            flags: 0,
        };
        if !self.carries_seq() && arrived_ns < state.schedule.start_ns() {
            state.counts.probes += 1; // only probes arrive before the start
            return Some(probe);
        }
        let arrival = self.form.check(data, &mut state.expected);
        if arrival.verdict == Verdict::Foreign {
            state.counts.foreign += 1;
            return None;
        }
        let seq = arrival.seq.unwrap_or_default();
        if self.carries_seq() && arrival.seq.is_some() && seq & COUNTER_MASK == PROBE {
            state.counts.probes += 1;
            return Some(Arrival { seq, ..probe });
        }
        state.arrival_ns = arrived_ns;
        state.counts.corrupt += u64::from(arrival.verdict == Verdict::Corrupt);
        state.counts.received += u64::from(arrival.seq.is_some());
        let (counted, sent_ns, flags) =
            (arrival.seq.is_some(), arrival.begin_ns, flags_of(arrival.verdict));
        Some(Arrival { counted, is_probe: false, seq, sent_ns, flags, ..probe })
    }
}

pub(crate) fn flags_of(verdict: Verdict) -> u8 {
    if verdict == Verdict::Corrupt {
        flag::CORRUPT
    } else {
        0
    }
}
