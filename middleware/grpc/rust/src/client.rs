//! Client and ping: tonic's channel, with sequential or concurrent calls.

use std::time::Duration;

use tonic::codegen::Bytes;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Status, TimeoutExpired};
use wattwire_kit::{
    causes, locked_version, Buffer, Error, Futures, Kit, Library, Message, Ready, Runtime,
    SendFailed, COMPILER,
};
use wattwire_web::{on_or_off, switch, tls, Tokio};

use crate::wire::calls_client::CallsClient;
use crate::wire::{BytesPayload, RecordPayload, TextPayload};
use crate::{effective, record, Method, GUARANTEE, LOCKED};

/// A request to one of the service's methods.
enum Outgoing {
    Bytes(BytesPayload),
    Text(TextPayload),
    Record(RecordPayload),
}

impl Outgoing {
    fn new(method: Method, message: Message) -> Self {
        match (method, message) {
            (_, Message::Record(record)) => Outgoing::Record(record::to_wire(record)),
            (Method::Bytes, other) => {
                Outgoing::Bytes(BytesPayload { data: Bytes::copy_from_slice(other.bytes()) })
            }
            (_, other) => {
                let data = String::from_utf8_lossy(other.bytes()).into_owned();
                Outgoing::Text(TextPayload { data })
            }
        }
    }
}

fn within<T>(timeout: Duration, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(timeout);
    request
}

async fn exchange(
    channel: Channel,
    message: Outgoing,
    timeout: Duration,
) -> Result<Buffer, Status> {
    let mut calls = CallsClient::new(channel);
    Ok(match message {
        Outgoing::Bytes(message) => {
            let reply = calls.bytes(within(timeout, message)).await?;
            Buffer::Bytes(reply.into_inner().data.into())
        }
        Outgoing::Text(message) => {
            let reply = calls.text(within(timeout, message)).await?;
            Buffer::Bytes(reply.into_inner().data.into())
        }
        Outgoing::Record(message) => {
            let reply = calls.record(within(timeout, message)).await?;
            Buffer::Record(record::from_wire(reply.into_inner()))
        }
    })
}

fn outcome(kit: &Kit, ended: Result<Buffer, Status>) -> Result<Option<Buffer>, SendFailed> {
    let status = match ended {
        Ok(reply) => return Ok(Some(reply)),
        Err(status) => status,
    };
    match status.code() {
        Code::DeadlineExceeded => Ok(None),
        // tonic reports the deadline that it watches itself as a cancelled call.
        Code::Cancelled if status.message() == TimeoutExpired(()).to_string() => Ok(None),
        _ => Err(kit.not_sent(causes(&status))),
    }
}

fn endpoint(kit: &Kit, address: &str) -> Result<Endpoint, Error> {
    let scheme = if tls::is_enabled(kit) { "https" } else { "http" };
    let endpoint = Endpoint::from_shared(format!("{scheme}://{address}"))?;
    if !tls::is_enabled(kit) {
        return Ok(endpoint);
    }
    let authority = Certificate::from_pem(std::fs::read(kit.string("tls.authority"))?);
    Ok(endpoint.tls_config(ClientTlsConfig::new().ca_certificate(authority))?)
}

pub fn call(kit: &'static Kit) -> Result<(), Error> {
    let key = "peers.endpoints";
    let Some(&address) = kit.strings(key).first() else {
        return Err(Error::bad_spec(key, "no entry", "the address of a server"));
    };
    let runtime = Tokio::new(kit)?;
    let runtime_name = runtime.name();
    let mut tls_version = "none";
    if tls::is_enabled(kit) {
        tls_version = runtime.block_on(tls::agreed_version(kit, address))?;
    }
    let (endpoint, method) = (endpoint(kit, address)?, Method::of(kit));
    let keeps = switch(kit, "settings.keep_alive") != Some(false);
    let kept = runtime.block_on(async { endpoint.connect_lazy() });
    let mut calls = Futures::new(kit, runtime, move |request: Message, timeout: Duration| {
        let message = Outgoing::new(method, request);
        let (kept, separate) = (kept.clone(), (!keeps).then(|| endpoint.clone()));
        async move {
            // Without keep-alive, a separate channel connects within the call and closes after it.
            let channel = separate.map_or(kept, |endpoint| endpoint.connect_lazy());
            // The timeout starts together with the channel's connection.
            let ended = tokio::time::timeout(timeout, exchange(channel, message, timeout));
            ended.await.map_or(Ok(None), |ended| outcome(kit, ended))
        }
    });
    let discovery_ns = kit.probe(&mut calls)?;
    let mut effective = effective(tls_version.into(), runtime_name);
    effective.push(("keep_alive", on_or_off(keeps)));
    kit.ready(&Ready {
        matched: Some(1),
        library: Library {
            name: "tonic".into(),
            version: locked_version(LOCKED, "tonic").into(),
            build: COMPILER.into(),
        },
        effective,
        guarantee: GUARANTEE,
        discovery_ns: Some(discovery_ns),
    });
    calls.call_all()
}
