//! Client and server, ping and pong. The frame's number matches a reply to its call.

use std::collections::HashMap;

use wattwire_kit::{now_ns, sleep_until_ns, Call, Error, Events, Kit, Message, SendFailed, Slot};

use crate::links::{connect_all, ready, Listener};
use crate::stream::{wait_for, Frame, Inbox, Kind, Stream};

/// Maximum wait for a full buffer between two checks for replies.
const FULL_WAIT_NS: i64 = 200_000;

struct Client {
    kit: &'static Kit,
    stream: Stream,
    inbox: Inbox,
    calls: u64,
    waiting: HashMap<u64, Slot>,
}

impl Client {
    fn next_number(&mut self) -> u64 {
        self.calls += 1;
        self.calls - 1
    }
}

impl Call for Client {
    fn call(
        &mut self,
        request: Message,
        timeout_ns: i64,
    ) -> Result<Option<Message<'_>>, SendFailed> {
        let number = self.next_number();
        let deadline_ns = now_ns().saturating_add(timeout_ns);
        self.stream.send(Kind::Request, number, request.bytes())?;
        while self.stream.is_open() {
            let left_ns = deadline_ns - now_ns();
            if left_ns <= 0 {
                return Ok(None);
            }
            let Some(frame) = self.stream.receive(&mut self.inbox, left_ns) else { continue };
            if frame.is(Kind::Reply) && frame.number == number {
                return Ok(Some(self.inbox.payload(&frame).into()));
            }
        }
        Err(SendFailed) // the server closed the connection
    }
}

impl Events for Client {
    fn begin(&mut self, slot: Slot, request: Message) -> Result<(), SendFailed> {
        let number = self.next_number();
        self.waiting.insert(number, slot);
        let Client { kit, stream, inbox, waiting, .. } = self;
        stream.send_while(Kind::Request, number, request.bytes(), |left_ns| {
            handle_reply(kit, stream, inbox, waiting, 0);
            if stream.is_open() {
                wait_for(&stream.socket, libc::POLLOUT, left_ns.min(FULL_WAIT_NS));
            }
        })?;
        Ok(())
    }
    fn poll(&mut self, timeout_ns: i64) {
        let Client { kit, stream, inbox, waiting, .. } = self;
        handle_reply(kit, stream, inbox, waiting, timeout_ns);
    }
}

fn handle_reply(
    kit: &Kit,
    stream: &Stream,
    inbox: &mut Inbox,
    waiting: &mut HashMap<u64, Slot>,
    timeout_ns: i64,
) {
    let frame = stream.receive(inbox, timeout_ns);
    // Sleeps if the stream is closed, so that the event loop does not spin.
    if !stream.is_open() {
        sleep_until_ns(now_ns() + timeout_ns);
    }
    let Some(frame) = frame else { return };
    if let Some(slot) = waiting.remove(&frame.number) {
        kit.complete(slot, inbox.payload(&frame));
    }
}

pub fn client(kit: &'static Kit) -> Result<(), Error> {
    let stream = connect_all(kit)?.swap_remove(0);
    let (inbox, waiting) = (Inbox::new(), HashMap::new());
    let mut client = Client { kit, stream, inbox, calls: 0, waiting };
    let discovery_ns = kit.probe(&mut client)?;
    ready(kit, &client.stream.socket, 1, discovery_ns)?;
    if kit.overlaps() {
        kit.drive(&mut client);
        return Ok(());
    }
    kit.call_all(&mut client)
}

pub fn server(kit: &'static Kit) -> Result<(), Error> {
    let mut listener = Listener::new(kit)?;
    let answer = |stream: &Stream, frame: &Frame, payload: &[u8]| {
        let Some(request) = kit.serve(payload) else { return };
        // Sending fails if the client has left. The server then records no call.
        if stream.send(Kind::Reply, frame.number, request.reply().bytes()).is_ok() {
            kit.served(&request);
        }
    };
    let discovery_ns = listener.await_peers(0, answer)?;
    ready(kit, &listener.socket, listener.accepted, discovery_ns)?;
    kit.poll(|timeout_ns| listener.poll(timeout_ns, answer));
    Ok(())
}
