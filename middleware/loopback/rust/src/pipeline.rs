//! Relay of a pipeline. It sends the frames that arrive, so it does not encode a record again.

use wattwire_kit::{Error, Kit};

use crate::link::{Inbox, Link};

pub fn relay(kit: &'static Kit) -> Result<(), Error> {
    let link = Link::new(kit)?;
    let mut inbox = Inbox::new(kit);
    link.open(true);
    let successor = link.successor()?;
    link.ready(None)?;
    kit.poll(|timeout_ns| {
        let Some(frame) = link.receive(&mut inbox, timeout_ns) else { return };
        let Some(relay) = kit.relay(inbox.payload()) else { return };
        let mut copies = 0..link.copies(frame.number);
        kit.relayed(&relay, copies.try_for_each(|_| link.forward(&inbox, &successor)));
    });
    link.fault("drain");
    Ok(())
}
