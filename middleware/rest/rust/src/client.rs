//! Client and ping: reqwest, with sequential or concurrent calls.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use reqwest::{Certificate, Client, StatusCode, Version};
use wattwire_kit::{
    causes, locked_version, Buffer, Error, Futures, Kit, Library, Message, Ready, Runtime,
    SendFailed, COMPILER,
};
use wattwire_web::{body_of, buffer_of, on_or_off, switch, tls, Tokio};

use crate::{content_type, GUARANTEE, LOCKED};

/// reqwest's documented default.
const NODELAY_BY_ITSELF: bool = true;

fn open(kit: &Kit) -> Result<Client, Error> {
    tls::choose_cryptography(); // reqwest needs a provider even without TLS
    let mut builder = Client::builder().no_proxy();
    builder = match kit.string("settings.http_version") {
        "1.1" => builder.http1_only(),
        "2" => builder.http2_prior_knowledge(),
        _ => builder,
    };
    if let Some(on) = switch(kit, "settings.tcp_nodelay") {
        builder = builder.tcp_nodelay(on);
    }
    if switch(kit, "settings.keep_alive") == Some(false) {
        builder = builder.pool_max_idle_per_host(0);
    }
    if tls::is_enabled(kit) {
        let authority = std::fs::read(kit.string("tls.authority"))?;
        builder = builder.tls_certs_only(Certificate::from_pem_bundle(&authority)?);
    }
    Ok(builder.build()?)
}

/// Returns the reply to a request, and records whether it arrived by HTTP/2.
async fn exchange(
    kit: &'static Kit,
    request: reqwest::RequestBuilder,
    by_http2: Arc<AtomicBool>,
) -> Result<Option<Buffer>, SendFailed> {
    let received = async {
        let response = request.send().await?;
        by_http2.store(response.version() == Version::HTTP_2, Relaxed);
        let status = response.status();
        Ok::<_, reqwest::Error>((status, response.bytes().await?))
    };
    match received.await {
        Ok((StatusCode::OK, body)) => Ok(Some(buffer_of(kit, body.into()))),
        Ok((status, _)) => Err(kit.not_sent(format_args!("HTTP status {status}"))),
        Err(error) if error.is_timeout() => Ok(None),
        Err(error) => Err(kit.not_sent(causes(&error))),
    }
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
    let (client, by_http2) = (open(kit)?, Arc::new(AtomicBool::new(false)));
    let seen = by_http2.clone();
    let mut calls = Futures::new(kit, runtime, move |request: Message, timeout: Duration| {
        let post = client.post(url).timeout(timeout).header(CONTENT_TYPE, content_type(kit));
        exchange(kit, post.body(body_of(request)), seen.clone())
    });
    let discovery_ns = kit.probe(&mut calls)?;
    let version = locked_version(LOCKED, "reqwest");
    let keeps = switch(kit, "settings.keep_alive") != Some(false);
    let nodelay = switch(kit, "settings.tcp_nodelay").unwrap_or(NODELAY_BY_ITSELF);
    let http_version = if by_http2.load(Relaxed) { "2" } else { "1.1" };
    let effective = vec![
        ("http_version", http_version.into()),
        ("keep_alive", on_or_off(keeps)),
        ("runtime", runtime_name.into()),
        ("tcp_nodelay", nodelay.into()),
        ("tls", tls_version.into()),
        ("transport", "tcp/ipv4".into()),
    ];
    let library =
        Library { name: "reqwest".into(), version: version.into(), build: COMPILER.into() };
    kit.ready(&Ready {
        matched: Some(1),
        library,
        effective,
        guarantee: GUARANTEE,
        discovery_ns: Some(discovery_ns),
    });
    calls.call_all()
}
