//! Client and server, ping and pong. Each request and each reply is a datagram.

use std::collections::HashMap;
use std::net::SocketAddr;

use wattwire_kit::{Call, Error, Events, Kit, Message, SendFailed, Slot};

use crate::socket::{peer_addresses, Port};

/// The encoded sequence at the beginning of a request and of its reply.
type Header = [u8; 16];

struct Client {
    kit: &'static Kit,
    port: Port,
    server: SocketAddr,
    header_bytes: usize,
    waiting: HashMap<Header, Slot>,
}

impl Client {
    fn header_of(&self, message: Message) -> Option<Header> {
        let mut header = Header::default();
        let count = self.header_bytes;
        header[..count].copy_from_slice(message.bytes().get(..count)?);
        Some(header)
    }
}

impl Call for Client {
    fn call(
        &mut self,
        request: Message,
        timeout_ns: i64,
    ) -> Result<Option<Message<'_>>, SendFailed> {
        self.port.send(request, self.server)?;
        // The call has just begun, so its first wait needs no reading of the clock.
        let mut left_ns = timeout_ns;
        while left_ns > 0 {
            if self.port.receive(Some(left_ns)) && self.kit.is_reply(self.port.message()) {
                return Ok(Some(self.port.message()));
            }
            left_ns = self.kit.call_left_ns(timeout_ns);
        }
        // If replies carry no sequence, a new port separates them from late replies.
        if !self.kit.carries_seq() || self.kit.string("reply") == "literal" {
            self.port.reopen().map_err(|_| SendFailed)?;
        }
        Ok(None)
    }
}

impl Events for Client {
    fn begin(&mut self, slot: Slot, request: Message) -> Result<(), SendFailed> {
        let header = self.header_of(request).ok_or(SendFailed)?;
        self.waiting.insert(header, slot);
        Ok(self.port.send(request, self.server)?)
    }
    fn poll(&mut self, timeout_ns: i64) {
        if !self.port.receive_until(timeout_ns) {
            return;
        }
        let Some(header) = self.header_of(self.port.message()) else {
            return;
        };
        if let Some(slot) = self.waiting.remove(&header) {
            self.kit.complete(slot, self.port.message());
        }
    }
}

pub fn client(kit: &'static Kit) -> Result<(), Error> {
    // Only the sequence matches a datagram to its call.
    if kit.overlaps() && (!kit.carries_seq() || kit.string("reply") == "literal") {
        let reason = "outstanding_max above 1, because replies carry no sequence";
        return Err(Error::Unsupported(reason.into()));
    }
    let server = peer_addresses(kit)?.swap_remove(0);
    let header_bytes = if kit.encoding() == "text" { 16 } else { 8 };
    let port = Port::open(kit)?;
    let mut client = Client { kit, port, server, header_bytes, waiting: HashMap::new() };
    let discovery_ns = kit.probe(&mut client)?;
    client.port.ready(Some(discovery_ns))?;
    if kit.overlaps() {
        kit.drive(&mut client);
        return Ok(());
    }
    kit.call_all(&mut client)
}

pub fn server(kit: &'static Kit) -> Result<(), Error> {
    let mut port = Port::listen(kit)?;
    port.ready(None)?;
    kit.poll_untimed(|timeout_ns| {
        let Some(client) = port.receive_from(timeout_ns) else {
            return;
        };
        if let Some(request) = kit.serve(port.message()) {
            // Sending fails if the client has left. The server then records no call.
            if port.send(request.reply(), client).is_ok() {
                kit.served(&request);
            }
        }
    });
    Ok(())
}
