//! Checks whether a server accepts connections.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use crate::protocol::{Answer, Problem};

const TIMEOUT_MS_MAX: u64 = 60_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connects {
    address: IpAddr,
    port: u16,
    #[serde(default = "default_timeout_ms")]
    timeout_ms: u64,
}

fn default_timeout_ms() -> u64 {
    1000
}

/// Tries one connection and closes it. A refused connection is an answer and not an error.
pub fn connects(request: &Connects) -> Answer {
    let Connects { address, port, timeout_ms } = *request;
    if port == 0 || !(1..=TIMEOUT_MS_MAX).contains(&timeout_ms) {
        return Err(Problem::usage(format!(
            "connects: found port {port}, timeout_ms {timeout_ms}; allowed: ports from 1, \
             timeouts from 1 to {TIMEOUT_MS_MAX}"
        )));
    }
    let server = SocketAddr::from((address, port));
    let reason = match TcpStream::connect_timeout(&server, Duration::from_millis(timeout_ms)) {
        // With many free ports, the kernel may connect a socket to itself.
        Ok(stream) if stream.local_addr().is_ok_and(|own| own == server) => "no server".into(),
        Ok(_) => String::new(),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => {
            format!("no answer within {timeout_ms} ms")
        }
        Err(error) => error.to_string(),
    };
    Ok(json!({"connects": reason.is_empty(), "reason": reason}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener};

    fn ask(port: u16) -> Answer {
        connects(&Connects { address: Ipv4Addr::LOCALHOST.into(), port, timeout_ms: 5000 })
    }

    #[test]
    fn a_listening_server_connects_and_a_closed_port_has_a_reason() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(ask(port).unwrap(), json!({"connects": true, "reason": ""}));
        drop(listener);
        let answer = ask(port).unwrap();
        assert_eq!(answer["connects"], json!(false));
        assert!(answer["reason"].as_str().unwrap().contains("refused"), "{answer}");
        assert!(ask(0).is_err());
    }
}
