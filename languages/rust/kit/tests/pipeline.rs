//! Tests the relay of the kit (C-37) in nodes over datagrams.

mod nodes;

use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};

use nodes::Node;
use serde_json::{json, Value};
use wattwire_kit::constants::{
    flag, header_at, record_at, Kind, HEADER_BYTES, PROBE, RECORD_BYTES, ROLES, UNKNOWN_NS,
};
use wattwire_kit::now_ns;
use wattwire_kit::payload::{Payload, Shape};
use wattwire_kit::recorder::Record;

const SOURCE: u64 = 7;
const BYTES: usize = 64;
const MESSAGES: u64 = 100;
const PERIOD_NS: i64 = 1_000_000;

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn spec(role: &str, node: u64, hop: u64, endpoints: &Value) -> Value {
    nodes::spec(&json!({
        "pattern": "pipeline", "role": role, "node": node, "hop": hop, "peers.nodes": [SOURCE],
        "peers.endpoints": endpoints, "run": format!("pid{}", std::process::id()),
        "period_ns": PERIOD_NS, "duration_ns": PERIOD_NS * MESSAGES as i64,
        "overrun_ns": 60_000_000_000i64, "payload.bytes": BYTES, "quiet_ms": 1000,
        "linger_ms": 5000,
    }))
}

/// Returns the role and the records of a node's sample file.
fn samples(folder: &Path) -> (&'static str, Vec<Record>) {
    let file = fs::read(folder.join("samples.bin")).unwrap();
    let (header, body) = file.split_at(HEADER_BYTES);
    let integer = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, &b| sum << 8 | u64::from(b));
    let record = |bytes: &[u8]| Record {
        seq: integer(&bytes[record_at::SEQ]),
        intended_ns: integer(&bytes[record_at::INTENDED_NS]) as i64,
        begin_ns: integer(&bytes[record_at::BEGIN_NS]) as i64,
        end_ns: integer(&bytes[record_at::END_NS]) as i64,
        bytes: integer(&bytes[record_at::BYTES]) as u32,
        peer: integer(&bytes[record_at::PEER]) as u16,
        kind: integer(&bytes[record_at::KIND]) as u8,
        flags: integer(&bytes[record_at::FLAGS]) as u8,
    };
    let role = ROLES[usize::from(header[header_at::ROLE.start])];
    (role, body.chunks_exact(RECORD_BYTES).map(record).collect())
}

/// Returns the values of DONE in the order of C-16.
fn counts(done: &Value) -> [u64; 7] {
    let keys = ["sent", "received", "recorded", "overflow", "foreign", "corrupt", "probes"];
    keys.map(|key| done[key].as_u64().unwrap())
}

#[test]
fn every_relay_of_a_pipeline_sends_and_records_each_message() {
    let folders = ["sink", "relay-2", "relay-1", "source"].map(folder);
    let start = |role, node, hop, endpoints: &Value, folder: &Path| {
        let mut node = Node::start("pipeline", &spec(role, node, hop, endpoints), folder);
        let endpoints = if hop > 0 { node.wait("LISTENING") } else { Value::Null };
        (node, endpoints["endpoints"].clone())
    };
    let (sink, endpoints) = start("sink", 10, 3, &json!([]), &folders[0]);
    let (second, endpoints) = start("relay", 9, 2, &endpoints, &folders[1]);
    let (first, endpoints) = start("relay", 8, 1, &endpoints, &folders[2]);
    let (source, _) = start("source", SOURCE, 0, &endpoints, &folders[3]);
    let mut nodes = [sink, second, first, source];
    nodes.iter_mut().for_each(|node| drop(node.wait("READY")));
    let start_ns = now_ns() + 1_000_000_000;
    nodes.iter_mut().for_each(|node| node.tell(&format!("GO {start_ns}")));
    assert_eq!(nodes[3].wait("SENT")["sent"], MESSAGES);
    nodes.iter_mut().rev().for_each(|node| node.tell("STOP"));
    let done: Vec<[u64; 7]> = nodes.iter_mut().map(|node| counts(&node.wait("DONE"))).collect();
    let n = MESSAGES;
    let expected = [[0, n, n], [n, n, n], [n, n, n], [n, 0, n]];
    assert_eq!(done, expected.map(|[a, b, c]| [a, b, c, 0, 0, 0, 0]));
    nodes.into_iter().for_each(|node| drop(node.output()));

    let files = folders.map(|folder| samples(&folder));
    assert_eq!(files.each_ref().map(|(role, _)| *role), ["sink", "relay", "relay", "source"]);
    let [sink, second, first, source] = files.map(|(_, records)| records);
    for counter in 0..n as usize {
        let [a, b, c, d] = [&source, &first, &second, &sink].map(|records| records[counter]);
        let seq = SOURCE << 48 | counter as u64;
        assert_eq!([a, b, c, d].map(|record| record.seq), [seq; 4]);
        let (message, relay) = (Kind::Message as u8, Kind::Relay as u8);
        assert_eq!([a, b, c, d].map(|record| record.kind), [message, relay, relay, message]);
        assert_eq!([b, c, d].map(|record| record.peer), [SOURCE as u16; 3]);
        assert_eq!([a, b, c, d].map(|record| (record.bytes, record.flags)), [(64, 0); 4]);
        // A send call may return after the arrival at the successor.
        let times = [a.begin_ns, b.intended_ns, b.begin_ns, c.intended_ns, c.begin_ns, d.end_ns];
        assert!(times.is_sorted() && times[0] >= start_ns, "{times:?}");
        assert!(b.end_ns >= b.begin_ns && c.end_ns >= c.begin_ns);
        assert_eq!(d.begin_ns, a.begin_ns, "the payload carries the source's send time");
    }
}

