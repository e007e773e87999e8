//! The scheduler for event loops: a tick at a time, with several messages open.

use crate::clock::now_ns;
use crate::error::SendFailed;
use crate::kit::{Kit, NAP_NS};
use crate::message::{Buffer, Message};
use crate::schedule::Slot;

/// An event loop whose messages the kit paces.
pub trait Events {
    /// Sends the message of a slot that is due.
    fn begin(&mut self, slot: Slot, request: Message) -> Result<(), SendFailed>;
    /// Handles what arrives within `timeout_ns`.
    fn poll(&mut self, timeout_ns: i64);
}

impl Kit {
    /// The slot that is to be sent now. Finds timeouts, as `finished` does.
    pub fn tick(&self) -> Option<Slot> {
        let mut state = self.lock();
        let at_ns = now_ns();
        self.expire(&mut state, at_ns);
        self.take(&mut state, at_ns)
    }

    /// Stamps the buffer for this slot; the next statement sends it.
    pub fn begin<'b>(&self, slot: Slot, buffer: &'b mut Buffer) -> Message<'b> {
        let mut state = self.lock();
        let begin_ns = now_ns();
        self.open(&mut state, slot, begin_ns);
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
        self.settle(&mut self.lock(), slot, end_ns, Ok(reply.into()));
    }

    /// The message was not taken, the goal was rejected, or the call failed (C-36).
    pub fn fail(&self, slot: Slot) {
        let end_ns = now_ns();
        self.settle(&mut self.lock(), slot, end_ns, Err(SendFailed));
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
            next_ns = next_ns.min(open.begin_ns.saturating_add(self.times.timeout_ns));
        }
        if !schedule.was_through() && !schedule.is_full() && !schedule.is_native() {
            next_ns = next_ns.min(schedule.due_ns().saturating_sub(self.times.spin_ns));
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
}
