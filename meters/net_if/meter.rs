//! Counters of every network interface, from a single read of `/proc/net/dev`.

use crate::meter::{parse_number, Absent, Meter, Opened, Place, Samples, SeriesId, Tree, TreeFile};

const PATH: &str = "proc/net/dev";
const BUFFER_BYTES: usize = 32 << 10;
/// 32-bit kernels count modulo this value; 64-bit counters never wrap.
const WRAP: u64 = 1 << 32;
/// Quantities and their columns in `/proc/net/dev`, counted after the name.
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
    series: [SeriesId; COLUMNS.len()],
}

impl Interface {
    fn declare(name: &str, samples: &mut Samples) -> Interface {
        let series = COLUMNS.map(|(quantity, _)| {
            samples.declare(quantity, Place { wrap: Some(WRAP), ..Place::of(name) })
        });
        Interface { name: name.into(), series }
    }
}

pub fn open(tree: &Tree) -> Result<Opened, Absent> {
    let absent = |error| Absent::because(format!("/{PATH}: {error}"));
    let file = tree.open(PATH).map_err(absent)?;
    let mut buffer = vec![0; BUFFER_BYTES];
    let text = file.read(&mut buffer).map_err(absent)?;
    if rows(text).next().is_none() {
        return Err(Absent::because(format!("/{PATH} lists no interface")));
    }
    Ok(Opened::new(NetIf { file, buffer, interfaces: Vec::new() }))
}

impl Meter for NetIf {
    /// Declares no series. `read` declares those of an interface at its first reading.
    fn declare(&mut self, _samples: &mut Samples) {}

    fn read(&mut self, samples: &mut Samples) {
        let NetIf { file, buffer, interfaces } = self;
        samples.begin();
        let text = file.read(buffer).unwrap_or_default();
        for (name, _) in rows(text) {
            if interfaces.iter().all(|known| known.name.as_bytes() != name) {
                interfaces.push(Interface::declare(&String::from_utf8_lossy(name), samples));
            }
        }
        for interface in interfaces {
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

/// Returns (interface, counters) for each line. The two header lines have no colon.
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
