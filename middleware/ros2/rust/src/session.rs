//! A ROS node with its domain, discovery, QoS, effective settings and shutdown.

use std::net::Ipv4Addr;
use std::thread::JoinHandle;
use std::time::Duration;

use futures::executor::block_on;
use ros2_client::dds::rustdds::mio1::{event::Source, Events, Interest, Poll, Token};
use ros2_client::dds::rustdds::{DomainParticipantBuilder, Topic};
use ros2_client::qos::{Durability, History, Reliability, WhenFull};
use ros2_client::{Context, Name, Node, NodeName, NodeOptions, QosProfile, COMPILED_ROS_DISTRO};
use wattwire_kit::{
    failed, locked_version, now_ns, readable, sleep_until_ns, Error, Guarantee, Kit, Library, Ready,
};

use crate::interfaces::Field;

/// The versions of the compiled crates, for READY.
const LOCKED: &str = include_str!("../Cargo.lock");

pub struct Session {
    pub kit: &'static Kit,
    pub node: Node,
    spinner: Option<JoinHandle<()>>,
    context: Context,
    poll: Poll,
    events: Events,
    created_ns: i64,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.node.stop_spinner();
        if let Some(spinner) = self.spinner.take() {
            let _ = spinner.join();
        }
    }
}

impl Session {
    pub fn open(kit: &'static Kit) -> Result<Self, Error> {
        let created_ns = now_ns();
        let mut participant = DomainParticipantBuilder::new(domain_of(kit));
        if discovery_range(kit) == "localhost" {
            participant = participant.with_only_networks([Ipv4Addr::LOCALHOST]);
        }
        let participant = participant.build().map_err(|error| failed(format!("{error:?}")))?;
        let context = Context::from_domain_participant(participant)?;
        let name = format!("wattwire_{}_{}", kit.string("role"), kit.integer("node"));
        let name = NodeName::new("/", &name).map_err(|error| failed(format!("{error:?}")))?;
        let mut node = context.new_node(name, NodeOptions::new())?;
        // The spinner does the node's background work: discovery and parameter services.
        let spinner = node.spinner()?;
        let spinner = std::thread::spawn(move || {
            // The spinner ends with the node. Its errors appear as timeouts of other functions.
            let _ = block_on(spinner.spin());
        });
        Ok(Session {
            kit,
            node,
            spinner: Some(spinner),
            context,
            poll: Poll::new()?,
            events: Events::with_capacity(8),
            created_ns,
        })
    }

    pub fn name(&self, leaf: &str) -> Result<Name, Error> {
        let namespace = format!("/wattwire_{}", self.kit.string("run"));
        Name::new(&namespace, leaf).map_err(|error| failed(format!("{error:?}")))
    }

    pub fn topic<F: Field>(&self, leaf: &str, qos: &QosProfile) -> Result<Topic, Error> {
        Ok(self.node.create_topic(&self.name(leaf)?, F::message_type(), qos)?)
    }

    /// Returns the settings as a QoS profile. Services are always volatile, as ROS requires.
    pub fn qos(&self, durability: &str) -> QosProfile {
        let kit = self.kit;
        let keeps_all = kit.string("settings.history") == "keep_all";
        let reliability = if kit.string("settings.reliability") == "reliable" {
            Reliability::Reliable { when_full: WhenFull::DEFAULT }
        } else {
            Reliability::BestEffort
        };
        let depth = kit.integer("settings.depth") as usize;
        let durability = match durability {
            "transient_local" => Durability::TransientLocal,
            _ => Durability::Volatile,
        };
        QosProfile::publisher_default()
            .reliability(reliability)
            .history(if keeps_all { History::KeepAll } else { History::KeepLast { depth } })
            .durability(durability)
    }

    /// Makes arrivals at `source` end a wait.
    pub fn watch(&mut self, source: &mut impl Source) -> Result<(), Error> {
        Ok(self.poll.registry().register(source, Token(0), Interest::READABLE)?)
    }

    /// Waits for an arrival. May exceed the timeout by up to 1 ms.
    pub fn wait(&mut self, timeout_ns: i64) {
        let timeout = Duration::from_nanos(timeout_ns.max(0) as u64);
        // An interruption only shortens the wait.
        let _ = self.poll.poll(&mut self.events, Some(timeout));
    }

    /// Like `wait`, but with a timeout in ns resolution for event loops.
    pub fn wait_until(&mut self, timeout_ns: i64) {
        if readable(&Descriptor(&self.poll), timeout_ns) {
            self.wait(0);
        }
    }

    /// Waits until `count_now` reaches peers.count, and returns the number of peers.
    pub fn await_peers(&self, count_now: impl Fn() -> usize) -> Result<usize, Error> {
        self.kit.await_peers(&count_now, |ns| sleep_until_ns(now_ns() + ns))?;
        Ok(count_now())
    }

    /// Waits until the graph lists the clients of the service `leaf`. The clients probe for the
    /// match.
    pub fn await_clients(&self, leaf: &str) -> Result<usize, Error> {
        let topic = format!("rq/wattwire_{}/{leaf}Request", self.kit.string("run"));
        let participant = self.context.domain_participant();
        self.await_peers(|| {
            let writers = participant.discovered_writers();
            let asks = |topic_name: &str| topic_name == topic;
            writers.iter().filter(|w| asks(&w.publication_topic_data.topic_name)).count()
        })
    }

    /// Prints READY with the requested QoS, because RustDDS does not report the granted QoS.
    pub fn ready(&self, matched: usize, durability: &str) {
        let kit = self.kit;
        let effective = vec![
            ("distribution", COMPILED_ROS_DISTRO.as_str().into()),
            ("rmw", "none".into()),
            ("libraries", format!("rustdds {}", locked_version(LOCKED, "rustdds")).into()),
            ("transports", "udp".into()),
            ("domain", self.context.domain_id().into()),
            ("discovery", discovery_range(self.kit).into()),
            ("durability", durability.into()),
            ("executor", "mio".into()),
        ];
        kit.ready(&Ready {
            matched: Some(matched),
            library: Library {
                name: "ros2-client".into(),
                version: locked_version(LOCKED, "ros2-client").into(),
                build: wattwire_kit::COMPILER.into(),
            },
            effective,
            // RustDDS's readers keep at most 64 (or `depth`) untaken samples, even with keep_all.
            guarantee: Guarantee {
                delivery: "best_effort",
                ordering: "per_sender",
                overload: "drop_oldest",
            },
            discovery_ns: Some(now_ns() - self.created_ns),
        });
    }
}

/// Returns the range of discovery in force.
fn discovery_range(kit: &Kit) -> &str {
    // An empty setting limits discovery to host.interface, and this cell runs on one host only.
    match kit.string("settings.discovery") {
        "" => "localhost",
        range => range,
    }
}

struct Descriptor<'a>(&'a Poll);

impl std::os::fd::AsFd for Descriptor<'_> {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        use std::os::fd::{AsRawFd, BorrowedFd};
        // SAFETY: the poll keeps its descriptor open while it is borrowed.
        unsafe { BorrowedFd::borrow_raw(self.0.as_raw_fd()) }
    }
}

/// Returns the spec's domain or, if it is 0, a domain from 1 to 100. The FNV-1a hash of the run
/// token determines it, so that all languages agree.
fn domain_of(kit: &Kit) -> u16 {
    match kit.integer("settings.domain") {
        0 => {
            let mix = |state: u32, byte: u8| (state ^ u32::from(byte)).wrapping_mul(0x0100_0193);
            1 + (kit.string("run").bytes().fold(0x811C_9DC5, mix) % 100) as u16
        }
        domain => domain as u16,
    }
}
