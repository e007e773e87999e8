//! Server and pong: jsonrpsee with a method per encoding.

use std::net::{IpAddr, SocketAddr};

use jsonrpsee::server::{serve, stop_channel, Methods, RpcModule, Server, ServerConfig};
use jsonrpsee::types::{ErrorObjectOwned, Params};
use tokio::net::TcpListener;
use wattwire_kit::{
    locked_version, Error, Kit, Library, Message, Ready, Record, Runtime, COMPILER,
};
use wattwire_web::json::JsonRecord;
use wattwire_web::{switch, tls, Tokio};

use crate::{BODY_BYTES_MAX, GUARANTEE, LOCKED};

/// jsonrpsee's documented default.
const NODELAY_BY_ITSELF: bool = true;
const OF_ANOTHER_RUN: i32 = -32_000;

fn stranger() -> ErrorObjectOwned {
    ErrorObjectOwned::owned(OF_ANOTHER_RUN, "of another run", None::<()>)
}

/// Parses the params. Counts invalid params as a corrupt request.
fn read<'a, T: serde::Deserialize<'a>>(
    kit: &Kit,
    params: &'a Params,
) -> Result<T, ErrorObjectOwned> {
    params.parse::<[T; 1]>().map(|[only]| only).inspect_err(|_| {
        let _ = kit.serve(Message::Unreadable);
    })
}

fn echo(kit: &'static Kit, params: &Params) -> Result<String, ErrorObjectOwned> {
    let text: String = read(kit, params)?;
    let request = kit.serve(text.as_str()).ok_or_else(stranger)?;
    let reply = String::from_utf8_lossy(request.reply().bytes()).into_owned();
    kit.served(&request); // jsonrpsee sends the reply after the return
    Ok(reply)
}

fn echo_record(kit: &'static Kit, params: &Params) -> Result<JsonRecord, ErrorObjectOwned> {
    let record: Record = read::<JsonRecord>(kit, params)?.into();
    let request = kit.serve(&record).ok_or_else(stranger)?;
    let Message::Record(reply) = request.reply() else { return Err(stranger()) };
    let reply = JsonRecord::from(reply);
    kit.served(&request);
    Ok(reply)
}

fn methods(kit: &'static Kit) -> Result<Methods, Error> {
    let mut module = RpcModule::new(kit);
    module.register_method("echo", |params, &kit, _| echo(kit, &params))?;
    module.register_method("echo_record", |params, &kit, _| echo_record(kit, &params))?;
    Ok(module.into())
}

/// Starts a server that runs until the process ends, and returns its address.
async fn open(kit: &'static Kit, runtime: &Tokio) -> Result<SocketAddr, Error> {
    let nodelay = switch(kit, "settings.tcp_nodelay");
    let config = ServerConfig::builder()
        .http_only()
        .max_request_body_size(BODY_BYTES_MAX)
        .max_response_body_size(BODY_BYTES_MAX)
        .set_tcp_no_delay(nodelay.unwrap_or(NODELAY_BY_ITSELF))
        .build();
    let builder = Server::builder().set_config(config);
    let methods = methods(kit)?;
    let host = IpAddr::V4(kit.string("host.address").parse().expect("the kit has checked it"));
    if !tls::is_enabled(kit) {
        let server = builder.build((host, 0)).await?;
        let address = server.local_addr()?;
        runtime.spawn(server.start(methods).stopped());
        return Ok(address);
    }
    // jsonrpsee's server has no TLS, so its service runs on this cell's TLS connections.
    let listener = TcpListener::bind((host, 0)).await?;
    let config = tls::server_config(kit, &["h2", "http/1.1"])?;
    let mut listener =
        tls::TlsListener::new(listener, config, Some(nodelay.unwrap_or(NODELAY_BY_ITSELF)))?;
    let address = listener.address;
    let (stopped, never_stopped) = stop_channel();
    let service = builder.to_service_builder().build(methods, stopped);
    runtime.spawn(async move {
        let _never_stopped = never_stopped;
        loop {
            let (stream, _) = listener.accept().await;
            tokio::spawn(serve(stream, service.clone()));
        }
    });
    Ok(address)
}

pub fn serve_calls(kit: &'static Kit) -> Result<(), Error> {
    let runtime = Tokio::new(kit)?;
    let address = runtime.block_on(open(kit, &runtime))?;
    let scheme = if tls::is_enabled(kit) { "https" } else { "http" };
    kit.listening(&[format!("{scheme}://{address}/")]);
    let version = locked_version(LOCKED, "jsonrpsee-server");
    let nodelay = switch(kit, "settings.tcp_nodelay").unwrap_or(NODELAY_BY_ITSELF);
    let effective = vec![
        ("tcp_nodelay", nodelay.into()),
        ("tls", tls::offered(kit)),
        ("server", format!("jsonrpsee-server {version}").into()),
        ("runtime", runtime.name().into()),
        ("server_workers", runtime.workers().into()),
        ("transport", "tcp/ipv4".into()),
    ];
    kit.ready(&Ready {
        matched: None,
        library: Library {
            name: "jsonrpsee".into(),
            version: version.into(),
            build: COMPILER.into(),
        },
        effective,
        guarantee: GUARANTEE,
        discovery_ns: None,
    });
    kit.wait();
    Ok(())
}
