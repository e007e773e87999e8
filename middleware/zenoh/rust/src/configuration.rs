//! The configuration of a session. All other options have Zenoh's defaults.

use std::net::{TcpListener, UdpSocket};

use wattwire_kit::{Error, Kit, Value};
use zenoh::Config;

/// Zenoh's default of shared_memory/transport_optimization/message_size_threshold.
pub const SHARED_BYTES_MIN: i64 = 3072;

pub fn configuration(kit: &Kit, listen: &[&str], connect: &[&str]) -> zenoh::Result<Config> {
    let mut config = Config::default();
    let scouting = kit.boolean("settings.scouting");
    let is_shared = kit.integer("payload.bytes") >= SHARED_BYTES_MIN;
    for (key, value) in [
        ("mode", Value::from(mode_of(kit))),
        ("listen/endpoints", listen.into()),
        ("connect/endpoints", connect.into()),
        ("connect/timeout_ms", kit.integer("ready_timeout_ms").into()),
        ("connect/exit_on_failure", true.into()),
        ("scouting/multicast/enabled", scouting.into()),
        ("scouting/multicast/interface", kit.string("host.interface").into()),
        ("scouting/gossip/enabled", scouting.into()),
        ("transport/shared_memory/enabled", kit.boolean("settings.shared_memory").into()),
        // Allocates buffers before READY (C-07) instead of at the first message.
        ("transport/shared_memory/mode", if is_shared { "init" } else { "lazy" }.into()),
        ("transport/link/tx/queue/batching/enabled", kit.boolean("settings.batching").into()),
    ] {
        config.insert_json5(key, &value.to_string())?;
    }
    if is_secured(kit) {
        for (key, value) in credentials(kit) {
            config.insert_json5(&format!("transport/link/tls/{key}"), &value.to_string())?;
        }
    }
    Ok(config)
}

/// Returns whether links use TLS, in which both sides show a certificate (C-43).
pub fn is_secured(kit: &Kit) -> bool {
    kit.string("settings.security") == "on"
}

/// Returns the protocol in endpoints. Zenoh secures TCP by TLS, and UDP not at all.
pub fn protocol(kit: &Kit) -> Result<&str, Error> {
    match (is_secured(kit), kit.string("settings.transport")) {
        (false, transport) => Ok(transport),
        (true, "tcp") => Ok("tls"),
        (true, transport) => {
            Err(Error::bad_spec("settings.transport", transport, "tcp with security = on"))
        }
    }
}

/// Returns the keys of TLS. A node without a certificate shows none when it connects.
fn credentials(kit: &Kit) -> Vec<(&'static str, Value)> {
    let mut table = vec![("root_ca_certificate", kit.string("tls.authority").into())];
    let (certificate, key) = (kit.string("tls.certificate"), kit.string("tls.key"));
    if !certificate.is_empty() {
        table.push(("enable_mtls", true.into()));
        for (name, path) in [
            ("listen_certificate", certificate),
            ("listen_private_key", key),
            ("connect_certificate", certificate),
            ("connect_private_key", key),
        ] {
            table.push((name, path.into()));
        }
    }
    table
}

/// Returns "client" if the nodes connect only to a router, which is then their only endpoint.
pub fn mode_of(kit: &Kit) -> &'static str {
    match kit.string("settings.via") {
        "router" => "client",
        _ => "peer",
    }
}

pub fn free_port(host: &str, transport: &str) -> Result<u16, Error> {
    let any = (host, 0);
    Ok(if transport == "udp" {
        UdpSocket::bind(any)?.local_addr()?.port()
    } else {
        TcpListener::bind(any)?.local_addr()?.port()
    })
}
