//! Publisher and subscriber, with one datagram per message and subscriber.

use std::os::unix::net::SocketAddr;

use wattwire_kit::{now_ns, sleep_until_ns, Error, Events, Kit, Message, SendFailed, Slot};

use crate::link::{counter_of, drive_native, Inbox, Kind, Link};

struct Publisher {
    kit: &'static Kit,
    link: Link,
    peers: Vec<SocketAddr>,
}

impl Publisher {
    fn transmit(&self, counter: u64, message: Message) -> bool {
        let mut good = true;
        for _ in 0..self.link.copies(counter) {
            for peer in &self.peers {
                good &= self.link.send(Kind::Message, counter, message, peer).is_ok();
            }
        }
        good
    }
}

impl Events for Publisher {
    fn begin(&mut self, slot: Slot, message: Message) -> Result<(), SendFailed> {
        if !self.transmit(counter_of(slot), message) {
            return Err(SendFailed);
        }
        self.kit.taken(slot);
        Ok(())
    }
    fn poll(&mut self, timeout_ns: i64) {
        sleep_until_ns(now_ns() + timeout_ns);
    }
}

pub fn publish(kit: &'static Kit) -> Result<(), Error> {
    let link = Link::new(kit)?;
    link.open(false);
    let peers = link.peers()?;
    link.ready(Some(peers.len()))?;
    let mut publisher = Publisher { kit, link, peers };
    if kit.is_native() {
        drive_native(kit, &mut publisher);
    } else {
        let mut counters = 0..;
        kit.send_all(|message| counters.next().is_some_and(|c| publisher.transmit(c, message)))?;
    }
    publisher.link.fault("drain");
    Ok(())
}

pub fn subscribe(kit: &'static Kit) -> Result<(), Error> {
    let link = Link::new(kit)?;
    let mut inbox = Inbox::new(kit);
    link.open(true);
    link.ready(None)?;
    kit.poll(|timeout_ns| {
        if link.receive(&mut inbox, timeout_ns).is_some() {
            kit.received(inbox.payload());
            link.count_message();
        }
    });
    link.fault("drain");
    Ok(())
}
