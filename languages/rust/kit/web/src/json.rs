//! Records as JSON with serde (C-32).

use std::fmt::Display;
use std::str::FromStr;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use wattwire_kit::{Record, Sample};

/// The record with the names and the nesting of C-32.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct JsonRecord {
    header: Header,
    name: String,
    pose: Pose,
    samples: Vec<JsonSample>,
    trailer: Trailer,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Header {
    #[serde(with = "digits")]
    seq: u64,
    #[serde(with = "digits")]
    send_ns: i64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Trailer {
    #[serde(with = "digits")]
    seq: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Pose {
    position: Position,
    orientation: Orientation,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Position {
    x: f64,
    y: f64,
    z: f64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Orientation {
    x: f64,
    y: f64,
    z: f64,
    w: f64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct JsonSample {
    id: u32,
    state: u32,
    value: f64,
}

impl From<&Record> for JsonRecord {
    fn from(record: &Record) -> Self {
        let ([x, y, z], [ox, oy, oz, ow]) = (record.position, record.orientation);
        let sample = |s: &Sample| JsonSample { id: s.id, state: s.state, value: s.value };
        JsonRecord {
            header: Header { seq: record.seq, send_ns: record.send_ns },
            name: record.name.clone(),
            pose: Pose {
                position: Position { x, y, z },
                orientation: Orientation { x: ox, y: oy, z: oz, w: ow },
            },
            samples: record.samples.iter().map(sample).collect(),
            trailer: Trailer { seq: record.trailer_seq },
        }
    }
}

impl From<JsonRecord> for Record {
    fn from(json: JsonRecord) -> Self {
        let Pose { position, orientation } = json.pose;
        let sample = |s: &JsonSample| Sample { id: s.id, state: s.state, value: s.value };
        Record {
            seq: json.header.seq,
            send_ns: json.header.send_ns,
            name: json.name,
            position: [position.x, position.y, position.z],
            orientation: [orientation.x, orientation.y, orientation.z, orientation.w],
            samples: json.samples.iter().map(sample).collect(),
            trailer_seq: json.trailer.seq,
        }
    }
}

pub fn write(record: &Record) -> Vec<u8> {
    serde_json::to_vec(&JsonRecord::from(record)).expect("numbers and strings are JSON")
}

/// Parses a record. Returns None if the text is not a record.
pub fn read(text: &[u8]) -> Option<Record> {
    serde_json::from_slice::<JsonRecord>(text).ok().map(Record::from)
}

/// 64-bit integers as strings of decimal digits.
mod digits {
    use super::*;

    pub fn serialize<T: Display, S: Serializer>(number: &T, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(number)
    }

    pub fn deserialize<'de, T: FromStr, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
        from.deserialize_str(Digits(std::marker::PhantomData))
    }

    struct Digits<T>(std::marker::PhantomData<T>);

    impl<T: FromStr> Visitor<'_> for Digits<T> {
        type Value = T;

        fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
            f.write_str("a string of decimal digits")
        }
        fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
            let digits = Some(text).filter(|text| !text.starts_with('+'));
            digits.and_then(|d| d.parse().ok()).ok_or_else(|| E::custom("not a 64-bit integer"))
        }
    }
}
