//! Goals with their acceptances, feedback and results (C-30).

use crate::clock::now_ns;
use crate::constants::{Kind, PROBE, UNKNOWN_NS};
use crate::kit::Kit;
use crate::message::{Answer, Buffer, Message};
use crate::payload::{Verdict, COUNTER_MASK};
use crate::receiving::{flags_of, Arrival};
use crate::schedule::Slot;

/// A goal at the action server. The cell owns its bytes.
#[derive(Debug, Clone, Copy)]
pub struct Goal {
    pub seq: u64,
    feedback_ns: i64,
    arrival: Arrival,
}

impl Kit {
    /// Records that an action client's goal was accepted.
    pub fn accepted(&self, slot: Slot) {
        let end_ns = now_ns();
        let mut state = self.lock();
        let Some(open) = state.schedule.find(slot).filter(|open| !open.accepted) else { return };
        open.accepted = true;
        let open = *open;
        self.record_sent(&mut state, &open, end_ns, (Kind::Goal, 0));
    }

    /// Records a feedback; first statement of an action client's callback. `slot` identifies the
    /// goal, because a short payload or a literal carries no sequence.
    pub fn feedback<'a>(&self, data: impl Into<Message<'a>>, slot: Option<Slot>) {
        let at_ns = now_ns();
        let data = data.into();
        let mut guard = self.lock();
        let state = &mut *guard;
        let mut arrival = self.form.check(data, &mut state.expected);
        if let Some(slot) = slot.filter(|_| !self.carries_seq()) {
            arrival.seq = Some(slot.seq);
        }
        state.counts.foreign += u64::from(arrival.verdict == Verdict::Foreign);
        state.counts.corrupt += u64::from(arrival.verdict == Verdict::Corrupt);
        let counted =
            |seq: &u64| arrival.verdict != Verdict::Foreign && seq & COUNTER_MASK != PROBE;
        if let Some(seq) = arrival.seq.filter(counted) {
            let what = (Kind::Feedback, flags_of(arrival.verdict));
            self.record_arrived(state, seq, (arrival.begin_ns, at_ns), data.nominal_bytes(), what);
        }
    }

    /// Returns the goal of a request, or None if the request is foreign or unreadable.
    pub fn goal<'a>(&self, data: impl Into<Message<'a>>) -> Option<Goal> {
        let at_ns = now_ns();
        let data = data.into();
        let arrival = self.arrive(&mut self.lock(), data, at_ns)?;
        data.is_readable().then_some(Goal { seq: arrival.seq, feedback_ns: UNKNOWN_NS, arrival })
    }
    /// Records that the acceptance was handed over.
    pub fn accept(&self, goal: &Goal) {
        self.record_served(&goal.arrival, goal.arrival.arrived_ns, Kind::Accept);
    }
    /// Stamps the buffer with a feedback; the next statement must publish it.
    pub fn feedback_begin<'b>(&self, goal: &mut Goal, buffer: &'b mut Buffer) -> Message<'b> {
        goal.feedback_ns = now_ns();
        self.form.stamp(buffer, goal.seq, goal.feedback_ns)
    }
    /// Records that the feedback was published.
    pub fn feedback_sent(&self, goal: &Goal) {
        let arrival = Arrival { bytes: self.form.length(), ..goal.arrival };
        self.record_served(&arrival, goal.feedback_ns, Kind::Feedback);
    }
    /// Returns the result of the goal that arrived as `data`.
    pub fn result<'a>(&'a self, data: impl Into<Message<'a>>) -> Answer<'a> {
        self.form.answer(data.into())
    }
    /// Records that the result was handed over.
    pub fn finish_goal(&self, goal: &Goal) {
        self.record_served(&goal.arrival, goal.arrival.arrived_ns, Kind::Goal);
    }
}
