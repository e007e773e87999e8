//! A UDP socket, and what the kernel really granted it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::time::Duration;

use socket2::{Domain, SockRef, Socket, Type};
use wattwire_kit::{failed, readable, Error, Guarantee, Kit, Library, Message, Ready, COMPILER};

const DATAGRAM_BYTES_MAX: usize = 65_536;

/// A socket and the datagram that it received last.
pub struct Port {
    kit: &'static Kit,
    socket: UdpSocket,
    own: Ipv4Addr,
    /// The socket's time limit; None: it waits for ever.
    limit_ms: Option<i64>,
    buffer: Vec<u8>,
    length: usize,
}

impl Port {
    /// A sender's: a free port on the one interface that leads to all peers.
    pub fn open(kit: &'static Kit, peers: &[SocketAddr]) -> Result<Self, Error> {
        let own = own_address(peers)?;
        Ok(Port { own, ..Port::over(kit, open(kit, SocketAddrV4::new(own, 0))?) })
    }

    /// On settings.bind_address and bind_port (0: a free one); prints LISTENING.
    pub fn listen(kit: &'static Kit) -> Result<Self, Error> {
        let (key, host) = ("settings.bind_address", kit.string("settings.bind_address"));
        let address: Ipv4Addr =
            host.parse().map_err(|_| Error::bad_spec(key, host, "an IPv4 address"))?;
        let (key, port) = ("settings.bind_port", kit.integer("settings.bind_port"));
        let port =
            u16::try_from(port).map_err(|_| Error::bad_spec(key, port, "a port, 0 to 65535"))?;
        let socket = open(kit, SocketAddrV4::new(address, port))?;
        kit.listening(&[socket.local_addr()?.to_string()]);
        Ok(Port::over(kit, socket))
    }

    fn over(kit: &'static Kit, socket: UdpSocket) -> Self {
        let (own, buffer) = (Ipv4Addr::UNSPECIFIED, vec![0; DATAGRAM_BYTES_MAX]);
        Port { kit, socket, own, limit_ms: None, buffer, length: 0 }
    }

    /// A new port: what is still on its way to the old one is lost.
    pub fn reopen(&mut self) -> Result<(), Error> {
        self.socket = open(self.kit, SocketAddrV4::new(self.own, 0))?;
        self.limit_ms = None;
        Ok(())
    }

    /// READY of a datagram socket: it cannot tell who is there, so `matched` is None.
    pub fn ready(&self, discovery_ns: Option<i64>) -> Result<(), Error> {
        let mut effective = self.kit.spec().settings();
        let asked = SockRef::from(&self.socket);
        effective.insert("receive_buffer_bytes".into(), asked.recv_buffer_size()?.into());
        effective.insert("send_buffer_bytes".into(), asked.send_buffer_size()?.into());
        effective.insert("transport".into(), "udp/ipv4".into());
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
        self.kit.ready(&Ready {
            matched: None,
            library: Library {
                name: "socket".into(),
                version: release.trim().into(),
                build: COMPILER.into(),
            },
            effective,
            guarantee: Guarantee {
                delivery: "best_effort",
                ordering: "none",
                overload: "drop_newest",
            },
            discovery_ns,
        });
        Ok(())
    }

    pub fn send(&self, message: Message, to: SocketAddr) -> io::Result<()> {
        self.socket.send_to(message.bytes(), to).map(|_| ())
    }

    /// Whether a datagram came in time. One system call where one comes; may wait for up to a
    /// millisecond more. Without a timeout it waits until one comes.
    pub fn receive(&mut self, timeout_ns: Option<i64>) -> bool {
        if !self.limit(timeout_ns) {
            return false;
        }
        // An error of an earlier send is not an arrival, and neither is an interruption.
        let Ok(length) = self.socket.recv(&mut self.buffer) else { return false };
        self.length = length;
        true
    }

    /// The same, with the sender.
    pub fn receive_from(&mut self, timeout_ns: Option<i64>) -> Option<SocketAddr> {
        if !self.limit(timeout_ns) {
            return None;
        }
        let (length, sender) = self.socket.recv_from(&mut self.buffer).ok()?;
        self.length = length;
        Some(sender)
    }

    /// The same for a loop that has a schedule to keep: waits to the nanosecond.
    pub fn receive_until(&mut self, timeout_ns: i64) -> bool {
        readable(&self.socket, timeout_ns) && self.receive(Some(timeout_ns))
    }

    /// Sets the time limit of the next wait; false where the kernel refuses it.
    fn limit(&mut self, timeout_ns: Option<i64>) -> bool {
        let limit_ms = timeout_ns.map(|ns| ns / 1_000_000 + 1);
        if limit_ms != self.limit_ms {
            let limit = limit_ms.map(|ms| Duration::from_millis(ms as u64));
            if self.socket.set_read_timeout(limit).is_err() {
                return false;
            }
            self.limit_ms = limit_ms;
        }
        true
    }

    pub fn message(&self) -> Message<'_> {
        self.buffer[..self.length].into()
    }
}

/// This host's address on the way to all peers, any address where they differ. Sends nothing.
fn own_address(peers: &[SocketAddr]) -> io::Result<Ipv4Addr> {
    let mut found = None;
    for peer in peers {
        let probe = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        let own = match probe.connect(peer).and_then(|()| probe.local_addr()) {
            Ok(SocketAddr::V4(own)) if found.unwrap_or(*own.ip()) == *own.ip() => *own.ip(),
            _ => return Ok(Ipv4Addr::UNSPECIFIED),
        };
        found = Some(own);
    }
    Ok(found.unwrap_or(Ipv4Addr::UNSPECIFIED))
}

fn open(kit: &Kit, address: SocketAddrV4) -> Result<UdpSocket, Error> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
    let (receive, send) = ("settings.receive_buffer_bytes", "settings.send_buffer_bytes");
    if kit.integer(receive) != 0 {
        socket.set_recv_buffer_size(kit.integer(receive) as usize)?;
    }
    if kit.integer(send) != 0 {
        socket.set_send_buffer_size(kit.integer(send) as usize)?;
    }
    socket.bind(&address.into()).map_err(|error| failed(format!("bind {address}: {error}")))?;
    Ok(socket.into())
}

/// Where a sender sends to: settings.endpoint_override, or peers.endpoints.
pub fn peer_addresses(kit: &Kit) -> Result<Vec<SocketAddr>, Error> {
    let override_key = "settings.endpoint_override";
    let (key, endpoints) = match kit.string(override_key) {
        "" => ("peers.endpoints", kit.strings("peers.endpoints")),
        listed => (override_key, listed.split(',').collect()),
    };
    let bad = |found: &str| Error::bad_spec(key, found, "IPv4-ADDRESS:PORT, at least one");
    if endpoints.is_empty() {
        return Err(bad("[]"));
    }
    let address = |endpoint: &&str| {
        let found: Result<SocketAddrV4, _> = endpoint.parse();
        found.ok().filter(|a| a.port() != 0).map(Into::into).ok_or_else(|| bad(endpoint))
    };
    endpoints.iter().map(address).collect()
}
