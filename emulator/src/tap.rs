//! A TAP device in the network namespace of a host. The device exists as long as its descriptor.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

use crate::profile::Tap;

/// Frames that the kernel keeps for the emulator: 100 ms at 100,000 frames/s.
const QUEUE_FRAMES: i32 = 10_000;
/// Locally administered addresses, so that captures show which port a frame came from.
const HARDWARE_ADDRESS: [u8; 5] = [0x02, 0x57, 0x57, 0x00, 0x00];

/// An open device.
pub struct Device {
    file: File,
}

impl Device {
    pub fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }

    pub fn write(&mut self, frame: &[u8]) -> io::Result<()> {
        self.file.write(frame).map(|_| ())
    }
}

/// Create the devices of all ports, each in the namespace of its process.
///
/// A network namespace that another user namespace owns requires that the emulator enters its owner
/// first. It cannot leave it again. The process itself may be in a further user namespace.
pub fn create_all(taps: &[Tap]) -> io::Result<Vec<Device>> {
    let own = File::open("/proc/self/ns/net")?;
    let mut devices = vec![];
    for (port, tap) in taps.iter().enumerate() {
        enter(tap.pid).map_err(|error| named(&error, "its namespace"))?;
        devices.push(create(tap, port).map_err(|error| named(&error, &tap.device))?);
    }
    // Fails only in another user namespace, where the emulator stays in the last host's namespace.
    let _ = set_namespace(&own, libc::CLONE_NEWNET);
    Ok(devices)
}

fn named(error: &io::Error, what: &str) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

/// The request of ioctl_ns(2) for the user namespace that owns another namespace.
const NS_GET_USERNS: libc::Ioctl = 0xb701;

fn enter(pid: i32) -> io::Result<()> {
    let network = File::open(format!("/proc/{pid}/ns/net"))?;
    let owner = unsafe { libc::ioctl(network.as_raw_fd(), NS_GET_USERNS) };
    check(owner)?;
    let owner = unsafe { File::from_raw_fd(owner) };
    let own = File::open("/proc/self/ns/user")?;
    if owner.metadata()?.ino() != own.metadata()?.ino() {
        set_namespace(&owner, libc::CLONE_NEWUSER)?;
    }
    set_namespace(&network, libc::CLONE_NEWNET)
}

fn set_namespace(namespace: &File, kind: libc::c_int) -> io::Result<()> {
    check(unsafe { libc::setns(namespace.as_raw_fd(), kind) })
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

fn create(tap: &Tap, port: usize) -> io::Result<Device> {
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC);
    let file = options.open("/dev/net/tun").map_err(|error| named(&error, "/dev/net/tun"))?;
    let mut request = request_for(&tap.device)?;
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as libc::Ioctl, &request) })?;
    configure(tap, port)?;
    Ok(Device { file })
}

fn request_for(device: &str) -> io::Result<libc::ifreq> {
    let name = CString::new(device)?;
    let name = name.as_bytes_with_nul();
    if name.len() > libc::IFNAMSIZ {
        return Err(io::Error::other("a device's name has at most 15 bytes"));
    }
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, &from) in request.ifr_name.iter_mut().zip(name) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

fn configure(tap: &Tap, port: usize) -> io::Result<()> {
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    check(socket)?;
    let result = configure_with(socket, tap, port);
    unsafe { libc::close(socket) };
    result
}

fn configure_with(socket: RawFd, tap: &Tap, port: usize) -> io::Result<()> {
    let set = |operation: libc::Ioctl, fill: &dyn Fn(&mut libc::ifreq)| -> io::Result<()> {
        let mut request = request_for(&tap.device)?;
        fill(&mut request);
        check(unsafe { libc::ioctl(socket, operation, &request) })
    };
    let mask = u32::MAX.checked_shl(32 - u32::from(tap.prefix_bits)).unwrap_or(0);
    set(libc::SIOCSIFHWADDR as libc::Ioctl, &|request| {
        let mut bytes = [0; 14];
        for (to, &from) in bytes.iter_mut().zip(&HARDWARE_ADDRESS) {
            *to = from as libc::c_char;
        }
        bytes[HARDWARE_ADDRESS.len()] = port as libc::c_char;
        request.ifr_ifru.ifru_hwaddr =
            libc::sockaddr { sa_family: libc::ARPHRD_ETHER, sa_data: bytes };
    })?;
    set(libc::SIOCSIFMTU as libc::Ioctl, &|request| {
        request.ifr_ifru.ifru_mtu = tap.mtu_bytes as libc::c_int;
    })?;
    // The kernel refuses this in a user namespace, where the queue keeps its default length.
    let _ = set(libc::SIOCSIFTXQLEN as libc::Ioctl, &|request| {
        request.ifr_ifru.ifru_metric = QUEUE_FRAMES;
    });
    set(libc::SIOCSIFADDR as libc::Ioctl, &|request| {
        request.ifr_ifru.ifru_addr = address(u32::from(tap.address));
    })?;
    set(libc::SIOCSIFNETMASK as libc::Ioctl, &|request| {
        request.ifr_ifru.ifru_netmask = address(mask);
    })?;
    set(libc::SIOCSIFFLAGS as libc::Ioctl, &|request| {
        // This request replaces all flags, so it must repeat those that a new device has.
        let flags = libc::IFF_UP | libc::IFF_BROADCAST | libc::IFF_MULTICAST;
        request.ifr_ifru.ifru_flags = flags as libc::c_short;
    })
}

fn address(number: u32) -> libc::sockaddr {
    let mut address: libc::sockaddr = unsafe { std::mem::zeroed() };
    address.sa_family = libc::AF_INET as libc::sa_family_t;
    for (to, from) in address.sa_data[2..6].iter_mut().zip(number.to_be_bytes()) {
        *to = from as libc::c_char;
    }
    address
}
