//! Packet sockets, which need CAP_NET_RAW in the network namespace. An agent that lacks it, such as
//! that of an ordinary user's namespace, uses sockets that it inherited from `execute_with`.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Mutex;

use crate::lock::locked;

/// Numbers of the inherited descriptors, separated by commas.
const VARIABLE: &str = "WATTWIRE_PACKET_SOCKETS";
/// Number of interfaces that can be observed at the same time.
const SOCKETS: usize = 4;
/// A protocol that nothing uses (local experimental EtherType, IEEE 802).
const NO_PROTOCOL: u16 = 0x88b5;
/// The kernel gives this index to the loopback device of every network namespace
/// (LOOPBACK_IFINDEX in include/net/flow.h).
pub const LOOPBACK_INDEX: u32 = 1;

static INHERITED: Mutex<Vec<OwnedFd>> = Mutex::new(Vec::new());

/// A socket that sees packets from the header of IP on, and receives nothing until `bind`.
pub struct PacketSocket {
    /// None only while the socket is dropped.
    fd: Option<OwnedFd>,
    is_inherited: bool,
}

impl PacketSocket {
    /// Returns a new socket, or an inherited one if this user may not open one.
    pub fn open() -> io::Result<PacketSocket> {
        match create() {
            Ok(fd) => Ok(PacketSocket { fd: Some(fd), is_inherited: false }),
            Err(refused) => {
                let fd = locked(&INHERITED).pop().ok_or(refused)?;
                Ok(PacketSocket { fd: Some(fd), is_inherited: true })
            }
        }
    }

    /// Receives the packets of an Ethernet protocol that arrive on an interface.
    pub fn bind(&self, index: u32, protocol: u16) -> io::Result<()> {
        // SAFETY: an all-zero address is valid.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol.to_be();
        address.sll_ifindex = index as i32;
        let bytes = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: `address` outlives the call, and `bytes` is its size.
        let done = unsafe { libc::bind(self.raw(), (&raw const address).cast(), bytes) };
        result(done)
    }

    pub fn set<T>(&self, level: i32, option: i32, value: &T) -> io::Result<()> {
        let bytes = size_of::<T>() as libc::socklen_t;
        let value = (&raw const *value).cast();
        // SAFETY: `value` outlives the call, and `bytes` is its size.
        result(unsafe { libc::setsockopt(self.raw(), level, option, value, bytes) })
    }

    /// Returns the number of packets that passed the filter since the last call, including those
    /// for which the buffer was full.
    pub fn take_count(&self) -> io::Result<u64> {
        // SAFETY: an all-zero value is valid.
        let mut counted: libc::tpacket_stats = unsafe { zeroed() };
        let mut bytes = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: `counted` and `bytes` outlive the call, and `bytes` is the size of `counted`.
        let done = unsafe {
            libc::getsockopt(
                self.raw(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut counted).cast(),
                &mut bytes,
            )
        };
        result(done).map(|()| u64::from(counted.tp_packets))
    }

    fn raw(&self) -> i32 {
        self.fd.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }
}

impl Drop for PacketSocket {
    /// Keeps an inherited socket, which receives nothing until it is used again.
    fn drop(&mut self) {
        if self.is_inherited && self.bind(LOOPBACK_INDEX, NO_PROTOCOL).is_ok() {
            locked(&INHERITED).extend(self.fd.take());
        }
    }
}

fn create() -> io::Result<OwnedFd> {
    // SAFETY: plain system call.
    let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    result(fd.min(0))?;
    // SAFETY: the kernel has just created this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn result(returned: i32) -> io::Result<()> {
    if returned == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Executes a command with open packet sockets, or without if this user may not open any. Returns
/// an exit code only if the command cannot start.
pub fn execute_with(command: &[&str]) -> i32 {
    let mut numbers = Vec::new();
    for fd in (0..SOCKETS).map_while(|_| create().ok()).map(IntoRawFd::into_raw_fd) {
        // SAFETY: plain system call; without FD_CLOEXEC the command inherits the descriptor.
        unsafe { libc::fcntl(fd, libc::F_SETFD, 0) };
        numbers.push(fd.to_string());
    }
    let mut next = Command::new(command[0]);
    let error = next.args(&command[1..]).env(VARIABLE, numbers.join(",")).exec();
    eprintln!("wattwire-agent: {}: {error}", command[0]);
    1
}

/// Takes over the inherited sockets. Call this before the first thread or process starts, because
/// it changes the environment, and processes must not inherit the sockets.
pub fn adopt() {
    let value = std::env::var(VARIABLE).unwrap_or_default();
    std::env::remove_var(VARIABLE);
    for fd in value.split(',').filter_map(|number| number.parse::<i32>().ok()) {
        if !is_packet_socket(fd) {
            continue; // the variable is older than this process's descriptors
        }
        // SAFETY: `fd` is open, `execute_with` left it to this process, and nothing else owns it.
        unsafe {
            libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
            locked(&INHERITED).push(OwnedFd::from_raw_fd(fd));
        }
    }
}

fn is_packet_socket(fd: i32) -> bool {
    let mut domain: libc::c_int = 0;
    let mut bytes = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `domain` and `bytes` outlive the call, and `bytes` is the size of `domain`.
    let done = unsafe {
        let value = (&raw mut domain).cast();
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_DOMAIN, value, &mut bytes)
    };
    done == 0 && domain == libc::AF_PACKET
}
