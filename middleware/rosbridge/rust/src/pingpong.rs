//! Pingpong over two topics of the bridge.

use std::time::Duration;

use roslibrust::rosbridge::{Publisher, Subscriber};
use tokio::time::timeout;
use wattwire_kit::{Call, Error, Kit, Message, SendFailed};

use crate::messages::Payload;
use crate::session::Session;

pub fn pong<M: Payload>(kit: &'static Kit) -> Result<(), Error> {
    let mut session = Session::connect(kit)?;
    let publisher = session.publish_on::<M>("reply")?;
    let requests = session.subscribe::<M>("request")?;
    session.runtime.spawn(async move {
        loop {
            let message = requests.next().await;
            let Some(request) = kit.serve(message.payload()) else { continue };
            if publisher.publish(&M::from_payload(request.reply())).await.is_ok() {
                kit.served(&request);
            }
        }
    });
    session.ready(session.await_connected()?, M::DESCRIPTION.ros_type_name);
    kit.wait();
    session.linger();
    Ok(())
}

struct Ping<M: Payload> {
    publisher: Publisher<M>,
    replies: Subscriber<M>,
    reply: M,
    /// Dropped last, because the library needs the runtime when it drops the others.
    session: Session,
}

impl<M: Payload> Call for Ping<M> {
    fn call(
        &mut self,
        request: Message,
        timeout_ns: i64,
    ) -> Result<Option<Message<'_>>, SendFailed> {
        let (kit, publisher, replies) = (self.session.kit, &self.publisher, &self.replies);
        let exchange = async {
            publisher.publish(&M::from_payload(request)).await?;
            loop {
                // A std_msgs message has no call number: only the payload identifies the call.
                let reply = replies.next().await;
                if kit.is_reply(reply.payload()) {
                    return Ok::<M, SendFailed>(reply);
                }
            }
        };
        let limit = Duration::from_nanos(timeout_ns.max(0) as u64);
        match self.session.runtime.block_on(timeout(limit, exchange)) {
            Ok(reply) => {
                self.reply = reply?;
                Ok(Some(self.reply.payload().into()))
            }
            Err(_) => Ok(None),
        }
    }
}

pub fn ping<M: Payload>(kit: &'static Kit) -> Result<(), Error> {
    let mut session = Session::connect(kit)?;
    let publisher = session.publish_on::<M>("request")?;
    let replies = session.subscribe::<M>("reply")?;
    session.await_connected()?;
    let mut ping = Ping { publisher, replies, reply: M::default(), session };
    kit.probe(&mut ping)?;
    ping.session.ready(ping.session.elapsed_ns(), M::DESCRIPTION.ros_type_name);
    kit.call_all(&mut ping)?;
    ping.session.linger();
    Ok(())
}
