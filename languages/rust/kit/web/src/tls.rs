//! TLS (C-35): configurations from the specification's files, a listener and a probe.

use std::fs::File;
use std::io::BufReader;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
pub use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::{crypto, ProtocolVersion, RootCertStore, ServerConfig};
pub use tokio_rustls::server::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};
use wattwire_kit::{failed, Error, Kit, Value};

/// Maximum number of completed handshakes that wait for `accept`.
const BACKLOG: usize = 128;

/// Returns whether connections use TLS.
pub fn is_enabled(kit: &Kit) -> bool {
    !kit.string("tls.authority").is_empty()
}

/// Sets ring as the process's default cryptography, for libraries that use rustls's default.
pub fn choose_cryptography() {
    // Fails if a library has already set a default, which is acceptable.
    let _ = crypto::ring::default_provider().install_default();
}

fn certificates(kit: &Kit, key: &str) -> Result<Vec<CertificateDer<'static>>, Error> {
    let path = kit.string(key);
    let unreadable = |reason: &dyn std::fmt::Display| failed(format!("{key}: {path}: {reason}"));
    let file = File::open(path).map_err(|error| unreadable(&error))?;
    CertificateDer::pem_reader_iter(BufReader::new(file))
        .collect::<Result<_, _>>()
        .map_err(|error| unreadable(&error))
}

/// Returns the configuration of a server with tls.certificate. `protocols` are the ALPN protocols.
pub fn server_config(kit: &Kit, protocols: &[&str]) -> Result<Arc<ServerConfig>, Error> {
    choose_cryptography();
    let path = kit.string("tls.key");
    let key = PrivateKeyDer::from_pem_file(path)
        .map_err(|error| failed(format!("tls.key: {path}: {error}")))?;
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(certificates(kit, "tls.certificate")?, key)?;
    config.alpn_protocols = protocols.iter().map(|&name| name.into()).collect();
    Ok(Arc::new(config))
}

/// Returns the configuration of a client that trusts only tls.authority.
pub fn client_config(kit: &Kit) -> Result<ClientConfig, Error> {
    choose_cryptography();
    let mut roots = RootCertStore::empty();
    for certificate in certificates(kit, "tls.authority")? {
        roots.add(certificate)?;
    }
    Ok(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
}

/// Returns the TLS version of a connection to `address` (HOST:PORT). Fails with a reason if the
/// certificate is not accepted, while a client would only retry.
pub async fn agreed_version(kit: &Kit, address: &str) -> Result<&'static str, Error> {
    let no_host = |_| failed(format!("TLS with {address}: the address has no host"));
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let name = ServerName::try_from(host.to_owned()).map_err(no_host)?;
    let connector = TlsConnector::from(Arc::new(client_config(kit)?));
    let handshake = async { connector.connect(name, TcpStream::connect(address).await?).await };
    let limit = Duration::from_millis(kit.integer("ready_timeout_ms") as u64);
    let stream = tokio::time::timeout(limit, handshake)
        .await?
        .map_err(|error| failed(format!("TLS with {address}: {error}")))?;
    Ok(match stream.get_ref().1.protocol_version() {
        Some(ProtocolVersion::TLSv1_2) => "1.2",
        Some(ProtocolVersion::TLSv1_3) => "1.3",
        _ => "unknown",
    })
}

/// Returns READY's `tls` of a server, which is ready before any client connects.
pub fn offered(kit: &Kit) -> Value {
    (if is_enabled(kit) { "1.2, 1.3" } else { "none" }).into()
}

/// Accepts connections and performs each handshake in a separate task, so that no connection waits
/// for another's handshake.
pub struct TlsListener {
    handshaken: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    pub address: SocketAddr,
}

impl TlsListener {
    /// `nodelay` sets TCP_NODELAY; None keeps the system's default.
    pub fn new(
        listener: TcpListener,
        config: Arc<ServerConfig>,
        nodelay: Option<bool>,
    ) -> Result<Self, Error> {
        let address = listener.local_addr()?;
        let acceptor = TlsAcceptor::from(config);
        let (sender, handshaken) = mpsc::channel(BACKLOG);
        tokio::spawn(async move {
            loop {
                // Ignores connections that fail, because the client has left or is foreign.
                let Ok((stream, peer)) = listener.accept().await else {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    continue;
                };
                let (acceptor, sender) = (acceptor.clone(), sender.clone());
                tokio::spawn(async move {
                    if let Some(on) = nodelay {
                        let _ = stream.set_nodelay(on);
                    }
                    if let Ok(stream) = acceptor.accept(stream).await {
                        let _ = sender.send((stream, peer)).await;
                    }
                });
            }
        });
        Ok(TlsListener { handshaken, address })
    }

    pub async fn accept(&mut self) -> (TlsStream<TcpStream>, SocketAddr) {
        match self.handshaken.recv().await {
            Some(connection) => connection,
            None => std::future::pending().await, // the runtime ends
        }
    }
}
