//! Common code of all roles: the socket, frames, planted faults and the timer.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use socket2::SockRef;
use wattwire_kit::{
    failed, now_ns, readable, sleep_until_ns, Error, Events, Guarantee, Kit, Library, Message,
    Ready, Record, Slot, COMPILER, COUNTER_MASK,
};

/// The kind of a frame. A frame consists of its kind, the number of its call, and the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Message,
    Request,
    Reply,
    Goal,
    Accept,
    Feedback,
    Result,
}
const HEAD_BYTES: usize = 9;
const FRAME_BYTES_MAX: usize = 262_144;
const FAULT_MESSAGE: u64 = 4;

/// Room for the longest message. The kernel limits it to net.core.wmem_max.
const SEND_BUFFER_BYTES: usize = 212_992;

/// The buffer for arrivals. Each `Link::receive` overwrites it.
pub struct Inbox {
    frame: Vec<u8>,
    length: usize,
    record: Option<Record>,
    is_record: bool,
}

impl Inbox {
    pub fn new(kit: &Kit) -> Self {
        let is_record = kit.encoding() == "record";
        Inbox { frame: vec![0; FRAME_BYTES_MAX], length: HEAD_BYTES, record: None, is_record }
    }

    fn parse(&mut self, length: usize, sender: SocketAddr) -> Option<Frame> {
        self.length = length;
        let (head, payload) = self.frame[..length].split_at_checked(HEAD_BYTES)?;
        self.record = if self.is_record { Record::from_json(payload) } else { None };
        let number = u64::from_le_bytes(head[1..].try_into().ok()?);
        Some(Frame { kind: head[0], number, sender })
    }

    pub fn payload(&self) -> Message<'_> {
        match &self.record {
            Some(record) => record.into(),
            None if self.is_record => Message::Unreadable,
            None => self.frame[HEAD_BYTES..self.length].into(),
        }
    }
}

pub struct Frame {
    kind: u8,
    pub number: u64,
    pub sender: SocketAddr,
}

impl Frame {
    pub fn is(&self, kind: Kind) -> bool {
        self.kind == kind as u8
    }
}

pub struct Link {
    kit: &'static Kit,
    name: String,
    socket: UnixDatagram,
    out: RefCell<Vec<u8>>,
    messages: Cell<u64>,
    drops: BTreeSet<u64>,
    drop_every: u64,
    duplicate_every: u64,
    delay_us: i64,
}

impl Link {
    pub fn new(kit: &'static Kit) -> Result<Self, Error> {
        let name = format!("wattwire-{}-{}", kit.string("run"), kit.integer("node"));
        let socket = UnixDatagram::bind_addr(&address_of(&name)?)
            .map_err(|error| failed(format!("bind @{name}: {error}")))?;
        SockRef::from(&socket).set_send_buffer_size(SEND_BUFFER_BYTES)?;
        // Limits the wait for a peer that has stopped reading (C-12).
        let timeout = Duration::from_nanos(kit.integer("timeout_ns") as u64);
        socket.set_write_timeout(Some(timeout.max(Duration::from_micros(1))))?;
        let out = RefCell::new(Vec::with_capacity(FRAME_BYTES_MAX));
        let drops = read_drops(kit)?;
        Ok(Link {
            kit,
            name,
            socket,
            out,
            messages: Cell::new(0),
            drops,
            drop_every: kit.integer("settings.drop_every") as u64,
            duplicate_every: kit.integer("settings.duplicate_every") as u64,
            delay_us: kit.integer("settings.delay_us"),
        })
    }

    /// Returns the addresses of the peers from the endpoints `@name`, which must be bound.
    pub fn peers(&self) -> Result<Vec<SocketAddr>, Error> {
        self.addresses(self.kit.integer("peers.count"))
    }

    /// Returns the address of the next node of a pipeline, which must be bound.
    pub fn successor(&self) -> Result<SocketAddr, Error> {
        let mut addresses = self.addresses(1)?;
        Ok(addresses.swap_remove(addresses.len() - 1))
    }

    fn addresses(&self, peers: i64) -> Result<Vec<SocketAddr>, Error> {
        let endpoints = self.kit.strings("peers.endpoints");
        if (endpoints.len() as i64) < peers.max(1) {
            return Err(failed(format!("{} endpoints for {peers} peers", endpoints.len())));
        }
        let connected = |endpoint: &&str| {
            let address = address_of(endpoint.strip_prefix('@').unwrap_or(endpoint))?;
            UnixDatagram::unbound()?
                .connect_addr(&address)
                .map_err(|error| failed(format!("connect {endpoint}: {error}")))?;
            Ok(address)
        };
        endpoints.iter().map(connected).collect()
    }

    pub fn open(&self, listening: bool) {
        if listening {
            self.kit.listening(&[format!("@{}", self.name)]);
        }
        self.fault("before_ready");
    }

    /// Makes sending fail immediately if the peer's queue is full; see `send_patiently`.
    pub fn never_block(&self) -> io::Result<()> {
        self.socket.set_nonblocking(true)
    }

