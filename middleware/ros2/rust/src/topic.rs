//! Topic and pipeline patterns: std_msgs/String carries text, wattwire_interfaces/Bytes carries
//! bytes.

use wattwire_kit::{now_ns, sleep_until_ns, Error, Kit, Message};

use crate::interfaces::{Bytes, Field};
use crate::session::Session;

pub fn publish(kit: &'static Kit) -> Result<(), Error> {
    if kit.encoding() == "text" {
        publish_as::<String>(kit)
    } else {
        publish_as::<Bytes>(kit)
    }
}

pub fn relay(kit: &'static Kit) -> Result<(), Error> {
    if kit.encoding() == "text" {
        relay_as::<String>(kit)
    } else {
        relay_as::<Bytes>(kit)
    }
}

pub fn subscribe(kit: &'static Kit) -> Result<(), Error> {
    if kit.encoding() == "text" {
        subscribe_as::<String>(kit)
    } else {
        subscribe_as::<Bytes>(kit)
    }
}

fn publish_as<F: Field>(kit: &'static Kit) -> Result<(), Error> {
    let mut session = Session::open(kit)?;
    let durability = kit.string("settings.durability");
    let qos = session.qos(durability);
    let topic = session.topic::<F>(&kit.sending_topic(), &qos)?;
    let publisher = session.node.create_publisher::<F>(&topic, Some(qos))?;
    let matched = session.await_peers(|| publisher.get_subscription_count(&session.node))?;
    session.ready(matched, durability);
    kit.send_all(|message| publisher.publish(F::of(message.bytes())).is_ok())?;
    // Destroying the publisher would discard its messages. ros2-client reports no acknowledgements,
    // so the node waits for a fixed time.
    sleep_until_ns(now_ns() + kit.integer("quiet_ms") * 1_000_000);
    Ok(())
}

fn subscribe_as<F: Field>(kit: &'static Kit) -> Result<(), Error> {
    let mut session = Session::open(kit)?;
    let durability = kit.string("settings.durability");
    let qos = session.qos(durability);
    let topic = session.topic::<F>(&kit.receiving_topic(), &qos)?;
    let mut subscription = session.node.create_subscription::<F>(&topic, Some(qos))?;
    session.watch(&mut subscription)?;
    let matched = session.await_peers(|| subscription.get_publisher_count(&session.node))?;
    session.ready(matched, durability);
    kit.poll(|timeout_ns| {
        session.wait(timeout_ns);
        loop {
            match subscription.take() {
                Ok(Some((message, _))) => kit.received(message.payload()),
                Ok(None) => break,
                Err(_) => kit.received(Message::Unreadable),
            }
        }
    });
    Ok(())
}

fn relay_as<F: Field>(kit: &'static Kit) -> Result<(), Error> {
    let mut session = Session::open(kit)?;
    let durability = kit.string("settings.durability");
    let qos = session.qos(durability);
    let topic = session.topic::<F>(&kit.sending_topic(), &qos)?;
    let publisher = session.node.create_publisher::<F>(&topic, Some(qos.clone()))?;
    let topic = session.topic::<F>(&kit.receiving_topic(), &qos)?;
    let mut subscription = session.node.create_subscription::<F>(&topic, Some(qos))?;
    session.watch(&mut subscription)?;
    let matched =
        session.await_peers(|| match publisher.get_subscription_count(&session.node) {
            0 => 0,
            _ => 1 + subscription.get_publisher_count(&session.node),
        })?;
    session.ready(matched, durability);
    // The kit ends the node when no message has arrived for quiet_ms. The publisher has then sent
    // its messages, as in `publish_as`.
    kit.poll(|timeout_ns| {
        session.wait(timeout_ns);
        loop {
            match subscription.take() {
                Ok(Some((message, _))) => {
                    if let Some(relay) = kit.relay(message.payload()) {
                        kit.relayed(&relay, publisher.publish(message));
                    }
                }
                Ok(None) => break,
                Err(_) => {
                    // A message that cannot be decoded is counted, but cannot be sent.
                    kit.relay(Message::Unreadable);
                }
            }
        }
    });
    Ok(())
}
