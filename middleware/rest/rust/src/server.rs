//! Server and pong: axum with a handler for one path.

use std::net::SocketAddr;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::{Listener, ListenerExt};
use axum::Router;
use tokio::net::{TcpListener, TcpStream};
use wattwire_kit::{locked_version, Error, Kit, Library, Message, Ready, Runtime, COMPILER};
use wattwire_web::{body_of, json, switch, tls, Tokio};

use crate::{content_type, GUARANTEE, LOCKED};

const NODELAY: &str = "settings.tcp_nodelay";

async fn echo(State(kit): State<&'static Kit>, body: Bytes) -> Response {
    if kit.encoding() == "record" {
        let record = json::read(&body);
        let message = record.as_ref().map_or(Message::Unreadable, Message::Record);
        return answer(kit, message, body_of);
    }
    // An echo shares the request's memory, as is usual with axum.
    let is_echo = kit.string("reply") == "echo";
    answer(kit, Message::from(&body[..]), |reply| {
        if is_echo {
            body.clone()
        } else {
            Bytes::copy_from_slice(reply.bytes())
        }
    })
}

/// Returns the response to a message. `body` converts the reply to a body.
fn answer<B: Into<axum::body::Body>>(
    kit: &'static Kit,
    message: Message,
    body: impl FnOnce(Message) -> B,
) -> Response {
    let Some(request) = kit.serve(message) else {
        let strange = message.is_readable();
        let status = if strange { StatusCode::CONFLICT } else { StatusCode::BAD_REQUEST };
        return status.into_response();
    };
    let content_type = [(CONTENT_TYPE, content_type(kit))];
    let response = (content_type, body(request.reply()).into()).into_response();
    kit.served(&request); // axum sends the reply after the return
    response
}

/// Connections after their TLS handshake.
struct Greeted(tls::TlsListener);

impl Listener for Greeted {
    type Io = tls::TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        self.0.accept().await
    }
    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        Ok(self.0.address)
    }
}

/// Starts a server that runs until the process ends, and returns its address.
async fn open(kit: &'static Kit, runtime: &Tokio) -> Result<SocketAddr, Error> {
    // The longest payload exceeds axum's default limit of 2 MB.
    let router = Router::new().route("/echo", post(echo));
    let router = router.layer(DefaultBodyLimit::disable()).with_state(kit);
    let listener = TcpListener::bind((kit.string("host.address"), 0)).await?;
    let (address, nodelay) = (listener.local_addr()?, switch(kit, NODELAY));
    if tls::is_enabled(kit) {
        let protocols: &[&str] = match kit.string("settings.http_version") {
            "1.1" => &["http/1.1"],
            "2" => &["h2"],
            _ => &["h2", "http/1.1"],
        };
        let config = tls::server_config(kit, protocols)?;
        let listener = Greeted(tls::TlsListener::new(listener, config, nodelay)?);
        runtime.spawn(attend(listener, router));
    } else if let Some(on) = nodelay {
        let listener = listener.tap_io(move |stream| {
            let _ = stream.set_nodelay(on); // fails only if the client has left
        });
        runtime.spawn(attend(listener, router));
    } else {
        runtime.spawn(attend(listener, router));
    }
    Ok(address)
}

async fn attend<L: Listener<Addr = SocketAddr>>(listener: L, router: Router) {
    if let Err(error) = axum::serve(listener, router).await {
        panic!("the server ended: {error}");
    }
}

pub fn serve(kit: &'static Kit) -> Result<(), Error> {
    let runtime = Tokio::new(kit)?;
    let address = runtime.block_on(open(kit, &runtime))?;
    let scheme = if tls::is_enabled(kit) { "https" } else { "http" };
    kit.listening(&[format!("{scheme}://{address}/echo")]);
    let version = locked_version(LOCKED, "axum");
    let hyper = locked_version(LOCKED, "hyper");
    let effective = vec![
        ("tcp_nodelay", (switch(kit, NODELAY) == Some(true)).into()),
        ("tls", tls::offered(kit)),
        ("server", format!("axum {version}, hyper {hyper}").into()),
        ("runtime", runtime.name().into()),
        ("server_workers", runtime.workers().into()),
        ("transport", "tcp/ipv4".into()),
    ];
    let library = Library { name: "axum".into(), version: version.into(), build: COMPILER.into() };
    kit.ready(&Ready {
        matched: None,
        library,
        effective,
        guarantee: GUARANTEE,
        discovery_ns: None,
    });
    kit.wait();
    Ok(())
}
