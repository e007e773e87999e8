//! Client and server, ping and pong. The frame's number matches a reply to its call.

use std::collections::HashMap;
use std::os::unix::net::SocketAddr;

use wattwire_kit::{now_ns, Call, Error, Events, Kit, Message, SendFailed, Slot};

use crate::link::{counter_of, drive_native, send_patiently, Inbox, Kind, Link};

struct Client {
    kit: &'static Kit,
    link: Link,
    inbox: Inbox,
    server: SocketAddr,
    calls: u64,
    waiting: HashMap<u64, Slot>,
}

impl Call for Client {
    fn call(
        &mut self,
        request: Message,
        timeout_ns: i64,
    ) -> Result<Option<Message<'_>>, SendFailed> {
        let counter = self.calls;
        self.calls += 1;
        let deadline_ns = now_ns().saturating_add(timeout_ns);
        for _ in 0..self.link.copies(counter) {
            self.link.send(Kind::Request, counter, request, &self.server)?;
        }
        loop {
            let left_ns = deadline_ns - now_ns();
            if left_ns <= 0 {
                return Ok(None);
            }
            let frame = self.link.receive(&mut self.inbox, left_ns);
            if frame.is_some_and(|frame| frame.is(Kind::Reply) && frame.number == counter) {
                return Ok(Some(self.inbox.payload()));
            }
        }
    }
}

impl Events for Client {
    fn begin(&mut self, slot: Slot, request: Message) -> Result<(), SendFailed> {
        let counter = counter_of(slot);
        self.waiting.insert(counter, slot);
        let Client { kit, link, inbox, server, waiting, .. } = self;
        for _ in 0..link.copies(counter) {
            send_patiently(
                kit,
                || link.send(Kind::Request, counter, request, server),
                |timeout_ns| handle_reply(kit, link, inbox, waiting, timeout_ns),
            )?;
        }
        Ok(())
    }
    fn poll(&mut self, timeout_ns: i64) {
        let Client { kit, link, inbox, waiting, .. } = self;
        handle_reply(kit, link, inbox, waiting, timeout_ns);
    }
}

fn handle_reply(
    kit: &Kit,
    link: &Link,
    inbox: &mut Inbox,
    waiting: &mut HashMap<u64, Slot>,
    timeout_ns: i64,
) {
    let Some(frame) = link.receive(inbox, timeout_ns) else {
        return;
    };
    if let Some(slot) = waiting.remove(&frame.number) {
        kit.complete(slot, inbox.payload());
    }
}

pub fn client(kit: &'static Kit) -> Result<(), Error> {
    let link = Link::new(kit)?;
    link.open(false);
    let server = link.peers()?.swap_remove(0);
    link.ready(Some(1))?;
    let (inbox, waiting) = (Inbox::new(kit), HashMap::new());
    let mut client = Client { kit, link, inbox, server, calls: 0, waiting };
    if kit.is_native() {
        client.link.never_block()?;
        drive_native(kit, &mut client);
    } else if kit.overlaps() {
        client.link.never_block()?;
        kit.drive(&mut client);
    } else {
        kit.call_all(&mut client)?;
    }
    client.link.fault("drain");
    Ok(())
}

pub fn server(kit: &'static Kit) -> Result<(), Error> {
    let link = Link::new(kit)?;
    let mut inbox = Inbox::new(kit);
    link.open(true);
    link.ready(None)?;
    kit.poll(|timeout_ns| {
        let Some(frame) = link.receive(&mut inbox, timeout_ns) else {
            return;
        };
        let request = kit.serve(inbox.payload());
        link.count_message();
        let Some(request) = request else { return };
        // Sending fails if the client has left. The server then records no call.
        if link.send(Kind::Reply, frame.number, request.reply(), &frame.sender).is_ok() {
            kit.served(&request);
        }
    });
    link.fault("drain");
    Ok(())
}
