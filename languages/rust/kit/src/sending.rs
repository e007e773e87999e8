//! Senders and clients: the window's schedule (C-10 to C-14, C-23).

use std::sync::atomic::Ordering::Relaxed;
use std::sync::MutexGuard;

use serde_json::json;

use crate::clock::{now_ns, sleep_until_ns, SECOND_NS};
use crate::constants::{flag, Kind, UNKNOWN_NS};
use crate::error::{failed, Error, SendFailed};
use crate::kit::{Kit, State, NAP_NS};
use crate::message::{Buffer, Message};
use crate::schedule::{Open, Slot};

/// A client that blocks.
pub trait Call {
    /// Sends `request` and returns its reply; None at the timeout, SendFailed where the call
    /// failed (C-36).
    fn call(
        &mut self,
        request: Message,
        timeout_ns: i64,
    ) -> Result<Option<Message<'_>>, SendFailed>;
}

/// An event loop whose messages the kit paces.
pub trait Events {
    /// Sends the message of a slot that is due.
    fn begin(&mut self, slot: Slot, request: Message) -> Result<(), SendFailed>;
    /// Handles what arrives within `timeout_ns`.
    fn poll(&mut self, timeout_ns: i64);
}

impl Kit {
    /// Waits for GO; returns the window's start, or None where STOP came first.
    pub fn wait_go(&self) -> Option<i64> {
        self.dialogue.wait_go_or_stop();
        Some(self.dialogue.start_ns()).filter(|&start_ns| start_ns != 0)
    }

    /// Returns one period before the next slot: when a periodic timer must be created.
    pub fn wait_timer_birth(&self) {
        let period_ns = self.period_ns();
        let Some(start_ns) = self.wait_go() else { return };
        let first_ns = start_ns.saturating_add(self.integer("phase_ns")) - period_ns;
        let behind_ns = (now_ns() - first_ns).max(0);
        self.sleep_until(first_ns + (behind_ns + period_ns - 1) / period_ns * period_ns);
    }

    /// The slot that is to be sent now. Finds timeouts, as `finished` does.
    pub fn tick(&self) -> Option<Slot> {
        let mut state = self.lock();
        let at_ns = now_ns();
        self.expire(&mut state, at_ns);
        let is_counted = state.schedule.is_counted();
        let slot = state.schedule.tick(at_ns, self.dialogue.stopped());
        if is_counted && slot.is_some() {
            self.dialogue.line("COUNTED", &json!({}));
        }
        slot
    }