    pub fn ready(&self, matched: Option<usize>) -> Result<(), Error> {
        let granted = SockRef::from(&self.socket).send_buffer_size()?;
        let effective =
            vec![("send_buffer_bytes", granted.into()), ("transport", "unix datagram".into())];
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
        let planted = !self.drops.is_empty() || self.drop_every != 0;
        self.kit.ready(&Ready {
            matched,
            library: Library {
                name: "AF_UNIX".into(),
                version: release.trim().into(),
                build: COMPILER.into(),
            },
            effective,
            guarantee: Guarantee {
                delivery: if planted { "best_effort" } else { "reliable" },
                ordering: "per_sender",
                overload: "block",
            },
            discovery_ns: None,
        });
        Ok(())
    }

    /// Kills or blocks the process if the settings plant a fault at this stage.
    pub fn fault(&self, stage: &str) {
        let role = self.kit.string("settings.fault_role");
        if role != "any" && role != self.kit.string("role") {
            return;
        }
        if self.kit.string("settings.die_at") == stage {
            // SAFETY: the call ends this process.
            unsafe { libc::raise(libc::SIGKILL) };
        }
        while self.kit.string("settings.hang_at") == stage {
            std::thread::park();
        }
    }

    pub fn count_message(&self) {
        self.messages.set(self.messages.get() + 1);
        if self.messages.get() == FAULT_MESSAGE {
            self.fault("window");
        }
    }

    /// Returns the number of transmissions of this counter, which planted faults may change.
    pub fn copies(&self, counter: u64) -> usize {
        self.count_message();
        if self.delay_us > 0 {
            let end_ns = now_ns() + self.delay_us * 1000;
            while now_ns() < end_ns {
                sleep_until_ns(end_ns);
            }
        }
        if self.drops.contains(&counter) || hits(self.drop_every, counter) {
            return 0;
        }
        1 + usize::from(hits(self.duplicate_every, counter))
    }

    /// Sends a frame. Fails if the peer has left or its queue stayed full for timeout_ns.
    pub fn send(
        &self,
        kind: Kind,
        number: u64,
        payload: Message,
        to: &SocketAddr,
    ) -> io::Result<()> {
        let mut out = self.out.borrow_mut();
        out.clear();
        out.push(kind as u8);
        out.extend_from_slice(&number.to_le_bytes());
        match payload {
            Message::Record(record) => record.write_json(&mut out),
            _ => out.extend_from_slice(payload.bytes()),
        }
        self.socket.send_to_addr(&out, to).map(|_| ())
    }

    /// Sends the frame that arrived last, unchanged.
    pub fn forward(&self, inbox: &Inbox, to: &SocketAddr) -> io::Result<()> {
        self.socket.send_to_addr(&inbox.frame[..inbox.length], to).map(|_| ())
    }

    pub fn receive(&self, inbox: &mut Inbox, timeout_ns: i64) -> Option<Frame> {
        if !readable(&self.socket, timeout_ns) {
            return None;
        }
        let (length, sender) = self.socket.recv_from(&mut inbox.frame).ok()?;
        inbox.parse(length, sender)
    }
}

fn hits(every: u64, counter: u64) -> bool {
    every != 0 && counter % every == every - 1
}

/// Returns an abstract address, so that a killed node leaves no file.
fn address_of(name: &str) -> Result<SocketAddr, Error> {
    SocketAddr::from_abstract_name(name).map_err(|error| failed(format!("@{name}: {error}")))
}

fn read_drops(kit: &Kit) -> Result<BTreeSet<u64>, Error> {
    let key = "settings.drop_counters";
    let listed = kit.string(key);
    let items = listed.split_terminator(',');
    items
        .map(|item| item.parse())
        .collect::<Result<_, _>>()
        .map_err(|_| Error::bad_spec(key, listed, "integers, separated by commas"))
}

/// Sends without blocking, because two nodes that wait for each other's queues would deadlock.
pub fn send_patiently(
    kit: &Kit,
    mut send: impl FnMut() -> io::Result<()>,
    mut poll: impl FnMut(i64),
) -> io::Result<()> {
    let deadline_ns = now_ns().saturating_add(kit.timeout_ns());
    loop {
        match send() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && now_ns() < deadline_ns => {
                poll(200_000);
            }
            done => return done,
        }
    }
}

/// The middleware's periodic timer. A late tick does not shift later ticks.
pub fn drive_native(kit: &Kit, events: &mut impl Events) {
    let mut buffer = kit.buffer();
    kit.wait_timer_birth();
    let period_ns = kit.period_ns();
    let mut tick_ns = now_ns() + period_ns;
    while !kit.finished() {
        let late_ns = now_ns() - tick_ns;
        if late_ns < 0 {
            events.poll((-late_ns).min(100_000_000));
            continue;
        }
        tick_ns += (1 + late_ns / period_ns) * period_ns;
        let Some(slot) = kit.tick() else { continue };
        let message = kit.begin(slot, &mut buffer);
        if events.begin(slot, message).is_err() {
            kit.fail(slot);
        }
    }
    kit.end_schedule(|timeout_ns| events.poll(timeout_ns));
}

pub fn counter_of(slot: Slot) -> u64 {
    slot.seq & COUNTER_MASK
}
