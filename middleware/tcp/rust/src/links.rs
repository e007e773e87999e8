//! The streams of senders and listeners, and their READY.

use std::cell::Cell;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use socket2::{Domain, SockRef, Socket, Type};
use wattwire_kit::{failed, Error, Guarantee, Kit, Library, Ready, COMPILER};

use crate::stream::{wait_any, Frame, Inbox, Stream};

const BACKLOG: i32 = 128;

/// Opens a socket with the settings. Buffer sizes must be set before connecting or listening.
fn open_socket(kit: &Kit) -> Result<Socket, Error> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    let (receive, send) = ("settings.receive_buffer_bytes", "settings.send_buffer_bytes");
    if kit.integer(receive) != 0 {
        socket.set_recv_buffer_size(kit.integer(receive) as usize)?;
    }
    if kit.integer(send) != 0 {
        socket.set_send_buffer_size(kit.integer(send) as usize)?;
    }
    socket.set_tcp_nodelay(kit.boolean("settings.tcp_nodelay"))?;
    Ok(socket)
}

/// Returns a stream to each entry of peers.endpoints, in the same order. The list is never empty.
pub fn connect_all(kit: &Kit) -> Result<Vec<Stream>, Error> {
    connect(kit, kit.integer("peers.count").max(1))
}

/// Returns the stream of a relay to its successor.
pub fn connect_successor(kit: &Kit) -> Result<Stream, Error> {
    let mut streams = connect(kit, 1)?;
    Ok(streams.swap_remove(streams.len() - 1))
}

fn connect(kit: &Kit, peers: i64) -> Result<Vec<Stream>, Error> {
    let key = "peers.endpoints";
    let endpoints = kit.strings(key);
    if (endpoints.len() as i64) < peers {
        let count = format!("{} entries", endpoints.len());
        return Err(Error::bad_spec(key, count, format!("at least {peers} HOST:PORT")));
    }
    let limit = Duration::from_millis(kit.integer("ready_timeout_ms") as u64);
    let connected = |endpoint: &&str| {
        let address: SocketAddrV4 = endpoint
            .parse()
            .map_err(|_| Error::bad_spec(key, endpoint, "an IPv4 address and a port"))?;
        let socket = open_socket(kit)?;
        socket
            .connect_timeout(&address.into(), limit)
            .map_err(|error| failed(format!("connect {endpoint}: {error}")))?;
        Ok(Stream::new(kit, TcpStream::from(socket))?)
    };
    endpoints.iter().map(connected).collect()
}

/// Returns the address on which this node listens and its key: the setting, or the host's if the
/// setting is empty.
fn listen_address(kit: &Kit) -> (&'static str, &str) {
    match kit.string("settings.bind_address") {
        "" => ("host.address", kit.string("host.address")),
        setting => ("settings.bind_address", setting),
    }
}

/// A listening socket and the streams that it accepted.
pub struct Listener {
    kit: &'static Kit,
    pub socket: TcpListener,
    pub accepted: usize,
    streams: Vec<(Stream, Inbox)>,
    waited: Vec<libc::pollfd>,
}

impl Listener {
    /// Listens and prints LISTENING.
    pub fn new(kit: &'static Kit) -> Result<Self, Error> {
        let (key, host) = listen_address(kit);
        let address: Ipv4Addr =
            host.parse().map_err(|_| Error::bad_spec(key, host, "an IPv4 address"))?;
        let socket = open_socket(kit)?;
        let address = SocketAddrV4::new(address, 0);
        socket
            .bind(&address.into())
            .and_then(|()| socket.listen(BACKLOG))
            .map_err(|error| failed(format!("listen on {host}: {error}")))?;
        socket.set_nonblocking(true)?;
        let socket = TcpListener::from(socket);
        kit.listening(&[socket.local_addr()?.to_string()]);
        Ok(Listener { kit, socket, accepted: 0, streams: Vec::new(), waited: Vec::new() })
    }

    /// Polls until peers.count nodes are connected. This node has connected to `connected` of them.
    /// Returns the duration in ns.
    pub fn await_peers(
        &mut self,
        connected: usize,
        handle: impl Fn(&Stream, &Frame, &[u8]),
    ) -> Result<i64, Error> {
        let (kit, matched) = (self.kit, Cell::new(connected));
        kit.await_peers(
            || matched.get(),
            |timeout_ns| {
                self.poll(timeout_ns, &handle);
                matched.set(connected + self.accepted);
            },
        )
    }

    /// Waits for arrivals, accepts connections, and passes every complete frame with its payload to
    /// `handle`.
    pub fn poll(&mut self, timeout_ns: i64, mut handle: impl FnMut(&Stream, &Frame, &[u8])) {
        let entry = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        self.waited.clear();
        self.waited.push(entry(self.socket.as_raw_fd()));
        self.waited.extend(self.streams.iter().map(|(s, _)| entry(s.socket.as_raw_fd())));
        if !wait_any(&mut self.waited, timeout_ns) {
            return;
        }
        for ((stream, inbox), waited) in self.streams.iter_mut().zip(&self.waited[1..]) {
            if waited.revents == 0 {
                continue;
            }
            stream.read(inbox);
            while let Some(frame) = stream.take(inbox) {
                handle(stream, &frame, inbox.payload(&frame));
            }
        }
        self.streams.retain(|(stream, _)| stream.is_open());
        if self.waited[0].revents != 0 {
            self.accept();
        }
    }

    fn accept(&mut self) {
        // Accepting fails if the peer has already left.
        let Ok((socket, _)) = self.socket.accept() else { return };
        if let Ok(stream) = Stream::new(self.kit, socket) {
            self.streams.push((stream, Inbox::new()));
            self.accepted += 1;
        }
    }
}

/// Prints READY with the effective options of `socket`.
pub fn ready(
    kit: &Kit,
    socket: &impl AsFd,
    matched: usize,
    discovery_ns: i64,
) -> Result<(), Error> {
    let socket = SockRef::from(socket);
    let effective = vec![
        ("bind_address", listen_address(kit).1.into()),
        ("tcp_nodelay", socket.tcp_nodelay()?.into()),
        ("receive_buffer_bytes", socket.recv_buffer_size()?.into()),
        ("send_buffer_bytes", socket.send_buffer_size()?.into()),
        ("segment_bytes", socket.tcp_mss()?.into()),
        ("transport", "tcp/ipv4".into()),
    ];
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
    kit.ready(&Ready {
        matched: Some(matched),
        library: Library {
            name: "socket".into(),
            version: release.trim().into(),
            build: COMPILER.into(),
        },
        effective,
        guarantee: Guarantee { delivery: "reliable", ordering: "per_sender", overload: "block" },
        discovery_ns: Some(discovery_ns),
    });
    Ok(())
}
