//! Service and pingpong patterns: a queryable replies to a client's `get`.

use std::sync::mpsc::{channel, Receiver, Sender};
use std::time::Duration;

use wattwire_kit::{failed, Call, Error, Events, Kit, Message, SendFailed, Slot};
use zenoh::key_expr::KeyExpr;
use zenoh::qos::{CongestionControl, Reliability};
use zenoh::query::Reply;
use zenoh::Wait;

use crate::session::Session;

pub fn serve(kit: &'static Kit) -> Result<(), Error> {
    let session = Session::listen(kit)?;
    let key = format!("{}/service", session.prefix);
    let express = kit.boolean("settings.express");
    let _queryable = session
        .zenoh
        .declare_queryable(key.clone())
        .callback(move |query| {
            let Some(payload) = query.payload().map(|payload| payload.to_bytes()) else {
                return;
            };
            let Some(request) = kit.serve(&*payload) else {
                return;
            };
            let reply = query.reply(&key, request.reply().bytes()).express(express);
            if reply.wait().is_ok() {
                kit.served(&request);
            }
        })
        .wait()
        .map_err(failed)?;
    let matched = session.await_peers(&[("server", "client")], || true)?;
    let congestion = session.congestion(CongestionControl::Block);
    session.ready(matched, congestion, Reliability::Reliable);
    kit.wait();
    Ok(())
}

struct Client {
    session: Session,
    key: KeyExpr<'static>,
    congestion: CongestionControl,
    express: bool,
    reply: Vec<u8>,
    wake: (Sender<()>, Receiver<()>),
}

impl Call for Client {
    fn call(
        &mut self,
        request: Message,
        timeout_ns: i64,
    ) -> Result<Option<Message<'_>>, SendFailed> {
        let timeout = Duration::from_nanos(timeout_ns as u64);
        let begin = std::time::Instant::now();
        let replies = self
            .session
            .zenoh
            .get(&self.key)
            .payload(request.bytes())
            .timeout(timeout)
            .congestion_control(self.congestion)
            .express(self.express)
            .wait()
            .map_err(|_| SendFailed)?;
        match replies.recv() {
            Ok(reply) => Ok(bytes_of(&reply).map(|bytes| {
                self.reply = bytes;
                Message::Bytes(&self.reply)
            })),
            // Zenoh ends a query early if the server has left or sent no reply.
            Err(_) if begin.elapsed() < timeout => Err(SendFailed),
            Err(_) => Ok(None),
        }
    }
}

impl Events for Client {
    fn begin(&mut self, slot: Slot, request: Message) -> Result<(), SendFailed> {
        let (kit, wake) = (self.session.kit, self.wake.0.clone());
        self.session
            .zenoh
            .get(&self.key)
            .payload(request.bytes())
            .timeout(Duration::from_nanos(kit.integer("timeout_ns") as u64))
            .congestion_control(self.congestion)
            .express(self.express)
            .callback(move |reply| {
                if let Some(bytes) = bytes_of(&reply) {
                    kit.complete(slot, &bytes);
                    let _ = wake.send(());
                }
            })
            .wait()
            .map_err(|_| SendFailed)
    }
    fn poll(&mut self, timeout_ns: i64) {
        let timeout = Duration::from_nanos(timeout_ns.max(0) as u64);
        let _ = self.wake.1.recv_timeout(timeout);
    }
}

/// Returns the payload, or None for the error reply that Zenoh creates at a timeout.
fn bytes_of(reply: &Reply) -> Option<Vec<u8>> {
    reply.result().ok().map(|sample| sample.payload().to_bytes().into_owned())
}

pub fn call(kit: &'static Kit) -> Result<(), Error> {
    let session = Session::connect(kit)?;
    let key = session.zenoh.declare_keyexpr(format!("{}/service", session.prefix)).wait();
    let congestion = session.congestion(CongestionControl::Block);
    let matched = session.await_peers(&[("client", "server")], || true)?;
    session.ready(matched, congestion, Reliability::Reliable);
    let mut client = Client {
        session,
        key: key.map_err(failed)?,
        congestion,
        express: kit.boolean("settings.express"),
        reply: Vec::new(),
        wake: channel(),
    };
    if kit.overlaps() {
        kit.drive(&mut client);
        Ok(())
    } else {
        kit.call_all(&mut client)
    }
}
