//! A connection that carries frames. README.md describes the format and the flow control.

use std::cell::Cell;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::ops::Range;
use std::os::fd::AsRawFd;

use socket2::SockRef;
use wattwire_kit::{now_ns, Kit};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Message,
    Request,
    Reply,
}

const HEAD_BYTES: usize = 13;
const PAYLOAD_BYTES_MAX: usize = 67_108_864;
const READ_BYTES: usize = 65_536;

/// A complete frame. `Inbox::payload` returns its bytes until the next read.
#[derive(Debug, Clone)]
pub struct Frame {
    kind: u8,
    pub number: u64,
    place: Range<usize>,
}

impl Frame {
    pub fn is(&self, kind: Kind) -> bool {
        self.kind == kind as u8
    }
}

/// The read buffer of a connection. It receives all available data at once, so that a small frame
/// needs only one system call.
pub struct Inbox {
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
}

impl Inbox {
    pub fn new() -> Self {
        Inbox { buffer: vec![0; HEAD_BYTES + READ_BYTES], begin: 0, end: 0 }
    }

    pub fn payload(&self, frame: &Frame) -> &[u8] {
        &self.buffer[frame.place.clone()]
    }

    /// Returns the next complete frame, if any. Returns InvalidData for invalid bytes.
    fn take(&mut self) -> io::Result<Option<Frame>> {
        let unread = &self.buffer[self.begin..self.end];
        let Some((head, rest)) = unread.split_first_chunk::<HEAD_BYTES>() else { return Ok(None) };
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        if head[4] > Kind::Reply as u8 || length > PAYLOAD_BYTES_MAX {
            return Err(ErrorKind::InvalidData.into());
        }
        if rest.len() < length {
            self.make_room(HEAD_BYTES + length);
            return Ok(None);
        }
        let number = u64::from_le_bytes(std::array::from_fn(|at| head[5 + at]));
        let at = self.begin + HEAD_BYTES;
        let frame = Frame { kind: head[4], number, place: at..at + length };
        self.begin = at + length;
        Ok(Some(frame))
    }

    /// Returns the space for the next bytes.
    fn room(&mut self) -> &mut [u8] {
        if self.begin == self.end {
            (self.begin, self.end) = (0, 0);
        }
        if self.end == self.buffer.len() {
            self.make_room(self.end - self.begin + READ_BYTES);
        }
        &mut self.buffer[self.end..]
    }

    /// Moves unread bytes to the beginning of the buffer and ensures its size.
    fn make_room(&mut self, bytes_needed: usize) {
        self.buffer.copy_within(self.begin..self.end, 0);
        (self.begin, self.end) = (0, self.end - self.begin);
        if bytes_needed > self.buffer.len() {
            self.buffer.resize(bytes_needed + READ_BYTES, 0);
        }
    }
}

/// A connection. Writing needs no `&mut`, so that a node can handle replies while it writes.
pub struct Stream {
    pub socket: TcpStream,
    open: Cell<bool>,
    two_writes: bool,
    /// The value of TCP_QUICKACK after each read; None leaves it to the system.
    quickack: Option<bool>,
    timeout_ns: i64,
}

