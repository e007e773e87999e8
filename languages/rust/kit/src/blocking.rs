//! The scheduler for blocking senders and clients, with one message at a time.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::MutexGuard;

use crate::clock::{nap, now_ns};
use crate::constants::PROBE;
use crate::error::{failed, Error, SendFailed};
use crate::kit::{Kit, State};
use crate::message::Message;
use crate::schedule::Slot;

/// A blocking client.
pub trait Call {
    /// Sends `request` and returns its reply. Returns None at the timeout, and SendFailed if the
    /// call failed (C-36).
    fn call(
        &mut self,
        request: Message,
        timeout_ns: i64,
    ) -> Result<Option<Message<'_>>, SendFailed>;
}

impl Kit {
    /// Calls until a reply arrives (C-07); returns the duration in ns.
    pub fn probe(&self, client: &mut impl Call) -> Result<i64, Error> {
        let begin_ns = now_ns();
        let mut buffer = self.buffer();
        let seq = (self.integer("node") as u64) << 48 | PROBE;
        self.current_seq.store(seq, Relaxed);
        loop {
            let left_ns = self.ready_deadline_ns() - now_ns();
            if left_ns <= 0 {
                let limit_ms = self.integer("ready_timeout_ms");
                let last = self.reason.lock().expect("a panic ends the process");
                let prefix = if last.is_empty() { "" } else { "; last error: " };
                return Err(failed(format!(
                    "no reply to a probe within ready_timeout_ms = {limit_ms}{prefix}{last}"
                )));
            }
            self.lock().counts.probes += 1;
            let sent_ns = now_ns();
            self.current_begin_ns.store(sent_ns, Relaxed);
            let request = self.form.stamp(&mut buffer, seq, sent_ns);
            match client.call(request, left_ns.min(250_000_000)) {
                Ok(Some(reply)) if reply.is_readable() => return Ok(now_ns() - begin_ns),
                Ok(_) | Err(SendFailed) => nap(5_000_000), // the server is not ready yet
            }
        }
    }

    /// Sends on the schedule. `send(payload)` returns whether it sent the message.
    pub fn send_all(&self, mut send: impl FnMut(Message) -> bool) -> Result<(), Error> {
        self.pace(|slot, begin_ns, payload| {
            let outcome = if send(payload) { Ok(Message::Unreadable) } else { Err(SendFailed) };
            let end_ns = now_ns();
            let mut state = self.lock();
            self.open(&mut state, slot, begin_ns);
            self.settle(&mut state, slot, end_ns, outcome);
            (state, end_ns)
        })
    }

    /// Calls on the schedule.
    pub fn call_all(&self, client: &mut impl Call) -> Result<(), Error> {
        self.pace(|slot, begin_ns, request| {
            let reply = client.call(request, self.times.timeout_ns).transpose();
            let end_ns = now_ns();
            let mut state = self.lock();
            self.open(&mut state, slot, begin_ns);
            match reply {
                Some(reply) => self.settle(&mut state, slot, end_ns, reply),
                None => self.time_out(&mut state, slot),
            }
            (state, end_ns)
        })
    }

    /// Returns whether this may be the reply to the open blocking call; true if it cannot be
    /// decided.
    #[inline]
    pub fn is_reply<'a>(&self, data: impl Into<Message<'a>>) -> bool {
        self.form.may_answer(self.current_seq.load(Relaxed), data.into())
    }

    /// Returns the rest of `timeout_ns`, which starts with the open blocking call.
    pub fn call_left_ns(&self, timeout_ns: i64) -> i64 {
        self.current_begin_ns.load(Relaxed).saturating_add(timeout_ns) - now_ns()
    }

    /// Sends each message at its slot. `send` sends and settles a message. It returns its lock and
    /// its reading of the clock for the next slot, so that only the stamp separates the begin of a
    /// message from its sending.
    fn pace<'k>(
        &'k self,
        mut send: impl FnMut(Slot, i64, Message) -> (MutexGuard<'k, State>, i64),
    ) -> Result<(), Error> {
        if self.is_native() {
            return Err(failed("a middleware's timer cannot pace a blocking sender"));
        }
        let mut buffer = self.buffer();
        self.wait_go();
        let (mut state, mut at_ns) = (self.lock(), now_ns());
        while !state.schedule.has_ended(at_ns, self.dialogue.stopped()) {
            let Some(slot) = self.take(&mut state, at_ns) else {
                let due_ns = state.schedule.due_ns();
                drop(state);
                at_ns = self.sleep_until(due_ns).unwrap_or(due_ns);
                state = self.lock();
                continue;
            };
            drop(state);
            self.current_seq.store(slot.seq, Relaxed);
            let begin_ns = now_ns();
            self.current_begin_ns.store(begin_ns, Relaxed);
            let message = self.form.stamp(&mut buffer, slot.seq, begin_ns);
            (state, at_ns) = send(slot, begin_ns, message);
        }
        drop(state);
        self.print_sent();
        self.dialogue.wait_stop();
        Ok(())
    }
}
