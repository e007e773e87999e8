//! Server and pong: tonic's server with the service of the interface.

use std::net::{Ipv4Addr, SocketAddr};

use tonic::codegen::Bytes;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Identity, Server, ServerTlsConfig};
use tonic::{Request, Response, Status};
use wattwire_kit::{
    locked_version, Error, Kit, Library, Message, Ready, Record, Runtime, COMPILER,
};
use wattwire_web::{tls, Tokio};

use crate::wire::calls_server::{Calls, CallsServer};
use crate::wire::{BytesPayload, RecordPayload, TextPayload};
use crate::{effective, record, GUARANTEE, LOCKED};

struct Service {
    kit: &'static Kit,
    is_echo: bool,
}

impl Service {
    /// Handles a request. `response` converts the reply to a response.
    fn answer<T>(
        &self,
        message: Message,
        response: impl FnOnce(Message) -> T,
    ) -> Result<Response<T>, Status> {
        let stranger = || Status::failed_precondition("of another run");
        let request = self.kit.serve(message).ok_or_else(stranger)?;
        let reply = response(request.reply());
        self.kit.served(&request); // tonic sends the reply after the return
        Ok(Response::new(reply))
    }
}

#[tonic::async_trait]
impl Calls for Service {
    async fn bytes(&self, call: Request<BytesPayload>) -> Result<Response<BytesPayload>, Status> {
        let BytesPayload { data } = call.into_inner();
        // An echo shares the request's memory, as is usual with `bytes`.
        let is_echo = self.is_echo;
        self.answer(Message::from(&data[..]), |reply| BytesPayload {
            data: if is_echo { data.clone() } else { Bytes::copy_from_slice(reply.bytes()) },
        })
    }

    async fn text(&self, call: Request<TextPayload>) -> Result<Response<TextPayload>, Status> {
        let TextPayload { data } = call.into_inner();
        self.answer(Message::from(data.as_str()), |reply| TextPayload {
            data: String::from_utf8_lossy(reply.bytes()).into_owned(),
        })
    }

    async fn record(
        &self,
        call: Request<RecordPayload>,
    ) -> Result<Response<RecordPayload>, Status> {
        let record = record::from_wire(call.into_inner());
        self.answer(Message::from(&record), |reply| match reply {
            Message::Record(reply) => record::to_wire(reply),
            _ => record::to_wire(&Record::default()),
        })
    }
}

/// Starts a server that runs until the process ends, and returns its address.
fn open(kit: &'static Kit, runtime: &Tokio) -> Result<SocketAddr, Error> {
    let mut server = Server::builder();
    if tls::is_enabled(kit) {
        let file = |key| std::fs::read(kit.string(key));
        let identity = Identity::from_pem(file("tls.certificate")?, file("tls.key")?);
        server = server.tls_config(ServerTlsConfig::new().identity(identity))?;
    }
    let host: Ipv4Addr = kit.string("host.address").parse().expect("the kit has checked it");
    let incoming = runtime.block_on(async { TcpIncoming::bind((host, 0).into()) })?;
    let incoming = incoming.with_nodelay(Some(true));
    let address = incoming.local_addr()?;
    let is_echo = kit.string("reply") == "echo";
    let router = server.add_service(CallsServer::new(Service { kit, is_echo }));
    runtime.spawn(async move {
        if let Err(error) = router.serve_with_incoming(incoming).await {
            panic!("the server ended: {error}");
        }
    });
    Ok(address)
}

pub fn serve(kit: &'static Kit) -> Result<(), Error> {
    let runtime = Tokio::new(kit)?;
    let address = open(kit, &runtime)?;
    kit.listening(&[address.to_string()]);
    let version = locked_version(LOCKED, "tonic");
    let mut effective = effective(tls::offered(kit), runtime.name());
    effective.push(("server_workers", runtime.workers().into()));
    kit.ready(&Ready {
        matched: None,
        library: Library { name: "tonic".into(), version: version.into(), build: COMPILER.into() },
        effective,
        guarantee: GUARANTEE,
        discovery_ns: None,
    });
    kit.wait();
    Ok(())
}
