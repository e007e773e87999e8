//! Packet sockets whose filter accepts RTPS. Nothing reads their packets: the kernel counts those
//! that the filter accepts, also when the buffer of the socket is full.

use std::ffi::CStr;
use std::io;

use crate::packet_sockets::{PacketSocket, LOOPBACK_INDEX};

/// The kernel grants its smallest buffer, because nothing reads it.
const BUFFER_BYTES: libc::c_int = 1;
/// Bytes of an accepted packet that the kernel keeps.
const KEPT_BYTES: u32 = 1;
const UDP: u32 = 17;
/// Bits of the fragment's offset; only the first fragment has the UDP header.
const OFFSET_BITS: u32 = 0x1fff;
/// First bytes of every RTPS message (OMG DDSI-RTPS 2.5, 8.3.3.1).
const MAGIC: u32 = u32::from_be_bytes(*b"RTPS");

const LOAD_BYTE: u16 = (libc::BPF_LD | libc::BPF_B | libc::BPF_ABS) as u16;
const LOAD_HALF: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_ABS) as u16;
const LOAD_WORD_AFTER: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_IND) as u16;
const LOAD_HEADER_BYTES: u16 = (libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH) as u16;
const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const IF_ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// Accepts an IPv4 packet with UDP whose payload begins with MAGIC. Offsets count from the header
/// of IP. A packet that is too short for a load is rejected.
const FILTER: [libc::sock_filter; 9] = [
    step(LOAD_BYTE, 0, 0, 9), // protocol
    step(IF_EQUAL, 0, 6, UDP),
    step(LOAD_HALF, 0, 0, 6), // flags and offset of the fragment
    step(IF_ANY_BIT, 4, 0, OFFSET_BITS),
    step(LOAD_HEADER_BYTES, 0, 0, 0),
    step(LOAD_WORD_AFTER, 0, 0, 8), // after the 8 bytes of the UDP header
    step(IF_EQUAL, 0, 1, MAGIC),
    step(RETURN, 0, 0, KEPT_BYTES),
    step(RETURN, 0, 0, 0),
];

/// Returns an instruction; `jt` and `jf` are the numbers of instructions to skip.
const fn step(code: u16, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

/// The packets of RTPS that arrive on one interface.
pub struct FilteredPackets(PacketSocket);

impl FilteredPackets {
    /// Returns the kernel's error if this agent has no packet sockets.
    pub fn permitted() -> io::Result<()> {
        PacketSocket::open().map(|_| ())
    }

    /// Counts packets that arrive on an interface from now on.
    pub fn open(index: u32) -> io::Result<FilteredPackets> {
        let socket = PacketSocket::open()?;
        let program = libc::sock_fprog {
            len: FILTER.len() as libc::c_ushort,
            filter: FILTER.as_ptr().cast_mut(), // the kernel only copies it
        };
        socket.set(libc::SOL_SOCKET, libc::SO_RCVBUF, &BUFFER_BYTES)?;
        socket.set(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)?;
        socket.take_count()?; // that of an earlier use
        socket.bind(index, libc::ETH_P_IP as u16)?;
        Ok(FilteredPackets(socket))
    }

    /// Returns the number of accepted packets since the last call; None if the kernel refuses.
    pub fn take(&self) -> Option<u64> {
        self.0.take_count().ok()
    }
}

/// Returns the names and indices of all interfaces except loopback.
pub fn interfaces() -> io::Result<Vec<(String, u32)>> {
    // SAFETY: plain call; the list is freed below.
    let list = unsafe { libc::if_nameindex() };
    if list.is_null() {
        return Err(io::Error::last_os_error());
    }
    let (mut found, mut next) = (Vec::new(), list);
    // SAFETY: an entry with the index 0 ends the list, and each name is zero-terminated.
    unsafe {
        while (*next).if_index != 0 {
            if (*next).if_index != LOOPBACK_INDEX {
                let name = CStr::from_ptr((*next).if_name).to_string_lossy().into_owned();
                found.push((name, (*next).if_index));
            }
            next = next.add(1);
        }
        libc::if_freenameindex(list);
    }
    Ok(found)
}
