//! A UDP socket with its effective options.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::time::Duration;

use socket2::{Domain, SockRef, Socket, Type};
use wattwire_kit::{failed, readable, Error, Guarantee, Kit, Library, Message, Ready, COMPILER};

const DATAGRAM_BYTES_MAX: usize = 65_536;

/// Returns the address on which this node listens and its key: the setting, or the host's if the
/// setting is empty.
fn listen_address(kit: &Kit) -> (&'static str, &str) {
    match kit.string("settings.bind_address") {
        "" => ("host.address", kit.string("host.address")),
        setting => ("settings.bind_address", setting),
    }
}

/// A socket and its last received datagram.
pub struct Port {
    kit: &'static Kit,
    socket: UdpSocket,
    /// The socket's timeout; None: no timeout.
    limit_ms: Option<i64>,
    buffer: Vec<u8>,
    length: usize,
}

impl Port {
    /// Opens a sender's socket on a free port of the host's address.
    pub fn open(kit: &'static Kit) -> Result<Self, Error> {
        Ok(Port::over(kit, open(kit, free_port(kit))?))
    }

    /// Binds `listen_address` and settings.bind_port (0: a free port) and prints LISTENING.
    pub fn listen(kit: &'static Kit) -> Result<Self, Error> {
        let (key, host) = listen_address(kit);
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
        Port { kit, socket, limit_ms: None, buffer: vec![0; DATAGRAM_BYTES_MAX], length: 0 }
    }

    /// Binds a new port. Datagrams on their way to the old port are lost.
    pub fn reopen(&mut self) -> Result<(), Error> {
        self.socket = open(self.kit, free_port(self.kit))?;
        self.limit_ms = None;
        Ok(())
    }

    /// Prints READY. A datagram socket does not detect its peers, so `matched` is None.
    pub fn ready(&self, discovery_ns: Option<i64>) -> Result<(), Error> {
        let socket = SockRef::from(&self.socket);
        let effective = vec![
            ("receive_buffer_bytes", socket.recv_buffer_size()?.into()),
            ("send_buffer_bytes", socket.send_buffer_size()?.into()),
            ("bind_address", listen_address(self.kit).1.into()),
            ("transport", "udp/ipv4".into()),
        ];
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

fn free_port(kit: &Kit) -> SocketAddrV4 {
    let own = kit.string("host.address").parse().expect("the kit has checked it");
    SocketAddrV4::new(own, 0)
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
