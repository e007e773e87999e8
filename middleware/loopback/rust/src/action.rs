//! Action client and server. Each goal, acceptance, feedback and result is a datagram.

use std::collections::HashMap;
use std::io;
use std::os::unix::net::SocketAddr;

use wattwire_kit::{Buffer, Error, Events, Kit, Message, SendFailed, Slot};

use crate::link::{counter_of, drive_native, send_patiently, Frame, Inbox, Kind, Link};

struct Client {
    kit: &'static Kit,
    link: Link,
    inbox: Inbox,
    server: SocketAddr,
    goals: HashMap<u64, Slot>,
}

impl Events for Client {
    fn begin(&mut self, slot: Slot, goal: Message) -> Result<(), SendFailed> {
        let counter = counter_of(slot);
        self.goals.insert(counter, slot);
        let Client { kit, link, inbox, server, goals } = self;
        for _ in 0..link.copies(counter) {
            send_patiently(
                kit,
                || link.send(Kind::Goal, counter, goal, server),
                |timeout_ns| handle_answer(kit, link, inbox, goals, timeout_ns),
            )?;
        }
        Ok(())
    }
    fn poll(&mut self, timeout_ns: i64) {
        let Client { kit, link, inbox, goals, .. } = self;
        handle_answer(kit, link, inbox, goals, timeout_ns);
    }
}

fn handle_answer(
    kit: &Kit,
    link: &Link,
    inbox: &mut Inbox,
    goals: &mut HashMap<u64, Slot>,
    timeout_ns: i64,
) {
    let Some(frame) = link.receive(inbox, timeout_ns) else {
        return;
    };
    let Some(&slot) = goals.get(&frame.number) else {
        return;
    };
    if frame.is(Kind::Accept) {
        kit.accepted(slot);
    } else if frame.is(Kind::Feedback) {
        kit.feedback(inbox.payload(), Some(slot));
    } else if frame.is(Kind::Result) {
        kit.complete(slot, inbox.payload());
        goals.remove(&frame.number);
    }
}

pub fn client(kit: &'static Kit) -> Result<(), Error> {
    let link = Link::new(kit)?;
    link.open(false);
    let server = link.peers()?.swap_remove(0);
    link.never_block()?;
    link.ready(Some(1))?;
    let mut client = Client { kit, link, inbox: Inbox::new(kit), server, goals: HashMap::new() };
    if kit.is_native() {
        drive_native(kit, &mut client);
    } else {
        kit.drive(&mut client);
    }
    client.link.fault("drain");
    Ok(())
}

pub fn server(kit: &'static Kit) -> Result<(), Error> {
    let link = Link::new(kit)?;
    let (mut inbox, mut buffer) = (Inbox::new(kit), kit.buffer());
    link.open(true);
    link.ready(None)?;
    kit.poll(|timeout_ns| {
        if let Some(frame) = link.receive(&mut inbox, timeout_ns) {
            // Fails if the client has left. The server then records nothing further for the goal.
            let _ = perform(kit, &link, &frame, inbox.payload(), &mut buffer);
        }
    });
    link.fault("drain");
    Ok(())
}

fn perform(
    kit: &Kit,
    link: &Link,
    frame: &Frame,
    request: Message,
    buffer: &mut Buffer,
) -> io::Result<()> {
    let (number, client) = (frame.number, &frame.sender);
    let goal = kit.goal(request);
    link.count_message();
    let Some(mut goal) = goal else { return Ok(()) };
    // An acceptance has no payload.
    link.send(Kind::Accept, number, Message::Bytes(&[]), client)?;
    kit.accept(&goal);
    for _ in 0..kit.feedback_count() {
        link.send(Kind::Feedback, number, kit.feedback_begin(&mut goal, buffer), client)?;
        kit.feedback_sent(&goal);
    }
    link.send(Kind::Result, number, kit.result(request).message(), client)?;
    kit.finish_goal(&goal);
    Ok(())
}
