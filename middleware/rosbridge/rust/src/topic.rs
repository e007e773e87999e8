//! Topic pattern: the payload is the data of a std_msgs message.

use wattwire_kit::{Error, Kit};

use crate::messages::Payload;
use crate::session::Session;

pub fn publish<M: Payload>(kit: &'static Kit) -> Result<(), Error> {
    let mut session = Session::connect(kit)?;
    let publisher = session.publish_on::<M>(&kit.sending_topic())?;
    session.ready(session.await_connected()?, M::DESCRIPTION.ros_type_name);
    kit.send_all(|message| {
        let message = M::from_payload(message);
        session.runtime.block_on(publisher.publish(&message)).is_ok()
    })?;
    session.linger();
    Ok(())
}

pub fn subscribe<M: Payload>(kit: &'static Kit) -> Result<(), Error> {
    let mut session = Session::connect(kit)?;
    let subscriber = session.subscribe::<M>(&kit.receiving_topic())?;
    session.runtime.spawn(async move {
        loop {
            let message = subscriber.next().await;
            kit.received(message.payload());
        }
    });
    session.ready(session.await_connected()?, M::DESCRIPTION.ros_type_name);
    kit.wait();
    Ok(())
}