    /// Stamps the buffer for this slot; the next statement sends it.
    pub fn begin<'b>(&self, slot: Slot, buffer: &'b mut Buffer) -> Message<'b> {
        let mut state = self.lock();
        let begin_ns = now_ns();
        state.schedule.begin(slot, begin_ns);
        state.counts.sent += 1;
        state.note_begin(begin_ns);
        drop(state);
        self.form.stamp(buffer, slot.seq, begin_ns)
    }

    /// A topic's message was taken.
    pub fn taken(&self, slot: Slot) {
        self.complete(slot, Message::Unreadable);
    }

    /// The reply or the result is in hand. A slot that timed out is ignored.
    pub fn complete<'a>(&self, slot: Slot, reply: impl Into<Message<'a>>) {
        let end_ns = now_ns();
        let mut state = self.lock();
        let Some(open) = state.schedule.find(slot) else { return };
        if self.kind == Kind::Message {
            self.resolve(&mut state, slot, end_ns, 0);
        } else if end_ns - open.begin_ns > self.timeout_ns {
            self.resolve(&mut state, slot, UNKNOWN_NS, flag::TIMEOUT);
        } else {
            let flags = self.check_reply(&mut state, slot, reply.into());
            self.resolve(&mut state, slot, end_ns, flags);
        }
    }

    /// The message was not taken, the goal was rejected, or the call failed (C-36).
    pub fn fail(&self, slot: Slot) {
        let mut state = self.lock();
        if state.schedule.find(slot).is_none() {
            return;
        }
        let is_message = self.kind == Kind::Message;
        state.counts.sent -= u64::from(is_message); // a call was made, however it ended
        let end_ns = if is_message { now_ns() } else { UNKNOWN_NS };
        self.resolve(&mut state, slot, end_ns, flag::FAILED);
    }

    /// An action client's goal was accepted.
    pub fn accepted(&self, slot: Slot) {
        let end_ns = now_ns();
        let mut state = self.lock();
        let Some(open) = state.schedule.find(slot).filter(|open| !open.accepted) else { return };
        open.accepted = true;
        let open = *open;
        self.record_sent(&mut state, &open, end_ns, (Kind::Goal, 0));
    }

    /// True when the schedule is through and every message is resolved, or STOP came; a call
    /// beyond the count may end after it (C-15).
    pub fn finished(&self) -> bool {
        let mut state = self.lock();
        let at_ns = now_ns();
        self.expire(&mut state, at_ns);
        let stopped = self.dialogue.stopped();
        let is_through = state.schedule.is_through(at_ns, stopped) && state.schedule.none_open();
        is_through || (stopped && !state.schedule.is_beyond())
    }

    /// How long an event loop may wait before it must look at the schedule again.
    pub fn wait_ns(&self) -> i64 {
        let state = self.lock();
        let (at_ns, schedule) = (now_ns(), &state.schedule);
        let mut next_ns = at_ns + NAP_NS;
        if let Some(open) = schedule.oldest() {
            next_ns = next_ns.min(open.begin_ns.saturating_add(self.timeout_ns));
        }
        if !schedule.was_through() && !schedule.is_full() && !schedule.is_native() {
            next_ns = next_ns.min(schedule.due_ns().saturating_sub(self.spin_ns));
        }
        (next_ns - at_ns).max(0)
    }

    /// Runs an event loop on the schedule until all is resolved, and until STOP.
    pub fn drive(&self, events: &mut impl Events) {
        let mut buffer = self.buffer();
        while self.dialogue.start_ns() == 0 && !self.dialogue.stopped() {
            events.poll(NAP_NS / 10);
        }
        while !self.finished() {
            match self.tick() {
                None => events.poll(self.wait_ns()),
                Some(slot) => {
                    let request = self.begin(slot, &mut buffer);
                    if events.begin(slot, request).is_err() {
                        self.fail(slot);
                    }
                }
            }
        }
        self.end_schedule(|timeout_ns| events.poll(timeout_ns));
    }

    /// Sends on the schedule: `send(payload)` says whether the message was taken.
    pub fn send_all(&self, mut send: impl FnMut(Message) -> bool) -> Result<(), Error> {
        self.pace(|open, payload| {
            let flags = if send(payload) { 0 } else { flag::FAILED };
            let end_ns = now_ns();
            let mut state = self.lock();
            self.settle(&mut state, open, end_ns, flags);
            state
        })
    }

    /// Calls on the schedule.
    pub fn call_all(&self, client: &mut impl Call) -> Result<(), Error> {
        self.pace(|open, request| {
            let reply = client.call(request, self.timeout_ns);
            let end_ns = now_ns();
            let mut state = self.lock();
            let (end_ns, flags) = match reply {
                Ok(Some(reply)) if end_ns - open.begin_ns <= self.timeout_ns => {
                    (end_ns, self.check_reply(&mut state, open.slot, reply))
                }
                Ok(_) => (UNKNOWN_NS, flag::TIMEOUT),
                Err(SendFailed) => (UNKNOWN_NS, flag::FAILED),
            };
            self.settle(&mut state, open, end_ns, flags);
            state
        })
    }

    /// Prints SENT (C-14) and waits for STOP; `poll(timeout_ns)` handles what still arrives.
    pub fn end_schedule(&self, poll: impl FnMut(i64)) {
        self.print_sent();
        self.wait_stop(poll);
    }

    /// Waits for STOP; `poll(timeout_ns)` handles what arrives until then.
    pub fn wait_stop(&self, mut poll: impl FnMut(i64)) {
        while !self.dialogue.stopped() {
            poll(NAP_NS);
        }
    }

    /// Whether this may be the reply to the open blocking call; true where nobody can tell.
    pub fn is_reply<'a>(&self, data: impl Into<Message<'a>>) -> bool {
        self.form.may_answer(self.current_seq.load(Relaxed), data.into())
    }

    /// The blocking schedule: one message at a time, each due at its slot. `send` sends one and
    /// settles it; the lock that it took for that serves the next one's slot.
    fn pace<'k>(
        &'k self,
        mut send: impl FnMut(&Open, Message) -> MutexGuard<'k, State>,
    ) -> Result<(), Error> {
        if self.is_native() {
            return Err(failed("a blocking sender cannot be paced by a middleware's timer"));
        }
        let mut buffer = self.buffer();
        self.wait_go();
        let mut state = self.lock();
        loop {
            // A message that is late costs one reading of the clock here, and one at its end.
            let mut begin_ns = now_ns();
            let due_ns = state.schedule.due_ns();
            if begin_ns < due_ns && !state.schedule.is_through(begin_ns, self.dialogue.stopped()) {
                drop(state);
                let woken_ns = self.sleep_until(due_ns);
                state = self.lock();
                begin_ns = woken_ns.unwrap_or(due_ns);
            }
            if state.schedule.is_through(begin_ns, self.dialogue.stopped()) {
                break;
            }
            if state.schedule.is_counted() {
                self.dialogue.line("COUNTED", &json!({}));
                begin_ns = now_ns();
            }
            let open = state.schedule.take_at(begin_ns);
            state.note_begin(begin_ns);
            drop(state);
            self.current_seq.store(open.slot.seq, Relaxed);
            state = send(&open, self.form.stamp(&mut buffer, open.slot.seq, begin_ns));
        }
        drop(state);
        self.print_sent();
        self.dialogue.wait_stop();
        Ok(())
    }

    /// The clock's last reading, `due_ns` or later; None where STOP came first.
    fn sleep_until(&self, due_ns: i64) -> Option<i64> {
        let wake_ns = due_ns.saturating_sub(self.spin_ns);
        while !self.dialogue.stopped() {
            let mut at_ns = now_ns();
            if at_ns >= wake_ns {
                while at_ns < due_ns {
                    std::hint::spin_loop();
                    at_ns = now_ns();
                }
                return Some(at_ns);
            }
            sleep_until_ns(wake_ns.min(at_ns + SECOND_NS));
        }
        None
    }

    fn print_sent(&self) {
        let mut state = self.lock();
        while let Some(slot) = state.schedule.oldest().map(|open| open.slot) {
            self.resolve(&mut state, slot, UNKNOWN_NS, flag::TIMEOUT);
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

    fn resolve(&self, state: &mut State, slot: Slot, end_ns: i64, flags: u8) {
        if let Some(open) = state.schedule.resolve(slot) {
            self.record_end(state, &open, end_ns, flags);
        }
    }

    /// A blocking message has ended; nobody else knew of it.
    fn settle(&self, state: &mut State, open: &Open, end_ns: i64, flags: u8) {
        let taken = flags & flag::FAILED == 0 || self.kind != Kind::Message;
        state.counts.sent += u64::from(taken);
        self.record_end(state, open, end_ns, flags);
    }

    fn record_end(&self, state: &mut State, open: &Open, end_ns: i64, flags: u8) {
        state.last_end_ns = if end_ns == UNKNOWN_NS { now_ns() } else { end_ns };
        let ended = flags & (flag::FAILED | flag::TIMEOUT) != 0;
        if self.kind == Kind::Result && !open.accepted && ended {
            self.record_sent(state, open, UNKNOWN_NS, (Kind::Goal, flags));
        }
        self.record_sent(state, open, end_ns, (self.kind, flags));
    }

    /// Counts a reply; returns its flags.
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

    fn expire(&self, state: &mut State, at_ns: i64) {
        while let Some(open) = state.schedule.oldest() {
            if at_ns - open.begin_ns < self.timeout_ns {
                break;
            }
            let slot = open.slot;
            self.resolve(state, slot, UNKNOWN_NS, flag::TIMEOUT);
        }
    }
}
