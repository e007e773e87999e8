//! Goals, their acceptances, feedback and results (C-30).

use crate::clock::now_ns;
use crate::constants::{Kind, PROBE, UNKNOWN_NS};
use crate::kit::Kit;
use crate::message::{Answer, Buffer, Message};
use crate::payload::{Verdict, COUNTER_MASK};
use crate::receiving::{flags_of, Seen};
use crate::schedule::Slot;

/// A goal in hand. Its bytes stay with the cell.
#[derive(Debug, Clone, Copy)]
pub struct Goal {
    pub seq: u64,
    feedback_ns: i64,
    seen: Seen,
}

impl Kit {
    /// An action client's goal was accepted.
    pub fn accepted(&self, slot: Slot) {
        let end_ns = now_ns();
        let mut state = self.lock();
        let Some(open) = state.schedule.find(slot).filter(|open| !open.accepted) else { return };
        open.accepted = true;
        let open = *open;
        self.record_sent(&mut state, &open, end_ns, (Kind::Goal, 0));
    }

    /// An action client's feedback callback was entered. `slot` is the goal, which a payload too
    /// short for a sequence (or a literal) cannot name.
    pub fn feedback<'a>(&self, data: impl Into<Message<'a>>, slot: Option<Slot>) {
        let at_ns = now_ns();
        let data = data.into();
        let mut guard = self.lock();
        let state = &mut *guard;
        let mut seen = self.form.check(data, &mut state.expected);
        if let Some(slot) = slot.filter(|_| !self.carries_seq()) {
            seen.seq = Some(slot.seq);
        }
        state.counts.foreign += u64::from(seen.verdict == Verdict::Foreign);
        state.counts.corrupt += u64::from(seen.verdict == Verdict::Corrupt);
        let counted = |seq: &u64| seen.verdict != Verdict::Foreign && seq & COUNTER_MASK != PROBE;
        if let Some(seq) = seen.seq.filter(counted) {
            let what = (Kind::Feedback, flags_of(seen.verdict));
            self.record_arrived(state, seq, (seen.begin_ns, at_ns), data.nominal_bytes(), what);
        }
    }

    /// A goal in hand; None where it is foreign or unreadable.
    pub fn goal<'a>(&self, data: impl Into<Message<'a>>) -> Option<Goal> {
        let at_ns = now_ns();
        let data = data.into();
        let seen = self.arrive(&mut self.lock(), data, at_ns)?;
        data.is_readable().then_some(Goal { seq: seen.seq, feedback_ns: UNKNOWN_NS, seen })
    }
    /// The acceptance was handed over.
    pub fn accept(&self, goal: &Goal) {
        self.record_served(&goal.seen, goal.seen.arrived_ns, Kind::Accept);
    }
    /// Stamps the buffer with a feedback; the next statement publishes it.
    pub fn feedback_begin<'b>(&self, goal: &mut Goal, buffer: &'b mut Buffer) -> Message<'b> {
        goal.feedback_ns = now_ns();
        self.form.stamp(buffer, goal.seq, goal.feedback_ns)
    }
    /// The feedback was published.
    pub fn feedback_sent(&self, goal: &Goal) {
        let seen = Seen { bytes: self.form.length(), ..goal.seen };
        self.record_served(&seen, goal.feedback_ns, Kind::Feedback);
    }
    /// The result of a goal that came as `data`.
    pub fn result<'a>(&'a self, data: impl Into<Message<'a>>) -> Answer<'a> {
        self.form.answer(data.into())
    }
    /// The result was handed over.
    pub fn finish_goal(&self, goal: &Goal) {
        self.record_served(&goal.seen, goal.seen.arrived_ns, Kind::Goal);
    }
}
