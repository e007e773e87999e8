//! Topic pattern: the payload of a key expression is the message.

use wattwire_kit::{failed, Error, Kit};
use zenoh::qos::{CongestionControl, Reliability};
use zenoh::Wait;

use crate::session::Session;

pub fn publish(kit: &'static Kit) -> Result<(), Error> {
    let session = Session::connect(kit)?;
    let publisher = session
        .zenoh
        .declare_publisher(format!("{}/topic", session.prefix))
        .congestion_control(session.congestion(CongestionControl::Drop))
        .express(kit.boolean("settings.express"))
        .reliability(wanted_reliability(kit))
        .wait()
        .map_err(failed)?;
    let matches = || publisher.matching_status().wait().is_ok_and(|status| status.matching());
    let matched = session.await_peers("publisher", "subscriber", matches)?;
    session.ready(matched, publisher.congestion_control(), publisher.reliability());
    kit.send_all(|message| publisher.put(message.bytes()).wait().is_ok())
}

pub fn subscribe(kit: &'static Kit) -> Result<(), Error> {
    let session = Session::listen(kit)?;
    let _subscriber = session
        .zenoh
        .declare_subscriber(format!("{}/topic", session.prefix))
        .callback(move |sample| kit.received(&*sample.payload().to_bytes()))
        .wait()
        .map_err(failed)?;
    let matched = session.await_peers("subscriber", "publisher", || true)?;
    let congestion = session.congestion(CongestionControl::Drop);
    session.ready(matched, congestion, wanted_reliability(kit));
    kit.wait();
    Ok(())
}

fn wanted_reliability(kit: &Kit) -> Reliability {
    match kit.string("settings.reliability") {
        "best_effort" => Reliability::BestEffort,
        _ => Reliability::Reliable,
    }
}
