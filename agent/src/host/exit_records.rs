//! The records that the kernel sends at the end of each thread (taskstats): CPU time, peak memory
//! and context switches of a process, also of one that no listing saw. Reference: Documentation/
//! accounting/taskstats.rst of the kernel; the offsets are those of `struct taskstats`.
//!
//! The kernel sends them to root (CAP_NET_ADMIN) in the first user, PID and network namespace.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Mutex, Weak};
use std::thread;

use crate::clock;
use crate::lock::locked;

/// Maximum number of ended processes that one listener keeps.
const EXITS_MAX: usize = 100_000;
const POLL_MS: i32 = 100;
/// For tests: `none` has this agent listen to no records.
const FORCE: &str = "WATTWIRE_EXIT_RECORDS";
/// Room for the records of several thousand threads that end while the listener does not run.
const SOCKET_BUFFER_BYTES: i32 = 16 << 20;
const POSSIBLE_CPUS: &str = "/sys/devices/system/cpu/possible";

const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const TASKSTATS_CMD_GET: u8 = 1;
const TASKSTATS_CMD_ATTR_REGISTER_CPUMASK: u16 = 3;
const TYPE_STATS: u16 = 3;
const TYPE_AGGR_PID: u16 = 4;
const TYPE_AGGR_TGID: u16 = 5;
/// The last thread of its process.
const AGROUP: u8 = 0x20;
const NETLINK_HEADER_BYTES: usize = 16;
const HEADERS_BYTES: usize = NETLINK_HEADER_BYTES + 4;
/// Bytes of a record of version 12, the first one that contains the process of a thread.
const RECORD_BYTES_MIN: usize = 384;

/// A process that has ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exit {
    pub pid: i32,
    pub parent: i32,
    pub command: String,
    pub born_ns: i64,
    pub ended_ns: i64,
    pub usage: ExitUsage,
}

/// Resources of all threads of a process, without its children.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExitUsage {
    pub cpu_ns: i64,
    /// With the resolution of a clock tick.
    pub user_ns: i64,
    pub system_ns: i64,
    pub rss_peak_bytes: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
}

pub struct ExitRecords {
    socket: OwnedFd,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Sums over the threads that have ended so far, by process.
    threads: HashMap<i32, ExitUsage>,
    ended: Vec<Exit>,
    /// Number of times that records were lost, because a buffer was full.
    lost: u64,
    /// Whether the kernel's records lack the process of a thread.
    too_old: bool,
}

impl ExitRecords {
    /// Starts to listen, or returns the reason why this agent receives no records.
    pub fn listen() -> Result<Arc<ExitRecords>, String> {
        let refused = |error: io::Error| match error.raw_os_error() {
            Some(libc::EPERM) => "exit records need root (CAP_NET_ADMIN)".to_string(),
            Some(libc::ENOENT | libc::EINVAL) => {
                "exit records need a kernel with taskstats, outside of a container".to_string()
            }
            _ => format!("exit records: {error}"),
        };
        if std::env::var(FORCE).is_ok_and(|value| value == "none") {
            return Err(format!("{FORCE}=none disables exit records"));
        }
        let socket = open().map_err(refused)?;
        let family = find_family(&socket).map_err(refused)?;
        register(&socket, family).map_err(refused)?;
        let records = Arc::new(ExitRecords { socket, state: Mutex::default() });
        let listening = Arc::downgrade(&records);
        thread::spawn(move || follow(&listening));
        Ok(records)
    }

    /// Returns the processes that have ended since the `first` ended ones, and whether all are
    /// known. The record of a process arrives before its parent can reap it.
    pub fn ended_after(&self, first: usize) -> (Vec<Exit>, bool) {
        let mut state = locked(&self.state);
        self.drain(&mut state);
        let known = state.lost == 0 && !state.too_old;
        (state.ended.get(first..).unwrap_or_default().to_vec(), known)
    }

    fn drain(&self, state: &mut State) {
        let mut buffer = [0u8; 1 << 14];
        loop {
            match receive(&self.socket, &mut buffer, libc::MSG_DONTWAIT) {
                Ok(length) => state.take(&buffer[..length], clock::monotonic_ns()),
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => state.lost += 1,
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                Err(_) => return,
            }
        }
    }
}

