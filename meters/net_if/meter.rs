//! Counters of every network interface, from one read of `/proc/net/dev`.

use crate::meter::{parse_number, Absent, Meter, Opened, Place, Samples, SeriesId, Tree, TreeFile};

const PATH: &str = "proc/net/dev";
const BUFFER_BYTES: usize = 32 << 10;
/// 32-bit kernels count modulo this; 64-bit ones never get back to 0.
const WRAP: u64 = 1 << 32;
/// Which column of `/proc/net/dev` (after the name) a quantity stands in.
const COLUMNS: [(&str, usize); 6] = [
    ("rx_bytes", 0),
    ("rx_packets", 1),
    ("rx_drops", 3),
    ("tx_bytes", 8),
    ("tx_packets", 9),
    ("tx_drops", 11),
];

struct NetIf {
    file: TreeFile,
    buffer: Vec<u8>,
    interfaces: Vec<Interface>,
}

struct Interface {
    name: String,
    series: Vec<SeriesId>,
}

pub fn open(tree: &Tree) -> Result<Opened, Absent> {
    let absent = |error| Absent::because(format!("/{PATH}: {error}"));
    let file = tree.open(PATH).map_err(absent)?;
    let mut buffer = vec![0; BUFFER_BYTES];
    let text = file.read(&mut buffer).map_err(absent)?;
    let named = rows(text).map(|(name, _)| String::from_utf8_lossy(name).into_owned());
    let interfaces: Vec<Interface> =
        named.map(|name| Interface { name, series: Vec::new() }).collect();
    if interfaces.is_empty() {
        return Err(Absent::because(format!("/{PATH} shows no interface")));
    }
    Ok(Opened::new(NetIf { file, buffer, interfaces }))
}

impl Meter for NetIf {
    fn declare(&mut self, samples: &mut Samples) {
        for interface in &mut self.interfaces {
            for (quantity, _) in COLUMNS {
                let place = Place { wrap: Some(WRAP), ..Place::of(&interface.name) };
                interface.series.push(samples.declare(quantity, place));
            }
        }
    }

    fn read(&mut self, samples: &mut Samples) {
        samples.begin();
        let text = self.file.read(&mut self.buffer).unwrap_or_default();
        for interface in &self.interfaces {
            let row = rows(text).find(|(name, _)| *name == interface.name.as_bytes());
            for (series, (_, column)) in interface.series.iter().zip(COLUMNS) {
                match row.and_then(|(_, counters)| number(counters, column)) {
                    Some(raw) => samples.counter(*series, raw),
                    None => samples.lost(*series),
                }
            }
        }
    }
}

/// (interface, its counters) of each line; the two lines of headings have no colon.
fn rows(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    text.split(|byte| *byte == b'\n').filter_map(|line| {
        let colon = line.iter().rposition(|byte| *byte == b':')?;
        Some((line[..colon].trim_ascii(), &line[colon + 1..]))
    })
}

fn number(counters: &[u8], column: usize) -> Option<u64> {
    let mut words = counters.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    parse_number(words.nth(column)?)
}
