//! Topic and pipeline patterns: the payload of a key expression is the message.

use std::sync::Arc;

use wattwire_kit::{failed, Error, Kit};
use zenoh::pubsub::Publisher;
use zenoh::qos::{CongestionControl, Reliability};
use zenoh::Wait;

use crate::session::Session;

pub fn publish(kit: &'static Kit) -> Result<(), Error> {
    let session = Session::connect(kit)?;
    let publisher = declare_publisher(&session)?;
    let matched = session.await_peers(&[sender(kit)], || is_matched(&publisher))?;
    session.ready(matched, publisher.congestion_control(), publisher.reliability());
    kit.send_all(|message| publisher.put(message.bytes()).wait().is_ok())
}

pub fn subscribe(kit: &'static Kit) -> Result<(), Error> {
    let session = Session::listen(kit)?;
    let _subscriber = session
        .zenoh
        .declare_subscriber(format!("{}/{}", session.prefix, kit.receiving_topic()))
        .callback(move |sample| kit.received(&*sample.payload().to_bytes()))
        .wait()
        .map_err(failed)?;
    let matched = session.await_peers(&[receiver(kit)], || true)?;
    let congestion = session.congestion(CongestionControl::Drop);
    session.ready(matched, congestion, wanted_reliability(kit));
    kit.wait();
    Ok(())
}

/// Sends each message from the callback, like Zenoh's example z_pong. The clone of a payload shares
/// its bytes.
pub fn relay(kit: &'static Kit) -> Result<(), Error> {
    let session = Session::relay(kit)?;
    let publisher = Arc::new(declare_publisher(&session)?);
    let successor = Arc::clone(&publisher);
    let _subscriber = session
        .zenoh
        .declare_subscriber(format!("{}/{}", session.prefix, kit.receiving_topic()))
        .callback(move |sample| {
            let payload = sample.payload();
            if let Some(relay) = kit.relay(&*payload.to_bytes()) {
                kit.relayed(&relay, successor.put(payload.clone()).wait());
            }
        })
        .wait()
        .map_err(failed)?;
    let matched = session.await_peers(&[receiver(kit), sender(kit)], || is_matched(&publisher))?;
    session.ready(matched, publisher.congestion_control(), publisher.reliability());
    kit.wait();
    Ok(())
}

fn declare_publisher(session: &Session) -> Result<Publisher<'static>, Error> {
    let kit = session.kit;
    session
        .zenoh
        .declare_publisher(format!("{}/{}", session.prefix, kit.sending_topic()))
        .congestion_control(session.congestion(CongestionControl::Drop))
        .express(kit.boolean("settings.express"))
        .reliability(wanted_reliability(kit))
        .wait()
        .map_err(failed)
}

fn is_matched(publisher: &Publisher) -> bool {
    publisher.matching_status().wait().is_ok_and(|status| status.matching())
}

/// The roles in the liveliness tokens of this node and of its peers.
type Roles = (String, String);

fn sender(kit: &Kit) -> Roles {
    let topic = kit.sending_topic();
    (role_on(&topic, "publisher"), role_on(&topic, "subscriber"))
}

fn receiver(kit: &Kit) -> Roles {
    let topic = kit.receiving_topic();
    (role_on(&topic, "subscriber"), role_on(&topic, "publisher"))
}

/// Returns the role itself for a topic, and a name with the channel for a pipeline.
fn role_on(topic: &str, role: &str) -> String {
    match topic {
        "topic" => role.into(),
        channel => format!("{channel}_{role}"),
    }
}

fn wanted_reliability(kit: &Kit) -> Reliability {
    match kit.string("settings.reliability") {
        "best_effort" => Reliability::BestEffort,
        _ => Reliability::Reliable,
    }
}
