//! A Zenoh session with its configuration, peers, effective settings and shutdown.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::{Arc, Mutex};

use wattwire_kit::{failed, now_ns, sleep_until_ns, Error, Guarantee, Kit, Library, Ready};
use zenoh::qos::{CongestionControl, Reliability};
use zenoh::Wait;

use crate::configuration::{
    configuration, free_port, is_secured, mode_of, protocol, SHARED_BYTES_MIN,
};
use crate::segments;

const LISTEN_ATTEMPTS: usize = 5;
/// Zenoh tells the node that connects nothing but a timeout; the log of the other node has why.
const REFUSALS: &str = "off,zenoh_link_tls=warn";
const WHY: &str = "; if a certificate was refused, the log of the process that listens says why";
const NOT_TOLD: &str = "not told by the library";

pub struct Session {
    pub kit: &'static Kit,
    pub zenoh: zenoh::Session,
    pub prefix: String,
    created_ns: i64,
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.zenoh.close().wait();
        segments::remove_own();
    }
}

impl Session {
    pub fn listen(kit: &'static Kit) -> Result<Self, Error> {
        match mode_of(kit) {
            "client" => Self::connect(kit),
            _ => Self::listen_and_connect(kit, &[]),
        }
    }

    /// Opens the session of a relay, which listens and connects to its successor.
    pub fn relay(kit: &'static Kit) -> Result<Self, Error> {
        match mode_of(kit) {
            "client" => Self::connect(kit),
            _ => Self::listen_and_connect(kit, &peer_endpoints(kit)?),
        }
    }

    fn listen_and_connect(kit: &'static Kit, connect: &[String]) -> Result<Self, Error> {
        let (host, transport) = (kit.string("host.address"), protocol(kit)?);
        let mut reason = String::new();
        let deadline_ns = now_ns() + kit.integer("ready_timeout_ms") * 1_000_000;
        for _ in 0..LISTEN_ATTEMPTS {
            // Zenoh does not report the port that it gets for port 0, so the node selects a free
            // port.
            let endpoint = format!("{transport}/{host}:{}", free_port(host, transport)?);
            match Self::open(kit, &[&endpoint], connect) {
                Ok(session) => {
                    kit.listening(&[endpoint]);
                    return Ok(session);
                }
                // Another program may have taken the port in the meantime.
                Err(error) => reason = format!("listen on {endpoint}: {error}"),
            }
            // Zenoh has tried to connect until the timeout.
            if now_ns() >= deadline_ns {
                break;
            }
        }
        Err(failed(reason))
    }

    pub fn connect(kit: &'static Kit) -> Result<Self, Error> {
        let endpoints = peer_endpoints(kit)?;
        let why = if is_secured(kit) { WHY } else { "" };
        Self::open(kit, &[], &endpoints)
            .map_err(|error| failed(format!("connect to {}: {error}{why}", endpoints.join(", "))))
    }

    fn open(kit: &'static Kit, listen: &[&str], connect: &[String]) -> zenoh::Result<Self> {
        let created_ns = now_ns();
        if is_secured(kit) {
            zenoh::init_log_from_env_or(REFUSALS);
        }
        let connect: Vec<&str> = connect.iter().map(String::as_str).collect();
        let zenoh = zenoh::open(configuration(kit, listen, &connect)?).wait()?;
        let prefix = format!("wattwire/{}", kit.string("run"));
        Ok(Session { kit, zenoh, prefix, created_ns })
    }

    /// Returns the setting. `default` is Zenoh's default for this kind of message.
    pub fn congestion(&self, default: CongestionControl) -> CongestionControl {
        match self.kit.string("settings.congestion_control") {
            "drop" => CongestionControl::Drop,
            "block" => CongestionControl::Block,
            _ => default,
        }
    }

