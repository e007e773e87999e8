//! TLS (C-35): configurations from the specification's files, and who accepts and connects.

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

/// Handshakes that are through and not yet taken.
const TAKEN_SOON: usize = 128;

/// Whether connections are TLS.
pub fn wanted(kit: &Kit) -> bool {
    !kit.string("tls.authority").is_empty()
}

/// Makes ring the process's cryptography, for libraries that ask rustls for a default.
pub fn choose_cryptography() {
    // It fails where a library has chosen before, and then that one serves.
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

/// A role that accepts shows tls.certificate; `protocols` are what it speaks on top (ALPN).
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

/// A role that connects trusts tls.authority and nobody else.
pub fn client_config(kit: &Kit) -> Result<ClientConfig, Error> {
    choose_cryptography();
    let mut roots = RootCertStore::empty();
    for certificate in certificates(kit, "tls.authority")? {
        roots.add(certificate)?;
    }
    Ok(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
}

/// The protocol's version that a server at `address` (HOST:PORT) and this node agree on. A
/// certificate that is not accepted fails here, with its reason; a client would only try again.
pub async fn agreed_version(kit: &Kit, address: &str) -> Result<&'static str, Error> {
    let no_host = |_| failed(format!("TLS with {address}: no host in it"));
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let name = ServerName::try_from(host.to_owned()).map_err(no_host)?;
    let connector = TlsConnector::from(Arc::new(client_config(kit)?));
    let greeted = async { connector.connect(name, TcpStream::connect(address).await?).await };
    let limit = Duration::from_millis(kit.integer("ready_timeout_ms") as u64);
    let stream = tokio::time::timeout(limit, greeted)
        .await?
        .map_err(|error| failed(format!("TLS with {address}: {error}")))?;
    Ok(match stream.get_ref().1.protocol_version() {
        Some(ProtocolVersion::TLSv1_2) => "1.2",
        Some(ProtocolVersion::TLSv1_3) => "1.3",
        _ => "unknown",
    })
}

/// READY's `tls` of a role that accepts: it is ready before it knows who comes.
pub fn offered(kit: &Kit) -> Value {
    (if wanted(kit) { "1.2, 1.3" } else { "none" }).into()
}

/// Accepts connections and greets each in a task of its own, so that none waits for another's
/// handshake.
pub struct TlsListener {
    greeted: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    pub address: SocketAddr,
}

impl TlsListener {
    /// `nodelay` is for TCP_NODELAY; None: as the system has it.
    pub fn new(
        listener: TcpListener,
        config: Arc<ServerConfig>,
        nodelay: Option<bool>,
    ) -> Result<Self, Error> {
        let address = listener.local_addr()?;
        let acceptor = TlsAcceptor::from(config);
        let (through, greeted) = mpsc::channel(TAKEN_SOON);
        tokio::spawn(async move {
            loop {
                // Who cannot be accepted or greeted has left, or is none of ours.
                let Ok((stream, peer)) = listener.accept().await else {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    continue;
                };
                let (acceptor, through) = (acceptor.clone(), through.clone());
                tokio::spawn(async move {
                    if let Some(on) = nodelay {
                        let _ = stream.set_nodelay(on);
                    }
                    if let Ok(stream) = acceptor.accept(stream).await {
                        let _ = through.send((stream, peer)).await;
                    }
                });
            }
        });
        Ok(TlsListener { greeted, address })
    }

    pub async fn accept(&mut self) -> (TlsStream<TcpStream>, SocketAddr) {
        match self.greeted.recv().await {
            Some(found) => found,
            None => std::future::pending().await, // the runtime ends
        }
    }
}
