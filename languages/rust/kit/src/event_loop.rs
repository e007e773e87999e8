//! The scheduler for event loops, with several open messages.

use crate::clock::now_ns;
use crate::error::SendFailed;
use crate::kit::{Kit, NAP_NS};
use crate::message::{Buffer, Message};
use crate::schedule::Slot;

/// An event loop that the kit paces.
pub trait Events {
    /// Sends the message of a slot that is due.
    fn begin(&mut self, slot: Slot, request: Message) -> Result<(), SendFailed>;
    /// Handles arrivals within `timeout_ns`.
    fn poll(&mut self, timeout_ns: i64);
}

impl Kit {
    /// Returns the slot that is due now. Detects timeouts, as `finished` does.
    pub fn tick(&self) -> Option<Slot> {
        let mut state = self.lock();
        let at_ns = now_ns();
        self.expire(&mut state, at_ns);
        self.take(&mut state, at_ns)
    }

    /// Stamps the buffer for this slot; the next statement must send it.
    pub fn begin<'b>(&self, slot: Slot, buffer: &'b mut Buffer) -> Message<'b> {
        let mut state = self.lock();
        let begin_ns = now_ns();
        self.open(&mut state, slot, begin_ns);
        drop(state);
        self.form.stamp(buffer, slot.seq, begin_ns)
    }

    /// Records that a topic's message was sent.
    pub fn taken(&self, slot: Slot) {
        self.complete(slot, Message::Unreadable);
    }

    /// Records the reply or the result. Ignores a slot that has timed out.
    pub fn complete<'a>(&self, slot: Slot, reply: impl Into<Message<'a>>) {
        let end_ns = now_ns();
        self.settle(&mut self.lock(), slot, end_ns, Ok(reply.into()));
    }

    /// Records a message that was not sent, a rejected goal, or a failed call (C-36).
    pub fn fail(&self, slot: Slot) {
        let end_ns = now_ns();
        self.settle(&mut self.lock(), slot, end_ns, Err(SendFailed));
    }

    /// Returns whether the schedule has ended and every message is resolved, or STOP has arrived. A
    /// call beyond the count may end after STOP (C-15).
    pub fn finished(&self) -> bool {
        let mut state = self.lock();
        let at_ns = now_ns();
        self.expire(&mut state, at_ns);
        let stopped = self.dialogue.stopped();
        let all_resolved = state.schedule.has_ended(at_ns, stopped) && state.schedule.none_open();
        all_resolved || (stopped && !state.schedule.is_beyond())
    }

    /// Returns the maximum time in ns that an event loop may wait before it checks the schedule.
    pub fn wait_ns(&self) -> i64 {
        let state = self.lock();
        let (at_ns, schedule) = (now_ns(), &state.schedule);
        let mut next_ns = at_ns + NAP_NS;
        if let Some(open) = schedule.oldest() {
            next_ns = next_ns.min(open.begin_ns.saturating_add(self.times.timeout_ns));
        }
        if !schedule.ended() && !schedule.is_full() && !schedule.is_native() {
            next_ns = next_ns.min(schedule.due_ns().saturating_sub(self.times.spin_ns));
        }
        (next_ns - at_ns).max(0)
    }

    /// Runs an event loop on the schedule until every message is resolved, and then until STOP.
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

    /// Prints SENT (C-14) and waits for STOP. `poll(timeout_ns)` handles arrivals until then.
    pub fn end_schedule(&self, poll: impl FnMut(i64)) {
        self.print_sent();
        self.wait_stop(poll);
    }

    /// Waits for STOP. `poll(timeout_ns)` handles arrivals until then.
    pub fn wait_stop(&self, mut poll: impl FnMut(i64)) {
        while !self.dialogue.stopped() {
            poll(NAP_NS);
        }
    }
}