    /// Waits for `matched` and for peers.count tokens. Returns the number of tokens. Each item of
    /// `roles` has the role of this node's token, and the role of its peers' tokens.
    ///
    /// A node declares its liveliness token after its endpoint, and peers receive both in this
    /// order. A peer that has the token therefore knows the endpoint.
    pub fn await_peers(
        &self,
        roles: &[(impl Display, impl Display)],
        matched: impl Fn() -> bool,
    ) -> Result<usize, Error> {
        let (prefix, node) = (&self.prefix, self.kit.integer("node"));
        let live = self.zenoh.liveliness();
        let seen = Arc::new(Mutex::new(BTreeSet::new()));
        for (own, others) in roles {
            let token = live.declare_token(format!("{prefix}/live/{own}/{node}")).wait();
            let tokens = Arc::clone(&seen);
            let watch = live
                .declare_subscriber(format!("{prefix}/live/{others}/*"))
                .history(true)
                .callback(move |sample| {
                    tokens.lock().expect("no panic").insert(sample.key_expr().to_string());
                })
                .wait();
            // Keeps both until the end of the session, because Zenoh announces their end to the
            // peers.
            std::mem::forget((token.map_err(failed)?, watch.map_err(failed)?));
        }
        let count = || seen.lock().expect("no panic").len();
        let nap = |ns| sleep_until_ns(now_ns() + ns);
        self.kit.await_peers(|| if matched() { count() } else { 0 }, nap)?;
        Ok(count())
    }

    pub fn ready(&self, matched: usize, congestion: CongestionControl, reliability: Reliability) {
        let links: Vec<_> = self.zenoh.info().links().wait().collect();
        let is_shm = self.zenoh.info().transports().wait().any(|transport| transport.is_shm());
        let blocks = congestion == CongestionControl::Block;
        let used = match links.first() {
            Some(link) => link.dst().protocol().to_string(),
            None => protocol(self.kit).unwrap_or_default().to_string(),
        };
        let is_tls = used == "tls";
        let transport = if is_tls { "tcp".to_string() } else { used };
        let reliability =
            if reliability == Reliability::Reliable { "reliable" } else { "best_effort" };
        let mut effective = vec![
            ("transport", transport.as_str().into()),
            ("congestion_control", if blocks { "block" } else { "drop" }.into()),
            ("reliability", reliability.into()),
            ("shared_memory", is_shm.into()),
            ("shared_memory_bytes_min", SHARED_BYTES_MIN.into()),
            ("mode", mode_of(self.kit).into()),
            ("links", links.len().into()),
            ("security", if is_tls { "on" } else { "off" }.into()),
        ];
        if is_tls {
            effective.push(("security_protocol", NOT_TOLD.into()));
            effective.push(("security_cipher", NOT_TOLD.into()));
        }
        let reliable = transport == "tcp" && blocks;
        self.kit.ready(&Ready {
            matched: Some(matched),
            library: Library {
                name: "zenoh".into(),
                version: zenoh::GIT_VERSION.trim_start_matches('v').into(),
                build: wattwire_kit::COMPILER.into(),
            },
            effective,
            guarantee: Guarantee {
                delivery: if reliable { "reliable" } else { "best_effort" },
                ordering: "per_sender",
                overload: if blocks { "block" } else { "drop_newest" },
            },
            discovery_ns: Some(now_ns() - self.created_ns),
        });
    }
}

/// Returns the peers with this node's protocol: one that is not secured speaks plainly to all.
fn peer_endpoints(kit: &Kit) -> Result<Vec<String>, Error> {
    let endpoints = kit.strings("peers.endpoints");
    let known = |e: &&str| ["tcp/", "udp/", "tls/"].iter().any(|protocol| e.starts_with(protocol));
    if endpoints.is_empty() || !endpoints.iter().all(known) {
        let (key, found) = ("peers.endpoints", endpoints.join(", "));
        return Err(Error::bad_spec(key, found, "PROTOCOL/HOST:PORT, of tcp, udp, tls"));
    }
    let protocol = protocol(kit)?;
    let address = |e: &&str| e.split_once('/').map_or("", |(_, address)| address).to_string();
    Ok(endpoints.iter().map(|e| format!("{protocol}/{}", address(e))).collect())
}
