//! Client and ping: jsonrpsee over HTTP, with sequential or concurrent calls.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use jsonrpsee::core::client::{ClientT, Error as CallError};
use jsonrpsee::core::params::ArrayParams;
use jsonrpsee::http_client::HttpClient;
use wattwire_kit::{
    causes, locked_version, Buffer, Error, Futures, Kit, Library, Message, Ready, Runtime,
    SendFailed, COMPILER,
};
use wattwire_web::json::JsonRecord;
use wattwire_web::tls::ClientConfig;
use wattwire_web::{on_or_off, switch, tls, Tokio};

use crate::{BODY_BYTES_MAX, GUARANTEE, LOCKED};

/// jsonrpsee's documented default.
const NODELAY_BY_ITSELF: bool = true;

type Reply = Result<Option<Buffer>, SendFailed>;

/// Returns the timeout of the library's client.
fn own_timeout(kit: &Kit) -> Duration {
    Duration::from_nanos(kit.integer("timeout_ns") as u64)
}

/// Returns a client, which uses TLS if there is a `config`.
fn open(kit: &Kit, url: &str, config: Option<ClientConfig>) -> Result<HttpClient, CallError> {
    let mut builder = HttpClient::builder()
        .max_request_size(BODY_BYTES_MAX)
        .max_response_size(BODY_BYTES_MAX)
        .request_timeout(own_timeout(kit))
        .set_tcp_no_delay(switch(kit, "settings.tcp_nodelay").unwrap_or(NODELAY_BY_ITSELF));
    if let Some(config) = config {
        builder = builder.with_custom_cert_store(config);
    }
    builder.build(url)
}

/// Awaits a call and returns its reply, a timeout, or a failed call (C-36).
async fn within<T>(
    kit: &Kit,
    limit: Option<Duration>,
    called: impl Future<Output = Result<T, CallError>>,
    buffer: impl FnOnce(T) -> Buffer,
) -> Reply {
    let ended = match limit {
        None => called.await,
        Some(limit) => {
            let ended = tokio::time::timeout(limit, called).await;
            ended.unwrap_or(Err(CallError::RequestTimeout))
        }
    };
    match ended {
        Ok(reply) => Ok(Some(buffer(reply))),
        Err(CallError::RequestTimeout) => Ok(None),
        Err(CallError::Transport(error)) => Err(kit.not_sent(causes(&*error))),
        Err(CallError::Call(error)) => Err(kit.not_sent(error)),
        Err(_) => Ok(Some(Buffer::Unreadable)), // the response is not JSON-RPC
    }
}

fn exchange(
    kit: &'static Kit,
    client: Arc<HttpClient>,
    request: Message,
    timeout: Duration,
) -> Pin<Box<dyn Future<Output = Reply> + Send>> {
    let mut params = ArrayParams::new();
    let inserted = match request {
        Message::Record(record) => params.insert(JsonRecord::from(record)),
        text => params.insert(String::from_utf8_lossy(text.bytes())),
    };
    inserted.expect("numbers and strings are JSON");
    // The client's timeout ends scheduled calls; a probe may have a shorter timeout.
    let limit = Some(timeout).filter(|&limit| limit < own_timeout(kit));
    if matches!(request, Message::Record(_)) {
        return Box::pin(async move {
            let called = client.request::<JsonRecord, _>("echo_record", params);
            within(kit, limit, called, |reply| Buffer::Record(reply.into())).await
        });
    }
    Box::pin(async move {
        let called = client.request::<String, _>("echo", params);
        within(kit, limit, called, |reply| Buffer::Bytes(reply.into())).await
    })
}

pub fn call(kit: &'static Kit) -> Result<(), Error> {
    let key = "peers.endpoints";
    let Some(&url) = kit.strings(key).first() else {
        return Err(Error::bad_spec(key, "no entry", "the address of a server"));
    };
    let runtime = Tokio::new(kit)?;
    let runtime_name = runtime.name();
    let mut tls_version = "none";
    if tls::is_enabled(kit) {
        let address = url.split('/').nth(2).unwrap_or_default();
        tls_version = runtime.block_on(tls::agreed_version(kit, address))?;
    }
    let config = tls::is_enabled(kit).then(|| tls::client_config(kit)).transpose()?;
    let keeps = switch(kit, "settings.keep_alive") != Some(false);
    let kept = Arc::new(open(kit, url, config.clone())?);
    let mut calls = Futures::new(kit, runtime, move |request: Message, timeout: Duration| {
        if keeps {
            return exchange(kit, kept.clone(), request, timeout);
        }
        // Without keep-alive, a separate client connects within the call and closes after it.
        let lone = open(kit, url, config.clone()).expect("the same client was built before");
        exchange(kit, Arc::new(lone), request, timeout)
    });
    let discovery_ns = kit.probe(&mut calls)?;
    let version = locked_version(LOCKED, "jsonrpsee-http-client");
    let nodelay = switch(kit, "settings.tcp_nodelay").unwrap_or(NODELAY_BY_ITSELF);
    let effective = vec![
        ("keep_alive", on_or_off(keeps)),
        ("runtime", runtime_name.into()),
        ("tcp_nodelay", nodelay.into()),
        ("tls", tls_version.into()),
        ("transport", "tcp/ipv4".into()),
    ];
    kit.ready(&Ready {
        matched: Some(1),
        library: Library {
            name: "jsonrpsee".into(),
            version: version.into(),
            build: COMPILER.into(),
        },
        effective,
        guarantee: GUARANTEE,
        discovery_ns: Some(discovery_ns),
    });
    calls.call_all()
}
