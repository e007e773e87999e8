//! Selects ports that are free for both TCP and UDP, below the kernel's range of ephemeral ports.

use std::collections::HashSet;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};

use serde_json::json;

use crate::clock;
use crate::protocol::{Answer, Kind, Problem};

const FIRST: u16 = 10_000;
const LAST: u16 = 32_767;

/// Remembers the reserved ports, because a server binds its port some time after the reservation.
#[derive(Default)]
pub struct Ports {
    reserved: HashSet<u16>,
}

impl Ports {
    pub fn take(&mut self, count: usize) -> Answer {
        let range = (LAST - FIRST + 1) as usize;
        if !(1..=1000).contains(&count) {
            let message = format!("ports: count: found {count}; allowed: 1 to 1000");
            return Err(Problem::usage(message));
        }
        // Agents that start simultaneously should not try the same ports.
        let mut next =
            (clock::monotonic_ns() as usize / 1000 + std::process::id() as usize) % range;
        let mut ports = Vec::new();
        let mut tried = 0;
        while ports.len() < count {
            if tried == range {
                if self.reserved.len() <= ports.len() {
                    let message = format!("ports: no {count} free ports in {FIRST}-{LAST}");
                    return Err(Problem::new(Kind::Busy, message));
                }
                // All ports have been reserved once, and the oldest may be free again.
                self.reserved = ports.iter().copied().collect();
                tried = 0;
            }
            let port = FIRST + next as u16;
            next = (next + 1) % range;
            tried += 1;
            if !self.reserved.contains(&port) && is_free(port) {
                self.reserved.insert(port);
                ports.push(port);
            }
        }
        Ok(json!({"ports": ports}))
    }
}

fn is_free(port: u16) -> bool {
    let v4 = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
    let v6 = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
    let free = |address: SocketAddr| {
        TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok()
    };
    // On a host without IPv6, binding fails for every port, so only EADDRINUSE matters.
    let in_use_v6 = || {
        let error = TcpListener::bind(v6).err();
        error.and_then(|error| error.raw_os_error()) == Some(libc::EADDRINUSE)
    };
    free(v4) && !in_use_v6()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_distinct_and_in_range() {
        let mut ports = Ports::default();
        let answer = ports.take(50).unwrap();
        let reserved: Vec<u64> =
            answer["ports"].as_array().unwrap().iter().map(|p| p.as_u64().unwrap()).collect();
        let distinct: HashSet<_> = reserved.iter().collect();
        assert_eq!(distinct.len(), 50);
        assert!(reserved.iter().all(|port| (10_000..=32_767).contains(port)));
    }

    #[test]
    fn a_port_bound_for_udp_only_is_not_free() {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        assert!(!is_free(socket.local_addr().unwrap().port()));
    }

    #[test]
    fn the_error_for_a_large_count_names_the_allowed_range() {
        let problem = Ports::default().take(100_000).unwrap_err();
        assert!(problem.message.contains("allowed: 1 to 1000"));
    }
}
