//! Publisher and subscriber, and the relay of a pipeline. The publisher sends each message once to
//! every subscriber.

use wattwire_kit::{now_ns, Error, Kit};

use crate::links::{connect_all, connect_successor, ready, Listener};
use crate::stream::{Frame, Kind, Stream};

pub fn publish(kit: &'static Kit) -> Result<(), Error> {
    let begin_ns = now_ns();
    let streams = connect_all(kit)?;
    ready(kit, &streams[0].socket, streams.len(), now_ns() - begin_ns)?;
    kit.send_all(|message| {
        let mut good = true;
        for stream in &streams {
            good &= stream.send(Kind::Message, 0, message.bytes()).is_ok();
        }
        good
    })
}

pub fn subscribe(kit: &'static Kit) -> Result<(), Error> {
    let mut listener = Listener::new(kit)?;
    let take = |_: &Stream, _: &Frame, payload: &[u8]| kit.received(payload);
    let discovery_ns = listener.await_peers(0, take)?;
    ready(kit, &listener.socket, listener.accepted, discovery_ns)?;
    kit.poll(|timeout_ns| listener.poll(timeout_ns, take));
    Ok(())
}

pub fn relay(kit: &'static Kit) -> Result<(), Error> {
    let mut listener = Listener::new(kit)?;
    let successor = connect_successor(kit)?;
    let forward = |_: &Stream, frame: &Frame, payload: &[u8]| {
        if let Some(relay) = kit.relay(payload) {
            kit.relayed(&relay, successor.send(Kind::Message, frame.number, payload));
        }
    };
    let discovery_ns = listener.await_peers(1, forward)?;
    ready(kit, &successor.socket, 1 + listener.accepted, discovery_ns)?;
    kit.poll(|timeout_ns| listener.poll(timeout_ns, forward));
    Ok(())
}