/// Reads each record as it arrives, because a record contains no time of its end.
fn follow(records: &Weak<ExitRecords>) {
    while let Some(records) = records.upgrade() {
        let mut polled =
            libc::pollfd { fd: records.socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: `polled` is one entry.
        if unsafe { libc::poll(&mut polled, 1, POLL_MS) } > 0 {
            records.drain(&mut locked(&records.state));
        }
    }
}

impl State {
    /// Takes a datagram that was received at `now_ns`.
    fn take(&mut self, datagram: &[u8], now_ns: i64) {
        let attributes = datagram.get(HEADERS_BYTES..).unwrap_or_default();
        let records: Vec<(u16, &[u8])> = Attributes(attributes)
            .filter_map(|(kind, nested)| {
                let (_, record) = Attributes(nested).find(|(kind, _)| *kind == TYPE_STATS)?;
                Some((kind, record))
            })
            .collect();
        let Some((_, thread)) = records.iter().find(|(kind, _)| *kind == TYPE_AGGR_PID) else {
            return;
        };
        if thread.len() < RECORD_BYTES_MIN {
            self.too_old = true;
            return;
        }
        let pid = number_32(thread, 368);
        let sum = self.threads.entry(pid).or_default();
        sum.add(&ExitUsage::read(thread));
        if thread[8] & AGROUP == 0 {
            return;
        }
        // Threads that ended before this agent listened are only in the kernel's own sum.
        if let Some((_, process)) = records.iter().find(|(kind, _)| *kind == TYPE_AGGR_TGID) {
            sum.raise(&ExitUsage::read(process));
        }
        let usage = self.threads.remove(&pid).unwrap_or_default();
        if self.ended.len() >= EXITS_MAX {
            self.lost += 1;
            return;
        }
        self.ended.push(Exit {
            pid,
            parent: number_32(thread, 132),
            command: text(&thread[80..112]),
            born_ns: now_ns - number(thread, 376) as i64 * 1000,
            ended_ns: now_ns,
            usage,
        });
    }
}

impl ExitUsage {
    fn read(record: &[u8]) -> ExitUsage {
        let (user_us, system_us) = (number(record, 152) as i64, number(record, 160) as i64);
        ExitUsage {
            // Kernels without CONFIG_TASK_DELAY_ACCT leave the exact time at 0.
            cpu_ns: (number(record, 72) as i64).max(0),
            user_ns: user_us * 1000,
            system_ns: system_us * 1000,
            rss_peak_bytes: number(record, 200) * 1024,
            voluntary_switches: number(record, 272),
            involuntary_switches: number(record, 280),
        }
        .with_ticks_if_needed()
    }

    fn with_ticks_if_needed(mut self) -> ExitUsage {
        if self.cpu_ns == 0 {
            self.cpu_ns = self.user_ns + self.system_ns;
        }
        self
    }

    fn add(&mut self, other: &ExitUsage) {
        self.cpu_ns += other.cpu_ns;
        self.user_ns += other.user_ns;
        self.system_ns += other.system_ns;
        self.rss_peak_bytes = self.rss_peak_bytes.max(other.rss_peak_bytes);
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
    }

    fn raise(&mut self, other: &ExitUsage) {
        self.cpu_ns = self.cpu_ns.max(other.cpu_ns);
        self.user_ns = self.user_ns.max(other.user_ns);
        self.system_ns = self.system_ns.max(other.system_ns);
        self.voluntary_switches = self.voluntary_switches.max(other.voluntary_switches);
        self.involuntary_switches = self.involuntary_switches.max(other.involuntary_switches);
    }
}

fn number(record: &[u8], at: usize) -> u64 {
    record.get(at..at + 8).map_or(0, |bytes| u64::from_ne_bytes(bytes.try_into().unwrap_or([0; 8])))
}

fn number_32(record: &[u8], at: usize) -> i32 {
    record.get(at..at + 4).map_or(0, |bytes| i32::from_ne_bytes(bytes.try_into().unwrap_or([0; 4])))
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Iterator over netlink attributes, as (type, content).
struct Attributes<'a>(&'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let head: [u8; 4] = self.0.get(..4)?.try_into().ok()?;
        let length = u16::from_ne_bytes([head[0], head[1]]) as usize;
        let content = self.0.get(4..length)?;
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([head[2], head[3]]), content))
    }
}

fn attribute(kind: u16, content: &[u8]) -> Vec<u8> {
    let length = (4 + content.len()) as u16;
    let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend(content);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn open() -> io::Result<OwnedFd> {
    // SAFETY: the descriptor is owned by the returned value only.
    let socket = unsafe {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        match libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_GENERIC) {
            -1 => return Err(io::Error::last_os_error()),
            fd => OwnedFd::from_raw_fd(fd),
        }
    };
    let bytes = SOCKET_BUFFER_BYTES;
    // SAFETY: `bytes` outlives the call. A refusal leaves the smaller default.
    unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVBUFFORCE,
            (&raw const bytes).cast(),
            std::mem::size_of_val(&bytes) as libc::socklen_t,
        );
    }
    Ok(socket)
}

fn receive(socket: &OwnedFd, buffer: &mut [u8], flags: i32) -> io::Result<usize> {
    // SAFETY: the buffer outlives the call, which is limited to its size.
    let length =
        unsafe { libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), flags) };
    usize::try_from(length).map_err(|_| io::Error::last_os_error())
}

