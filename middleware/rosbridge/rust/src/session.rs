//! A client of the bridge on roslibrust: connection, topics, READY, and the end.

use std::time::Duration;

use roslibrust::rosbridge::{ClientHandle, ClientHandleOptions, Publisher, Subscriber};
use tokio::runtime::{EnterGuard, Runtime};
use wattwire_kit::{
    failed, locked_version, now_ns, sleep_until_ns, Error, Guarantee, Kit, Library, Ready, COMPILER,
};

use crate::messages::{AwaitConnection, AwaitConnectionRequest, Payload};
use crate::reports::{Phase, REPORTS};

const LOCKED: &str = include_str!("../Cargo.lock");
const AWAIT_CONNECTION: &str = "/rosbridge/await_connection";
/// Place of the bridge's WebSocket server in the endpoints, after the master.
const WEBSOCKET: usize = 1;

pub struct Session {
    pub kit: &'static Kit,
    pub runtime: &'static Runtime,
    /// The library starts tasks when a publisher or subscriber is dropped.
    _guard: EnterGuard<'static>,
    client: ClientHandle,
    endpoint: String,
    topics: Vec<String>,
    begin_ns: i64,
}

impl Session {
    pub fn connect(kit: &'static Kit) -> Result<Self, Error> {
        let begin_ns = now_ns();
        let endpoint = bridge_endpoint(kit)?;
        REPORTS.start();
        // Never freed, because tasks use it until the process ends.
        let runtime: &'static Runtime = Box::leak(Box::new(Runtime::new()?));
        let guard = runtime.enter();
        let timeout = Duration::from_millis(kit.integer("ready_timeout_ms") as u64);
        let options = ClientHandleOptions::new(format!("ws://{endpoint}")).timeout(timeout);
        let client =
            runtime.block_on(ClientHandle::new_with_options(options)).map_err(|error| {
                let last = REPORTS.last();
                let reason = if last.is_empty() { error.to_string() } else { last };
                failed(format!("no bridge at websocket {endpoint} ({reason}); is it running?"))
            })?;
        REPORTS.enter(Phase::Opening);
        let topics = Vec::new();
        Ok(Session { kit, runtime, _guard: guard, client, endpoint, topics, begin_ns })
    }

    fn name(&mut self, topic: &str) -> String {
        let name = format!("/wattwire_{}/{topic}", self.kit.string("run"));
        self.topics.push(name.clone());
        name
    }

    pub fn publish_on<M: Payload>(&mut self, topic: &str) -> Result<Publisher<M>, Error> {
        let name = self.name(topic);
        Ok(self.runtime.block_on(self.client.advertise(&name))?)
    }

    pub fn subscribe<M: Payload>(&mut self, topic: &str) -> Result<Subscriber<M>, Error> {
        let name = self.name(topic);
        Ok(self.runtime.block_on(self.client.subscribe(&name))?)
    }

    /// Waits until the bridge answers that the topics are connected. Returns the time since
    /// `connect` in ns.
    ///
    /// The library hides the bridge's statuses, so this client calls the bridge's service.
    pub fn await_connected(&self) -> Result<i64, Error> {
        for topic in &self.topics {
            let request = AwaitConnectionRequest { topic: topic.clone() };
            let call = self.client.call_service::<AwaitConnection>(AWAIT_CONNECTION, request);
            self.runtime.block_on(call).map_err(|error| match error {
                roslibrust::Error::ServerError(reason) => {
                    failed(format!("the bridge reports: {reason}"))
                }
                roslibrust::Error::Timeout(_) => {
                    let limit_ms = self.kit.integer("ready_timeout_ms");
                    failed(format!(
                        "no other end of {topic} within ready_timeout_ms = {limit_ms}; is the \
                         peer running?"
                    ))
                }
                error => failed(error),
            })?;
        }
        Ok(now_ns() - self.begin_ns)
    }

    pub fn ready(&self, discovery_ns: i64, message_type: &str) {
        let effective = vec![
            ("type", message_type.into()),
            ("protocol", "rosbridge 2".into()),
            ("bridge", format!("websocket {}", self.endpoint).into()),
        ];
        self.kit.ready(&Ready {
            matched: None,
            library: Library {
                name: "roslibrust".into(),
                version: locked_version(LOCKED, "roslibrust").into(),
                build: COMPILER.into(),
            },
            effective,
            guarantee: Guarantee {
                delivery: "best_effort",
                ordering: "per_sender",
                overload: "drop_oldest",
            },
            discovery_ns: Some(discovery_ns),
        });
        REPORTS.enter(Phase::Ready);
    }

    /// Returns the time since `connect` in ns.
    pub fn elapsed_ns(&self) -> i64 {
        now_ns() - self.begin_ns
    }

    /// Lets the bridge read and publish what was sent, which it does not confirm.
    pub fn linger(&self) {
        sleep_until_ns(now_ns() + self.kit.integer("quiet_ms") * 1_000_000);
        REPORTS.enter(Phase::Ending);
    }
}

fn bridge_endpoint(kit: &Kit) -> Result<String, Error> {
    let endpoints = kit.strings("peers.endpoints");
    let is_valid = |endpoint: &&&str| {
        let (_, port) = endpoint.rsplit_once(':').unwrap_or_default();
        port.parse::<u16>().is_ok()
    };
    match endpoints.get(WEBSOCKET).filter(is_valid) {
        Some(endpoint) => Ok((*endpoint).into()),
        None => {
            let allowed = "HOST:PORT of the master and of the bridge";
            Err(Error::bad_spec("peers.endpoints", endpoints.join(", "), allowed))
        }
    }
}
