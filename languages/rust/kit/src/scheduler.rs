//! Takes slots and ends messages of senders and clients (C-10 to C-14, C-23). Both blocking clients
//! and event loops use these functions. The callers lock the state and read the clock.

use serde_json::json;

use crate::clock::now_ns;
use crate::constants::{flag, Kind, UNKNOWN_NS};
use crate::error::SendFailed;
use crate::kit::{Kit, State};
use crate::message::Message;
use crate::native_timer::skip_to_nearest;
use crate::schedule::{Open, Slot};

impl Kit {
    /// Takes the slot that is due at `at_ns`.
    #[inline]
    pub(crate) fn take(&self, state: &mut State, at_ns: i64) -> Option<Slot> {
        let schedule = &mut state.schedule;
        let stopped = self.dialogue.stopped();
        if schedule.has_ended(at_ns, stopped) || schedule.is_full() || at_ns < schedule.start_ns() {
            return None;
        }
        let is_due = if self.is_native() {
            skip_to_nearest(schedule, at_ns) && !schedule.has_ended(at_ns, stopped)
        } else {
            at_ns >= schedule.due_ns()
        };
        if !is_due {
            return None;
        }
        if schedule.is_counted() {
            self.dialogue.line("COUNTED", &json!({}));
        }
        Some(schedule.take())
    }

    /// Begins a slot's message, and counts it as sent until it fails.
    #[inline]
    pub(crate) fn open(&self, state: &mut State, slot: Slot, begin_ns: i64) {
        state.schedule.begin(slot, begin_ns);
        state.counts.sent += 1;
        state.update_first_begin(begin_ns);
    }

    /// Ends a topic's message or a call. Ignores a slot that has timed out.
    #[inline]
    pub(crate) fn settle(
        &self,
        state: &mut State,
        slot: Slot,
        end_ns: i64,
        reply: Result<Message, SendFailed>,
    ) {
        let Some(open) = state.schedule.find(slot) else { return };
        let is_message = self.kind == Kind::Message;
        let is_late = !is_message && end_ns - open.begin_ns > self.times.timeout_ns;
        match reply {
            Err(SendFailed) => {
                state.counts.sent -= u64::from(is_message); // a failed call counts as sent
                let end_ns = if is_message { end_ns } else { UNKNOWN_NS };
                self.resolve(state, slot, end_ns, flag::FAILED);
            }
            Ok(_) if is_late => self.time_out(state, slot),
            Ok(_) if is_message => self.resolve(state, slot, end_ns, 0),
            Ok(reply) => {
                let flags = self.check_reply(state, slot, reply);
                self.resolve(state, slot, end_ns, flags);
            }
        }
    }

    #[inline]
    pub(crate) fn time_out(&self, state: &mut State, slot: Slot) {
        self.resolve(state, slot, UNKNOWN_NS, flag::TIMEOUT);
    }

    /// Ends the calls whose timeout has expired.
    pub(crate) fn expire(&self, state: &mut State, at_ns: i64) {
        while let Some(open) = state.schedule.oldest() {
            if at_ns - open.begin_ns < self.times.timeout_ns {
                break;
            }
            let slot = open.slot;
            self.time_out(state, slot);
        }
    }

    /// Ends open messages as timed out (C-15), and prints SENT.
    pub(crate) fn print_sent(&self) {
        let mut state = self.lock();
        while let Some(slot) = state.schedule.oldest().map(|open| open.slot) {
            self.time_out(&mut state, slot);
        }
        let known = |ns: i64| Some(ns).filter(|&ns| ns != UNKNOWN_NS);
        let line = json!({
            "begin_ns": known(state.first_begin_ns),
            "end_ns": known(state.last_end_ns),
            "sent": state.counts.sent,
            "scheduled": state.schedule.scheduled(),
            "skipped": state.schedule.skipped(),
        });
        self.dialogue.line("SENT", &line);
    }

    #[inline]
    fn resolve(&self, state: &mut State, slot: Slot, end_ns: i64, flags: u8) {
        if let Some(open) = state.schedule.resolve(slot) {
            self.record_end(state, &open, end_ns, flags);
        }
    }

    #[inline]
    fn record_end(&self, state: &mut State, open: &Open, end_ns: i64, flags: u8) {
        state.last_end_ns = if end_ns == UNKNOWN_NS { now_ns() } else { end_ns };
        let ended = flags & (flag::FAILED | flag::TIMEOUT) != 0;
        if self.kind == Kind::Result && !open.accepted && ended {
            self.record_sent(state, open, UNKNOWN_NS, (Kind::Goal, flags));
        }
        self.record_sent(state, open, end_ns, (self.kind, flags));
    }

    /// Counts a reply and returns its flags.
    #[inline]
    fn check_reply(&self, state: &mut State, slot: Slot, reply: Message) -> u8 {
        state.counts.received += 1;
        let good = self.form.is_answer(slot.seq, reply, &mut state.expected);
        state.counts.corrupt += u64::from(!good);
        if good {
            0
        } else {
            flag::CORRUPT
        }
    }
}
