//! Drops and retransmissions of the network stack, from `/proc/net/snmp` and `/proc/net/snmp6`.

use serde_json::Map;

use crate::meter::{parse_number, Absent, Meter, Opened, Place, Samples, SeriesId, Tree, TreeFile};

const SNMP: &str = "proc/net/snmp";
const SNMP6: &str = "proc/net/snmp6";
const BUFFER_BYTES: usize = 16 << 10;

/// Quantity, protocol and column in `snmp`, name in `snmp6`.
const COUNTERS: [(&str, &str, &str, Option<&str>); 5] = [
    ("datagrams_dropped", "Udp:", "RcvbufErrors", Some("Udp6RcvbufErrors")),
    ("datagrams_unsent", "Udp:", "SndbufErrors", Some("Udp6SndbufErrors")),
    ("datagrams_unclaimed", "Udp:", "NoPorts", Some("Udp6NoPorts")),
    ("datagrams_unassembled", "Ip:", "ReasmFails", Some("Ip6ReasmFails")),
    // This counter includes both IPv4 and IPv6.
    ("segments_resent", "Tcp:", "RetransSegs", None),
];

struct NetStack {
    snmp: TreeFile,
    snmp6: Option<TreeFile>,
    series: Vec<SeriesId>,
    buffer: Vec<u8>,
    buffer6: Vec<u8>,
}

pub fn open(tree: &Tree) -> Result<Opened, Absent> {
    let snmp = tree.open(SNMP);
    let snmp = snmp.map_err(|error| Absent::because(format!("/{SNMP}: {error}")))?;
    let snmp6 = tree.open(SNMP6).ok();
    let mut info = Map::new();
    info.insert("ipv6".into(), snmp6.is_some().into());
    let (buffer, buffer6) = (vec![0; BUFFER_BYTES], vec![0; BUFFER_BYTES]);
    let meter = NetStack { snmp, snmp6, series: Vec::new(), buffer, buffer6 };
    Ok(Opened { meter: Box::new(meter), info })
}

impl Meter for NetStack {
    fn declare(&mut self, samples: &mut Samples) {
        let quantities = COUNTERS.iter().map(|(quantity, ..)| *quantity);
        self.series =
            quantities.map(|quantity| samples.declare(quantity, Place::of("machine"))).collect();
    }

    fn read(&mut self, samples: &mut Samples) {
        samples.begin();
        let text = self.snmp.read(&mut self.buffer).unwrap_or_default();
        let file6 = self.snmp6.as_ref();
        let text6 = file6.map(|file| file.read(&mut self.buffer6).unwrap_or_default());
        for (series, (_, protocol, column, name6)) in self.series.iter().zip(COUNTERS) {
            let first = of_table(text, protocol, column);
            let second = match (name6, text6) {
                (Some(name), Some(text)) => of_list(text, name),
                _ => Some(0),
            };
            match first.zip(second) {
                Some((first, second)) => samples.counter(*series, first + second),
                None => samples.lost(*series),
            }
        }
    }
}

/// Returns a number of `snmp`, which has a line of headings and a line of numbers per protocol.
fn of_table(text: &[u8], protocol: &str, column: &str) -> Option<u64> {
    let mut lines =
        text.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(protocol.as_bytes()));
    let (headings, numbers) = (lines.next()?, lines.next()?);
    let index = words(headings).position(|word| word == column.as_bytes())?;
    parse_number(words(numbers).nth(index)?)
}

/// Returns a number of `snmp6`, which has a name and a number per line.
fn of_list(text: &[u8], name: &str) -> Option<u64> {
    text.split(|byte| *byte == b'\n').find_map(|line| {
        let mut words = words(line);
        (words.next()? == name.as_bytes()).then(|| parse_number(words.next()?))?
    })
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}
