//! A UDP socket with its effective options.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::time::Duration;

use socket2::{Domain, SockRef, Socket, Type};
use wattwire_kit::{failed, readable, Error, Guarantee, Kit, Library, Message, Ready, COMPILER};

const DATAGRAM_BYTES_MAX: usize = 65_536;

/// A socket and its last received datagram.
pub struct Port {
    kit: &'static Kit,
    socket: UdpSocket,
    own: Ipv4Addr,
    /// The socket's timeout; None: no timeout.
    limit_ms: Option<i64>,
    buffer: Vec<u8>,
    length: usize,
}

impl Port {
    /// Opens a sender's socket on a free port of the interface that leads to all peers.
    pub fn open(kit: &'static Kit, peers: &[SocketAddr]) -> Result<Self, Error> {
        let own = own_address(peers)?;
        Ok(Port { own, ..Port::over(kit, open(kit, SocketAddrV4::new(own, 0))?) })
    }

    /// Binds settings.bind_address and bind_port (0: a free port) and prints LISTENING.
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

    /// Binds a new port. Datagrams on their way to the old port are lost.
    pub fn reopen(&mut self) -> Result<(), Error> {
        self.socket = open(self.kit, SocketAddrV4::new(self.own, 0))?;
        self.limit_ms = None;
        Ok(())
    }

    /// Prints READY. A datagram socket does not detect its peers, so `matched` is None.
    pub fn ready(&self, discovery_ns: Option<i64>) -> Result<(), Error> {
        let mut effective = self.kit.spec().settings();
        let socket = SockRef::from(&self.socket);
        effective.insert("receive_buffer_bytes".into(), socket.recv_buffer_size()?.into());
        effective.insert("send_buffer_bytes".into(), socket.send_buffer_size()?.into());
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

    /// Waits for a datagram with a single system call, without a limit if `timeout_ns` is None.
    /// Returns whether a datagram arrived. May exceed the timeout by up to 1 ms.
    pub fn receive(&mut self, timeout_ns: Option<i64>) -> bool {
        if !self.limit(timeout_ns) {
            return false;
        }
        // Errors of earlier sends and interruptions are not arrivals.
        let Ok(length) = self.socket.recv(&mut self.buffer) else { return false };
        self.length = length;
        true
    }

    /// Like `receive`, but returns the sender.
    pub fn receive_from(&mut self, timeout_ns: Option<i64>) -> Option<SocketAddr> {
        if !self.limit(timeout_ns) {
            return None;
        }
        let (length, sender) = self.socket.recv_from(&mut self.buffer).ok()?;
        self.length = length;
        Some(sender)
    }

    /// Like `receive`, but with a timeout in ns resolution for event loops.
    pub fn receive_until(&mut self, timeout_ns: i64) -> bool {
        readable(&self.socket, timeout_ns) && self.receive(Some(timeout_ns))
    }

    /// Sets the timeout of the next wait. Returns false if the kernel rejects it.
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

/// Returns the local address of the route to all peers, or UNSPECIFIED if the routes differ. Sends
/// nothing.
fn own_address(peers: &[SocketAddr]) -> io::Result<Ipv4Addr> {
    let mut common = None;
    for peer in peers {
        let probe = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        let local = match probe.connect(peer).and_then(|()| probe.local_addr()) {
            Ok(SocketAddr::V4(local)) if common.unwrap_or(*local.ip()) == *local.ip() => {
                *local.ip()
            }
            _ => return Ok(Ipv4Addr::UNSPECIFIED),
        };
        common = Some(local);
    }
    Ok(common.unwrap_or(Ipv4Addr::UNSPECIFIED))
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

/// Returns the destinations of a sender: settings.endpoint_override, or peers.endpoints.
pub fn peer_addresses(kit: &Kit) -> Result<Vec<SocketAddr>, Error> {
    let override_key = "settings.endpoint_override";
    match kit.string(override_key) {
        "" => endpoint_addresses(kit),
        listed => addresses_of(override_key, &listed.split(',').collect::<Vec<_>>()),
    }
}

/// Returns the destination of a relay, which ignores settings.endpoint_override.
pub fn successor_address(kit: &Kit) -> Result<SocketAddr, Error> {
    let mut addresses = endpoint_addresses(kit)?;
    Ok(addresses.swap_remove(addresses.len() - 1))
}

fn endpoint_addresses(kit: &Kit) -> Result<Vec<SocketAddr>, Error> {
    addresses_of("peers.endpoints", &kit.strings("peers.endpoints"))
}

/// Returns at least one address. Fails if the spec's `key` has another value.
fn addresses_of(key: &str, endpoints: &[&str]) -> Result<Vec<SocketAddr>, Error> {
    let bad = |found: &str| Error::bad_spec(key, found, "IPv4-ADDRESS:PORT, at least one");
    if endpoints.is_empty() {
        return Err(bad("[]"));
    }
    let address = |endpoint: &&str| {
        let address: Result<SocketAddrV4, _> = endpoint.parse();
        address.ok().filter(|a| a.port() != 0).map(Into::into).ok_or_else(|| bad(endpoint))
    };
    endpoints.iter().map(address).collect()
}
