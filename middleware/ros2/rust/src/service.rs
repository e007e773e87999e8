//! Service and pingpong patterns: ExchangeText or ExchangeBytes, one field each way.

use std::collections::BTreeMap;

use ros2_client::{RmwRequestId, ServiceMapping};
use wattwire_kit::{now_ns, Call, Error, Events, Kit, Message, SendFailed, Slot};

use crate::interfaces::{Bytes, Field};
use crate::session::Session;

/// The mapping of services to topics that Fast DDS's RMW uses.
const MAPPING: ServiceMapping = ServiceMapping::Enhanced;

pub fn serve(kit: &'static Kit) -> Result<(), Error> {
    if kit.encoding() == "text" {
        serve_as::<String>(kit)
    } else {
        serve_as::<Bytes>(kit)
    }
}

pub fn call(kit: &'static Kit) -> Result<(), Error> {
    if kit.encoding() == "text" {
        call_as::<String>(kit)
    } else {
        call_as::<Bytes>(kit)
    }
}

fn serve_as<F: Field>(kit: &'static Kit) -> Result<(), Error> {
    let mut session = Session::open(kit)?;
    let (name, qos) = (session.name("service")?, session.qos("volatile"));
    let mut server =
        session.node.create_server::<F, F>(MAPPING, &name, &F::service_type(), qos.clone(), qos)?;
    session.watch(&mut server)?;
    let matched = session.await_clients("service")?;
    session.ready(matched, "volatile");
    kit.poll(|timeout_ns| {
        session.wait(timeout_ns);
        loop {
            let (id, data) = match server.receive_request() {
                Ok(Some(taken)) => taken,
                Ok(None) => break,
                Err(_) => {
                    kit.serve(Message::Unreadable);
                    continue;
                }
            };
            if let Some(request) = kit.serve(data.payload()) {
                if server.send_response(id, F::of(request.reply().bytes())).is_ok() {
                    kit.served(&request);
                }
            }
        }
    });
    Ok(())
}

struct Client<F: Field> {
    client: ros2_client::Client<F, F>,
    session: Session,
    reply: Option<F>,
    waiting: BTreeMap<RmwRequestId, Slot>,
}

impl<F: Field> Call for Client<F> {
    fn call(
        &mut self,
        request: Message,
        timeout_ns: i64,
    ) -> Result<Option<Message<'_>>, SendFailed> {
        let deadline_ns = now_ns().saturating_add(timeout_ns);
        let sent = self.client.send_request(F::of(request.bytes()))?;
        loop {
            // Ignores replies that cannot be decoded or that belong to calls that timed out.
            match self.client.receive_response() {
                Ok(Some((id, reply))) if id == sent => {
                    let reply = self.reply.insert(reply);
                    return Ok(Some(reply.payload().into()));
                }
                Ok(None) => {}
                Ok(Some(_)) | Err(_) => continue,
            }
            let left_ns = deadline_ns - now_ns();
            if left_ns <= 0 {
                return Ok(None);
            }
            self.session.wait(left_ns);
        }
    }
}

impl<F: Field> Events for Client<F> {
    fn begin(&mut self, slot: Slot, request: Message) -> Result<(), SendFailed> {
        let id = self.client.send_request(F::of(request.bytes()))?;
        self.waiting.insert(id, slot);
        Ok(())
    }
    fn poll(&mut self, timeout_ns: i64) {
        self.session.wait_until(timeout_ns);
        loop {
            match self.client.receive_response() {
                Ok(Some((id, reply))) => {
                    if let Some(slot) = self.waiting.remove(&id) {
                        self.session.kit.complete(slot, reply.payload());
                    }
                }
                Ok(None) => return,
                Err(_) => {}
            }
        }
    }
}

fn call_as<F: Field>(kit: &'static Kit) -> Result<(), Error> {
    let mut session = Session::open(kit)?;
    let (name, qos) = (session.name("service")?, session.qos("volatile"));
    let mut client =
        session.node.create_client::<F, F>(MAPPING, &name, &F::service_type(), qos.clone(), qos)?;
    session.watch(&mut client)?;
    let mut client = Client { client, session, reply: None, waiting: BTreeMap::new() };
    // Request and reply channels match separately. A reply shows that both have matched.
    kit.probe(&mut client)?;
    client.session.ready(1, "volatile");
    if kit.overlaps() {
        kit.drive(&mut client);
        Ok(())
    } else {
        kit.call_all(&mut client)
    }
}
