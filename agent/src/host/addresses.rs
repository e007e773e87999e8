//! The network interfaces of this agent's network namespace.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::io;
use std::net::Ipv4Addr;

use serde_json::{json, Value};

use crate::protocol::{Answer, Problem};

struct Interface {
    flags: u32,
    /// (address, length of the prefix in bits)
    ipv4: Vec<(Ipv4Addr, u32)>,
}

/// Replies with all interfaces, sorted by name.
pub fn addresses() -> Answer {
    let failed = |error| Problem::failed(format!("addresses: reading the interfaces: {error}"));
    let described: Vec<Value> = interfaces()
        .map_err(failed)?
        .iter()
        // An interface may vanish between both system calls.
        .filter_map(|(name, interface)| Some(describe(name, interface, mtu_bytes(name).ok()?)))
        .collect();
    Ok(json!({"interfaces": described}))
}

fn describe(name: &str, interface: &Interface, mtu_bytes: i32) -> Value {
    let has = |flag: i32| interface.flags & flag as u32 != 0;
    let ipv4: Vec<Value> = interface
        .ipv4
        .iter()
        .map(|(address, prefix)| json!({"address": address.to_string(), "prefix": prefix}))
        .collect();
    json!({"name": name, "up": has(libc::IFF_UP) && has(libc::IFF_RUNNING),
           "loopback": has(libc::IFF_LOOPBACK), "mtu": mtu_bytes, "ipv4": ipv4})
}

fn interfaces() -> io::Result<BTreeMap<String, Interface>> {
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: `first` outlives the call.
    if unsafe { libc::getifaddrs(&mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut interfaces: BTreeMap<String, Interface> = BTreeMap::new();
    let mut next = first;
    // SAFETY: the list ends with a null pointer and stays valid until freeifaddrs. Each name is
    // zero-terminated.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        // SAFETY: see above.
        let name = unsafe { CStr::from_ptr(entry.ifa_name) }.to_string_lossy().into_owned();
        let new = Interface { flags: entry.ifa_flags, ipv4: Vec::new() };
        let interface = interfaces.entry(device_of(&name)).or_insert(new);
        // SAFETY: both pointers are null or refer to addresses of the list.
        let pair = unsafe { (ipv4_of(entry.ifa_addr), ipv4_of(entry.ifa_netmask)) };
        if let (Some(address), Some(mask)) = pair {
            interface.ipv4.push((address, u32::from(mask).count_ones()));
        }
    }
    // SAFETY: `first` comes from getifaddrs and is freed once.
    unsafe { libc::freeifaddrs(first) };
    Ok(interfaces)
}

/// Returns the device of an address. An address with a label, as in `eth0:backup`, lists the label.
fn device_of(label: &str) -> String {
    label.split(':').next().unwrap_or_default().into()
}

/// # Safety
/// `address` is null or refers to an address of the length that its family has.
unsafe fn ipv4_of(address: *const libc::sockaddr) -> Option<Ipv4Addr> {
    if i32::from(address.as_ref()?.sa_family) != libc::AF_INET {
        return None;
    }
    let address = address.cast::<libc::sockaddr_in>().read_unaligned();
    Some(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)))
}

/// Asks the kernel, because /sys may show the devices of another network namespace.
fn mtu_bytes(name: &str) -> io::Result<i32> {
    // SAFETY: an all-zero ifreq is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    for (target, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *target = byte as libc::c_char;
    }
    let socket = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(&socket);
    // SAFETY: `request` outlives the call; the kernel writes only its MTU.
    if unsafe { libc::ioctl(descriptor, libc::SIOCGIFMTU as _, &mut request) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the successful call wrote this field.
    Ok(unsafe { request.ifr_ifru.ifru_mtu })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_has_its_address_and_mtu() {
        let answer = addresses().unwrap();
        let interfaces = answer["interfaces"].as_array().unwrap();
        let is_loopback = |interface: &&Value| interface["loopback"] == json!(true);
        let loopback = interfaces.iter().find(is_loopback).unwrap();
        let ipv4 = loopback["ipv4"].as_array().unwrap();
        assert!(ipv4.contains(&json!({"address": "127.0.0.1", "prefix": 8})), "{answer}");
        assert!(loopback["mtu"].as_i64().unwrap() >= 1500);
    }

    #[test]
    fn a_label_is_not_an_interface() {
        assert_eq!(device_of("eth0:backup"), "eth0");
        assert_eq!(device_of("wlan0"), "wlan0");
    }
}