impl Stream {
    pub fn new(kit: &Kit, socket: TcpStream) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let stream = Stream {
            socket,
            open: Cell::new(true),
            two_writes: kit.integer("settings.writes") == 2,
            quickack: match kit.string("settings.tcp_quickack") {
                "default" => None,
                mode => Some(mode == "on"),
            },
            timeout_ns: kit.integer("timeout_ns"),
        };
        stream.acknowledge();
        Ok(stream)
    }

    pub fn is_open(&self) -> bool {
        self.open.get()
    }

    fn close(&self) {
        if self.open.replace(false) {
            // Fails if the peer has already closed the connection.
            let _ = self.socket.shutdown(Shutdown::Both);
        }
    }

    /// Sends a frame. Fails and closes the stream if the peer has left or if sending takes longer
    /// than timeout_ns, because a partial frame breaks the stream. Calls `idle(left_ns)` while the
    /// kernel's buffer is full, because two nodes that only wait would deadlock.
    pub fn send_while(
        &self,
        kind: Kind,
        number: u64,
        payload: &[u8],
        mut idle: impl FnMut(i64),
    ) -> io::Result<()> {
        let deadline_ns = now_ns().saturating_add(self.timeout_ns);
        let mut head = [0; HEAD_BYTES];
        head[..4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        head[4] = kind as u8;
        head[5..].copy_from_slice(&number.to_le_bytes());
        let (head, body) = (IoSlice::new(&head), IoSlice::new(payload));
        let sent = if self.two_writes && !payload.is_empty() {
            self.write(&mut [head], deadline_ns, &mut idle)
                .and_then(|()| self.write(&mut [body], deadline_ns, &mut idle))
        } else {
            self.write(&mut [head, body], deadline_ns, &mut idle)
        };
        if sent.is_err() {
            self.close();
        }
        sent
    }

    pub fn send(&self, kind: Kind, number: u64, payload: &[u8]) -> io::Result<()> {
        self.send_while(kind, number, payload, |left_ns| {
            wait_for(&self.socket, libc::POLLOUT, left_ns);
        })
    }

    fn write(
        &self,
        mut parts: &mut [IoSlice],
        deadline_ns: i64,
        idle: &mut impl FnMut(i64),
    ) -> io::Result<()> {
        IoSlice::advance_slices(&mut parts, 0);
        while !parts.is_empty() {
            if !self.is_open() {
                return Err(ErrorKind::NotConnected.into());
            }
            match (&self.socket).write_vectored(parts) {
                Ok(taken) => IoSlice::advance_slices(&mut parts, taken),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let left_ns = deadline_ns - now_ns();
                    if error.kind() != ErrorKind::WouldBlock || left_ns <= 0 {
                        return Err(error);
                    }
                    idle(left_ns);
                }
            }
        }
        Ok(())
    }

    /// Reads the available data once. Closes the stream at its end or after an error.
    pub fn read(&self, inbox: &mut Inbox) {
        if self.quickack == Some(false) {
            self.acknowledge(); // the kernel acknowledges in the read unless the option is off
        }
        match (&self.socket).read(inbox.room()) {
            Ok(count) if count > 0 => {
                inbox.end += count;
                self.acknowledge();
            }
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            _ => self.close(),
        }
    }

    /// Returns the next complete frame, if any. Closes the stream after invalid bytes.
    pub fn take(&self, inbox: &mut Inbox) -> Option<Frame> {
        inbox.take().unwrap_or_else(|_| {
            self.close();
            None
        })
    }

    /// Waits for the next complete frame. Returns None at the timeout or the end of the stream. A
    /// timeout of 0 reads the available data once.
    pub fn receive(&self, inbox: &mut Inbox, timeout_ns: i64) -> Option<Frame> {
        let deadline_ns = now_ns().saturating_add(timeout_ns);
        let mut left_ns = timeout_ns;
        loop {
            if !self.is_open() {
                return None;
            }
            if let Some(frame) = self.take(inbox) {
                return Some(frame);
            }
            if left_ns < 0 || !wait_for(&self.socket, libc::POLLIN, left_ns) {
                return None;
            }
            self.read(inbox);
            left_ns = deadline_ns - now_ns();
        }
    }

    fn acknowledge(&self) {
        // Linux may leave this mode at any time (tcp(7)), so the node sets it after every read.
        if let Some(mode) = self.quickack {
            let _ = SockRef::from(&self.socket).set_tcp_quickack(mode);
        }
    }
}

/// Waits at most `timeout_ns` until a descriptor is ready. Returns whether one is ready.
pub fn wait_any(waited: &mut [libc::pollfd], timeout_ns: i64) -> bool {
    let (seconds, rest_ns) = (timeout_ns.max(0) / 1_000_000_000, timeout_ns.max(0) % 1_000_000_000);
    let timeout = libc::timespec { tv_sec: seconds, tv_nsec: rest_ns };
    let count = waited.len() as libc::nfds_t;
    // SAFETY: `waited` has `count` entries. It and the timeout outlive the call.
    unsafe { libc::ppoll(waited.as_mut_ptr(), count, &timeout, std::ptr::null()) > 0 }
}

pub fn wait_for(socket: &TcpStream, events: libc::c_short, timeout_ns: i64) -> bool {
    wait_any(&mut [libc::pollfd { fd: socket.as_raw_fd(), events, revents: 0 }], timeout_ns)
}
