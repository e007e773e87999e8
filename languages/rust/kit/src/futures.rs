//! Clients of libraries whose calls are futures, sequential or concurrent (C-33).

use std::future::Future;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::time::Duration;

use crate::blocking::Call;
use crate::error::{Error, SendFailed};
use crate::event_loop::Events;
use crate::kit::Kit;
use crate::message::{Buffer, Message};
use crate::schedule::Slot;

/// The executor of the library's futures.
pub trait Runtime {
    fn block_on<T>(&self, future: impl Future<Output = T>) -> T;
    fn spawn(&self, future: impl Future<Output = ()> + Send + 'static);
}

/// A client whose `call(request, timeout)` returns a future. The future owns the parts of the
/// request that it needs, and returns the reply, None at the timeout, or SendFailed.
pub struct Futures<R, C> {
    kit: &'static Kit,
    runtime: R,
    call: C,
    reply: Option<Buffer>,
    /// Wakes the loop. A capacity of 1 is sufficient, and it is allocated before the window.
    ended: (SyncSender<()>, Receiver<()>),
}

impl<R, C, F> Futures<R, C>
where
    R: Runtime,
    C: Fn(Message, Duration) -> F,
    F: Future<Output = Result<Option<Buffer>, SendFailed>> + Send + 'static,
{
    pub fn new(kit: &'static Kit, runtime: R, call: C) -> Self {
        Futures { kit, runtime, call, reply: None, ended: sync_channel(1) }
    }

    /// Calls on the schedule. Calls are concurrent if the specification requires it; otherwise this
    /// thread makes one call at a time.
    pub fn call_all(&mut self) -> Result<(), Error> {
        let kit = self.kit;
        if kit.overlaps() {
            kit.drive(self);
            return Ok(());
        }
        kit.call_all(self)
    }
}

impl<R, C, F> Call for Futures<R, C>
where
    R: Runtime,
    C: Fn(Message, Duration) -> F,
    F: Future<Output = Result<Option<Buffer>, SendFailed>>,
{
    fn call(
        &mut self,
        request: Message,
        timeout_ns: i64,
    ) -> Result<Option<Message<'_>>, SendFailed> {
        let timeout = Duration::from_nanos(timeout_ns as u64);
        self.reply = self.runtime.block_on((self.call)(request, timeout))?;
        Ok(self.reply.as_ref().map(Buffer::message))
    }
}

impl<R, C, F> Events for Futures<R, C>
where
    R: Runtime,
    C: Fn(Message, Duration) -> F,
    F: Future<Output = Result<Option<Buffer>, SendFailed>> + Send + 'static,
{
    fn begin(&mut self, slot: Slot, request: Message) -> Result<(), SendFailed> {
        let (kit, ended) = (self.kit, self.ended.0.clone());
        let reply = (self.call)(request, Duration::from_nanos(kit.times.timeout_ns as u64));
        self.runtime.spawn(async move {
            match reply.await {
                Ok(Some(reply)) => kit.complete(slot, reply.message()),
                Ok(None) => return, // the schedule detects the timeout
                Err(SendFailed) => kit.fail(slot),
            }
            let _ = ended.try_send(()); // if the channel is full, the loop is already awake
        });
        Ok(())
    }

    fn poll(&mut self, timeout_ns: i64) {
        let _ = self.ended.1.recv_timeout(Duration::from_nanos(timeout_ns.max(0) as u64));
    }
}
