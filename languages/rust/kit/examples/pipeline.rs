//! A pipeline over datagrams of AF_UNIX, for a test of the kit.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use wattwire_kit::{readable, run, Error, Guarantee, Kit, Library, Ready};

const BYTES_MAX: usize = 4096;

fn main() {
    run(&[("source", send), ("relay", relay), ("sink", receive)])
}

fn listen(kit: &Kit) -> io::Result<UnixDatagram> {
    let name = format!("wattwire-kit-{}-{}", kit.string("run"), kit.integer("node"));
    let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
    kit.listening(&[name]);
    Ok(socket)
}

fn successor(kit: &Kit) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(kit.strings("peers.endpoints")[0])
}

fn ready(kit: &Kit) {
    kit.ready(&Ready {
        matched: None,
        library: Library::default(),
        effective: Vec::new(),
        guarantee: Guarantee { delivery: "reliable", ordering: "per_sender", overload: "block" },
        discovery_ns: None,
    });
}

/// Passes each arrival to `handle` until the node may end.
fn receive_all(kit: &Kit, socket: &UnixDatagram, mut handle: impl FnMut(&[u8])) {
    let mut buffer = [0; BYTES_MAX];
    kit.poll(|timeout_ns| {
        if readable(socket, timeout_ns) {
            if let Ok(length) = socket.recv(&mut buffer) {
                handle(&buffer[..length]);
            }
        }
    });
}

fn send(kit: &'static Kit) -> Result<(), Error> {
    let (socket, successor) = (UnixDatagram::unbound()?, successor(kit)?);
    ready(kit);
    kit.send_all(|message| socket.send_to_addr(message.bytes(), &successor).is_ok())
}

fn relay(kit: &'static Kit) -> Result<(), Error> {
    let (socket, successor) = (listen(kit)?, successor(kit)?);
    ready(kit);
    receive_all(kit, &socket, |data| {
        if let Some(relay) = kit.relay(data) {
            kit.relayed(&relay, socket.send_to_addr(data, &successor));
        }
    });
    Ok(())
}

fn receive(kit: &'static Kit) -> Result<(), Error> {
    let socket = listen(kit)?;
    ready(kit);
    receive_all(kit, &socket, |data| kit.received(data));
    Ok(())
}
