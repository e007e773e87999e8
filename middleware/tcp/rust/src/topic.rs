//! Publisher and subscriber: the publisher sends each message once to every subscriber.

use wattwire_kit::{now_ns, Error, Kit};

use crate::links::{connect_all, ready, Listener};
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
    let discovery_ns = listener.await_peers(take)?;
    ready(kit, &listener.socket, listener.accepted, discovery_ns)?;
    kit.poll(|timeout_ns| listener.poll(timeout_ns, take));
    Ok(())
}
