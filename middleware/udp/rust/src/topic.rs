//! Publisher and subscriber, and the relay of a pipeline. The publisher sends each message to every
//! subscriber's address.

use wattwire_kit::{Error, Kit};

use crate::socket::{peer_addresses, successor_address, Port};

pub fn publish(kit: &'static Kit) -> Result<(), Error> {
    let addresses = peer_addresses(kit)?;
    let port = Port::open(kit)?;
    port.ready(None)?;
    kit.send_all(|message| {
        let mut good = true;
        for &address in &addresses {
            good &= port.send(message, address).is_ok();
        }
        good
    })
}

pub fn subscribe(kit: &'static Kit) -> Result<(), Error> {
    let mut port = Port::listen(kit)?;
    port.ready(None)?;
    kit.poll_untimed(|timeout_ns| {
        if port.receive_from(timeout_ns).is_some() {
            kit.received(port.message());
        }
    });
    Ok(())
}

/// Sends from a second socket, and only to the successor.
pub fn relay(kit: &'static Kit) -> Result<(), Error> {
    let mut port = Port::listen(kit)?;
    let successor = successor_address(kit)?;
    let sender = Port::open(kit)?;
    port.ready(None)?;
    kit.poll_untimed(|timeout_ns| {
        if port.receive_from(timeout_ns).is_none() {
            return;
        }
        if let Some(relay) = kit.relay(port.message()) {
            kit.relayed(&relay, sender.send(port.message(), successor));
        }
    });
    Ok(())
}