/// A relay between two sockets of the test.
struct Neighbours {
    relay: Node,
    address: SocketAddr,
    predecessor: UnixDatagram,
    successor: UnixDatagram,
    payload: Payload,
    folder: PathBuf,
}

fn neighbours(name: &str, warmup_ns: i64) -> Neighbours {
    let folder = folder(name);
    let endpoint = format!("wattwire-kit-{name}-{}", std::process::id());
    let address = |name: &str| SocketAddr::from_abstract_name(name).unwrap();
    let successor = UnixDatagram::bind_addr(&address(&endpoint)).unwrap();
    let mut spec = spec("relay", 8, 1, &json!([endpoint]));
    spec["run"] = format!("{name}{}", std::process::id()).into();
    spec["warmup_ns"] = warmup_ns.into();
    let mut relay = Node::start("pipeline", &spec, &folder);
    let listening = relay.wait("LISTENING");
    relay.wait("READY");
    let start_ns = now_ns() + 1_000_000_000;
    relay.tell(&format!("GO {start_ns}"));
    wattwire_kit::sleep_until_ns(start_ns + 10_000_000);
    let shape = Shape { bytes: BYTES, text: false, seed: 7, literal: Vec::new(), full: false };
    let address = address(listening["endpoints"][0].as_str().unwrap());
    let payload = Payload::new(shape, &[SOURCE as i64]);
    let predecessor = UnixDatagram::unbound().unwrap();
    Neighbours { relay, address, predecessor, successor, payload, folder }
}

impl Neighbours {
    fn message(&self, node: u64, counter: u64) -> Vec<u8> {
        let mut message = self.payload.buffer();
        self.payload.stamp(&mut message, node << 48 | counter, 5);
        message
    }

    fn send(&self, message: &[u8]) {
        self.predecessor.send_to_addr(message, &self.address).unwrap();
    }

    fn receive(&self) -> Vec<u8> {
        let mut buffer = [0; 4096];
        let length = self.successor.recv(&mut buffer).unwrap();
        buffer[..length].to_vec()
    }

    fn stop(mut self) -> ([u64; 7], Vec<Record>) {
        self.relay.tell("STOP");
        let done = counts(&self.relay.wait("DONE"));
        self.relay.output();
        (done, samples(&self.folder).1)
    }
}

#[test]
fn a_relay_sends_corrupt_messages_unchanged_and_never_foreign_messages() {
    let chain = neighbours("corrupt", 0);
    let (good, foreign) = (chain.message(SOURCE, 0), chain.message(SOURCE + 1, 1));
    let (probe, mut corrupt) = (chain.message(SOURCE, PROBE), chain.message(SOURCE, 2));
    corrupt[BYTES - 1] ^= 1; // the trailer
    let unreadable = [3; 5].to_vec(); // without a complete sequence
    let again = chain.message(SOURCE, 0);
    let messages = [&good, &foreign, &probe, &corrupt, &unreadable, &again];
    messages.iter().for_each(|message| chain.send(message));
    for expected in [&good, &probe, &corrupt, &unreadable, &again] {
        assert_eq!(&chain.receive(), expected);
    }
    let (done, records) = chain.stop();
    assert_eq!(done, [4, 3, 3, 0, 1, 2, 1]);
    let found: Vec<(u64, u8)> = records.iter().map(|r| (r.seq & 0xFFFF, r.flags)).collect();
    assert_eq!(found, [(0, 0), (2, flag::CORRUPT), (0, 0)]);
    let times = |r: &Record| r.intended_ns <= r.begin_ns && r.begin_ns <= r.end_ns;
    assert!(records.iter().all(times), "{records:?}");
}

#[test]
fn a_message_that_a_relay_could_not_send_is_recorded_as_failed() {
    let mut chain = neighbours("failed", 0);
    chain.send(&chain.message(SOURCE, 0));
    chain.receive();
    chain.successor = UnixDatagram::unbound().unwrap(); // closes the endpoint
    chain.send(&chain.message(SOURCE, 1));
    let (done, records) = chain.stop();
    assert_eq!(done, [1, 2, 2, 0, 0, 0, 0]);
    assert_eq!([records[0].flags, records[1].flags], [0, flag::FAILED]);
    assert_eq!(records[1].end_ns, UNKNOWN_NS);
    assert!(records[1].begin_ns >= records[1].intended_ns);
}

#[test]
fn a_relay_flags_the_warm_up_by_the_arrival() {
    let chain = neighbours("warm", 60_000_000_000);
    chain.send(&chain.message(SOURCE, 0));
    chain.receive();
    let (_, records) = chain.stop();
    assert_eq!(records[0].flags, flag::WARM_UP);
}
