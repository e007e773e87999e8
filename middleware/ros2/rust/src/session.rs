//! One ROS node: its domain, its discovery, its QoS, what is in force, and its end.

use std::net::Ipv4Addr;
use std::thread::JoinHandle;
use std::time::Duration;

use futures::executor::block_on;
use ros2_client::dds::rustdds::mio1::{event::Source, Events, Interest, Poll, Token};
use ros2_client::dds::rustdds::DomainParticipantBuilder;
use ros2_client::qos::{Durability, History, Reliability, WhenFull};
use ros2_client::{Context, Name, Node, NodeName, NodeOptions, QosProfile, COMPILED_ROS_DISTRO};
use wattwire_kit::{
    failed, locked_version, now_ns, readable, sleep_until_ns, Error, Guarantee, Kit, Library,
    Ready, Value,
};

/// Which versions were built in: READY tells them.
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
        for key in ["settings.rmw", "settings.rmw_profile"] {
            if !kit.string(key).is_empty() {
                let reason = format!("{key}: there is no RMW under ros2-client; leave it empty");
                return Err(Error::Unsupported(reason));
            }
        }
        let created_ns = now_ns();
        let mut participant = DomainParticipantBuilder::new(domain_of(kit));
        if kit.string("settings.discovery") == "localhost" {
            participant = participant.with_only_networks([Ipv4Addr::LOCALHOST]);
        }
        let participant = participant.build().map_err(|error| failed(format!("{error:?}")))?;
        let context = Context::from_domain_participant(participant)?;
        let name = format!("wattwire_{}_{}", kit.string("role"), kit.integer("node"));
        let name = NodeName::new("/", &name).map_err(|error| failed(format!("{error:?}")))?;
        let mut node = context.new_node(name, NodeOptions::new())?;
        // The node's own work in the background: discovery and parameter services.
        let spinner = node.spinner()?;
        let spinner = std::thread::spawn(move || {
            // It ends with the node; what it could not create is missed by whoever waits for it.
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

    /// The settings as a profile. Services stay volatile, as ROS demands of them.
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

    /// Arrivals at `source` end a wait.
    pub fn watch(&mut self, source: &mut impl Source) -> Result<(), Error> {
        Ok(self.poll.registry().register(source, Token(0), Interest::READABLE)?)
    }

    /// Waits for an arrival; may wait for up to a millisecond more.
    pub fn wait(&mut self, timeout_ns: i64) {
        let timeout = Duration::from_nanos(timeout_ns.max(0) as u64);
        // An interrupted wait is a short one.
        let _ = self.poll.poll(&mut self.events, Some(timeout));
    }

    /// The same for a loop that has a schedule to keep: waits to the nanosecond.
    pub fn wait_until(&mut self, timeout_ns: i64) {
        if readable(&Descriptor(&self.poll), timeout_ns) {
            self.wait(0);
        }
    }

    /// Waits for peers.count peers, which `count_now` counts; returns their number.
    pub fn await_peers(&self, count_now: impl Fn() -> usize) -> Result<usize, Error> {
        self.kit.await_peers(&count_now, |ns| sleep_until_ns(now_ns() + ns))?;
        Ok(count_now())
    }

    /// Waits until the graph shows the clients of the service `leaf`; they probe for the match.
    pub fn await_clients(&self, leaf: &str) -> Result<usize, Error> {
        let topic = format!("rq/wattwire_{}/{leaf}Request", self.kit.string("run"));
        let participant = self.context.domain_participant();
        self.await_peers(|| {
            let writers = participant.discovered_writers();
            let asks = |topic_name: &str| topic_name == topic;
            writers.iter().filter(|w| asks(&w.publication_topic_data.topic_name)).count()
        })
    }

    /// READY. RustDDS does not tell what it granted: the QoS is what was asked for.
    pub fn ready(&self, matched: usize, durability: &str) {
        let kit = self.kit;
        let mut effective = kit.spec().settings();
        for (name, value) in [
            ("distribution", Value::from(COMPILED_ROS_DISTRO.as_str())),
            ("rmw", "none".into()),
            ("libraries", format!("rustdds {}", locked_version(LOCKED, "rustdds")).into()),
            ("transports", "udp".into()),
            ("domain", self.context.domain_id().into()),
            ("durability", durability.into()),
            ("executor", "mio".into()),
        ] {
            effective.insert(name.into(), value);
        }
        kit.ready(&Ready {
            matched: Some(matched),
            library: Library {
                name: "ros2-client".into(),
                version: locked_version(LOCKED, "ros2-client").into(),
                build: wattwire_kit::COMPILER.into(),
            },
            effective,
            // RustDDS's readers keep no more than 64 (or `depth`) untaken, also with keep_all.
            guarantee: Guarantee {
                delivery: "best_effort",
                ordering: "per_sender",
                overload: "drop_oldest",
            },
            discovery_ns: Some(now_ns() - self.created_ns),
        });
    }
}

struct Descriptor<'a>(&'a Poll);

impl std::os::fd::AsFd for Descriptor<'_> {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        use std::os::fd::{AsRawFd, BorrowedFd};
        // SAFETY: the poll keeps its descriptor open for as long as it is borrowed.
        unsafe { BorrowedFd::borrow_raw(self.0.as_raw_fd()) }
    }
}

/// The spec's domain, or one of 1 … 100 from the run token (FNV-1a: all languages agree).
fn domain_of(kit: &Kit) -> u16 {
    match kit.integer("settings.domain") {
        0 => {
            let mix = |state: u32, byte: u8| (state ^ u32::from(byte)).wrapping_mul(0x0100_0193);
            1 + (kit.string("run").bytes().fold(0x811C_9DC5, mix) % 100) as u16
        }
        domain => domain as u16,
    }
}