/// Sends a request and returns the reply's attributes; an error of the kernel is an error.
fn request(
    socket: &OwnedFd,
    family: u16,
    command: u8,
    attributes: &[u8],
    flags: i32,
) -> io::Result<Vec<u8>> {
    let length = (HEADERS_BYTES + attributes.len()) as u32;
    let mut message = length.to_ne_bytes().to_vec();
    message.extend(family.to_ne_bytes());
    message.extend((flags as u16).to_ne_bytes());
    message.extend([1, 0, 0, 0, 0, 0, 0, 0]); // sequence number 1, and the kernel as receiver
    message.extend([command, 1, 0, 0]);
    message.extend(attributes);
    // SAFETY: the message outlives the call, which is limited to its size.
    let sent = unsafe { libc::send(socket.as_raw_fd(), message.as_ptr().cast(), message.len(), 0) };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut buffer = [0u8; 1 << 13];
    let length = receive(socket, &mut buffer, 0)?;
    let reply = &buffer[..length];
    let is_error = reply.get(4..6) == Some(&(libc::NLMSG_ERROR as u16).to_ne_bytes()[..]);
    match if is_error { -number_32(reply, NETLINK_HEADER_BYTES) } else { 0 } {
        0 => Ok(reply.get(HEADERS_BYTES..).unwrap_or_default().to_vec()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

fn find_family(socket: &OwnedFd) -> io::Result<u16> {
    let name = attribute(CTRL_ATTR_FAMILY_NAME, b"TASKSTATS\0");
    let reply = request(socket, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, &name, libc::NLM_F_REQUEST)?;
    let family = Attributes(&reply).find(|(kind, _)| *kind == CTRL_ATTR_FAMILY_ID);
    let id = family.and_then(|(_, content)| content.get(..2)?.try_into().ok());
    id.map(u16::from_ne_bytes).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
}

fn register(socket: &OwnedFd, family: u16) -> io::Result<()> {
    let mut cpus = fs::read_to_string(POSSIBLE_CPUS)?.trim_end().to_string().into_bytes();
    cpus.push(0);
    let mask = attribute(TASKSTATS_CMD_ATTR_REGISTER_CPUMASK, &cpus);
    let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK;
    request(socket, family, TASKSTATS_CMD_GET, &mask, flags).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(pid: i32, flag: u8, cpu_ns: u64, rss_kib: u64) -> Vec<u8> {
        let mut bytes = vec![0; RECORD_BYTES_MIN];
        bytes[8] = flag;
        bytes[72..80].copy_from_slice(&cpu_ns.to_ne_bytes());
        bytes[80..82].copy_from_slice(b"cc");
        bytes[132..136].copy_from_slice(&7i32.to_ne_bytes());
        bytes[200..208].copy_from_slice(&rss_kib.to_ne_bytes());
        bytes[272..280].copy_from_slice(&3u64.to_ne_bytes());
        bytes[368..372].copy_from_slice(&pid.to_ne_bytes());
        bytes[376..384].copy_from_slice(&5u64.to_ne_bytes());
        bytes
    }

    fn datagram(records: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let mut bytes = vec![0; HEADERS_BYTES];
        for (kind, record) in records {
            let nested = [attribute(1, &[0; 4]), attribute(TYPE_STATS, record)].concat();
            bytes.extend(attribute(*kind, &nested));
        }
        bytes
    }

    #[test]
    fn the_threads_of_a_process_are_summed_when_the_last_of_them_ends() {
        let mut state = State::default();
        state.take(&datagram(&[(TYPE_AGGR_PID, record(42, 0, 100, 80))]), 1_000_000);
        assert!(state.ended.is_empty());
        // This listener missed a third thread, which the kernel's sum contains.
        let last = (TYPE_AGGR_PID, record(42, AGROUP, 30, 60));
        let whole = (TYPE_AGGR_TGID, record(0, 0, 150, 0));
        state.take(&datagram(&[last, whole]), 2_000_000);
        let usage = ExitUsage {
            cpu_ns: 150,
            rss_peak_bytes: 80 * 1024,
            voluntary_switches: 6,
            ..ExitUsage::default()
        };
        let expected = Exit {
            pid: 42,
            parent: 7,
            command: "cc".into(),
            born_ns: 1_995_000,
            ended_ns: 2_000_000,
            usage,
        };
        assert_eq!(state.ended, [expected]);
        assert!(state.threads.is_empty());
    }

    #[test]
    fn records_of_an_old_kernel_and_broken_datagrams_name_no_process() {
        let mut state = State::default();
        let mut old = record(42, AGROUP, 100, 80);
        old.truncate(RECORD_BYTES_MIN - 8);
        state.take(&datagram(&[(TYPE_AGGR_PID, old)]), 1);
        assert!(state.ended.is_empty() && state.too_old);
        let whole = datagram(&[(TYPE_AGGR_PID, record(42, AGROUP, 100, 80))]);
        for length in 0..whole.len() {
            State::default().take(&whole[..length], 1);
        }
    }
}
