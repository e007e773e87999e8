//! Free ports for TCP and UDP, below the range from which the kernel takes its own.

use std::collections::HashSet;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};

use serde_json::json;

use crate::clock;
use crate::protocol::{Answer, Kind, Problem};

const FIRST: u16 = 10_000;
const LAST: u16 = 32_767;

/// Remembers what it gave, so that a port is not promised twice before its server binds it.
#[derive(Default)]
pub struct Ports {
    given: HashSet<u16>,
}

impl Ports {
    pub fn take(&mut self, count: usize) -> Answer {
        let range = (LAST - FIRST + 1) as usize;
        if !(1..=1000).contains(&count) {
            let message = format!("ports: count: found {count}; allowed: 1 to 1000");
            return Err(Problem::usage(message));
        }
        // Agents that start together should not walk along the same ports.
        let mut next =
            (clock::monotonic_ns() as usize / 1000 + std::process::id() as usize) % range;
        let mut ports = Vec::new();
        let mut tried = 0;
        while ports.len() < count {
            if tried == range {
                if self.given.len() <= ports.len() {
                    let message = format!("ports: no {count} free ports in {FIRST}-{LAST}");
                    return Err(Problem::new(Kind::Busy, message));
                }
                // All were given once: what was given long ago may be free again.
                self.given = ports.iter().copied().collect();
                tried = 0;
            }
            let port = FIRST + next as u16;
            next = (next + 1) % range;
            tried += 1;
            if !self.given.contains(&port) && is_free(port) {
                self.given.insert(port);
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
    // A host without IPv6 cannot bind there at all: that says nothing about the port.
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
    fn ports_are_in_range_differ_and_avoid_what_is_bound() {
        let mut ports = Ports::default();
        let answer = ports.take(50).unwrap();
        let given: Vec<u64> =
            answer["ports"].as_array().unwrap().iter().map(|p| p.as_u64().unwrap()).collect();
        let distinct: HashSet<_> = given.iter().collect();
        assert_eq!(distinct.len(), 50);
        assert!(given.iter().all(|port| (10_000..=32_767).contains(port)));
    }

    #[test]
    fn a_port_bound_for_udp_only_is_not_free() {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        assert!(!is_free(socket.local_addr().unwrap().port()));
    }

    #[test]
    fn too_many_are_refused_with_the_allowed_range() {
        let problem = Ports::default().take(100_000).unwrap_err();
        assert!(problem.message.contains("allowed: 1 to 1000"));
    }
}
