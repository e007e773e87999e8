//! The record of C-32, a nested message that each middleware carries in its own types.

use std::io::Write;

use serde_json::Value;

use crate::payload::{fill_stream, Checked, Verdict, ALPHABET};

const FIXED_BYTES: usize = 96;
const SAMPLE_BYTES: usize = 16;
const FIRST_SAMPLE_WORD: usize = 9;

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sample {
    pub id: u32,
    pub state: u32,
    pub value: f64,
}

/// A message. The sender rewrites its record for each message.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Record {
    pub seq: u64,
    pub send_ns: i64,
    pub name: String,
    /// x, y, z.
    pub position: [f64; 3],
    /// x, y, z, w.
    pub orientation: [f64; 4],
    pub samples: Vec<Sample>,
    pub trailer_seq: u64,
}

impl Record {
    /// Returns the nominal size in bytes.
    pub fn nominal_bytes(&self) -> usize {
        FIXED_BYTES + SAMPLE_BYTES * self.samples.len()
    }

    /// Appends the record as JSON, with the names and the nesting of C-32.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        let ([px, py, pz], [ox, oy, oz, ow]) = (self.position, self.orientation);
        let (seq, send_ns) = (self.seq, self.send_ns);
        let reason = "writing to memory cannot fail";
        write!(out, "{{\"header\":{{\"seq\":\"{seq}\",\"send_ns\":\"{send_ns}\"}},\"name\":")
            .expect(reason);
        serde_json::to_writer(&mut *out, &self.name).expect(reason);
        let pose = format_args!(
            ",\"pose\":{{\
             \"position\":{{\"x\":{px:?},\"y\":{py:?},\"z\":{pz:?}}},\
             \"orientation\":{{\"x\":{ox:?},\"y\":{oy:?},\"z\":{oz:?},\"w\":{ow:?}}}}},\
             \"samples\":["
        );
        out.write_fmt(pose).expect(reason);
        for (at, Sample { id, state, value }) in self.samples.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            write!(out, "{comma}{{\"id\":{id},\"state\":{state},\"value\":{value:?}}}")
                .expect(reason);
        }
        let seq = self.trailer_seq;
        write!(out, "],\"trailer\":{{\"seq\":\"{seq}\"}}}}").expect(reason);
    }

    /// Parses a JSON text. Returns None if a field is missing or has the wrong type.
    pub fn from_json(text: &[u8]) -> Option<Record> {
        let object: Value = serde_json::from_slice(text).ok()?;
        let number = |path: &str| object.pointer(path)?.as_f64();
        let sample = |sample: &Value| {
            Some(Sample {
                id: u32::try_from(sample.get("id")?.as_u64()?).ok()?,
                state: u32::try_from(sample.get("state")?.as_u64()?).ok()?,
                value: sample.get("value")?.as_f64()?,
            })
        };
        Some(Record {
            seq: digits(object.pointer("/header/seq")?)?,
            send_ns: digits(object.pointer("/header/send_ns")?)?,
            name: object.get("name")?.as_str()?.into(),
            position: [
                number("/pose/position/x")?,
                number("/pose/position/y")?,
                number("/pose/position/z")?,
            ],
            orientation: [
                number("/pose/orientation/x")?,
                number("/pose/orientation/y")?,
                number("/pose/orientation/z")?,
                number("/pose/orientation/w")?,
            ],
            samples: object
                .get("samples")?
                .as_array()?
                .iter()
                .map(sample)
                .collect::<Option<_>>()?,
            trailer_seq: digits(object.pointer("/trailer/seq")?)?,
        })
    }

    /// Returns the reply to a request with these numbers: C-32's `ack` or, with a name, `literal`.
    pub(crate) fn answer(seq: u64, send_ns: i64, trailer_seq: u64, name: &str) -> Record {
        Record { seq, send_ns, trailer_seq, name: name.into(), ..Record::default() }
    }
}

/// Parses a 64-bit integer from a JSON string of decimal digits (C-32).
fn digits<T: std::str::FromStr>(value: &Value) -> Option<T> {
    value.as_str().filter(|text| !text.starts_with('+'))?.parse().ok()
}

/// The contents of a run's records, and the nodes that send them.
pub struct RecordPayload {
    due: Record,
    full: bool,
    nodes: Vec<u64>,
}

impl RecordPayload {
    /// `bytes` is payload.bytes, at least 96.
    pub fn new(bytes: usize, seed: u64, full: bool, nodes: &[i64]) -> Self {
        let count = bytes.saturating_sub(FIXED_BYTES) / SAMPLE_BYTES;
        let stream = fill_stream(seed, 8 * (FIRST_SAMPLE_WORD + count));
        let words: Vec<u64> = stream
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes")))
            .collect();
        let value = |at: usize| f64::from((words[at] >> 32) as u32 as i32) / 1024.0;
        let character = |byte: &u8| char::from(ALPHABET[usize::from(byte % 64)]);
        let sample = |at: usize| {
            let word = FIRST_SAMPLE_WORD + at;
            Sample { id: at as u32, state: (words[word] % 256) as u32, value: value(word) }
        };
        let due = Record {
            name: stream[..16].iter().map(character).collect(),
            position: std::array::from_fn(|at| value(2 + at)),
            orientation: std::array::from_fn(|at| value(5 + at)),
            samples: (0..count).map(sample).collect(),
            ..Record::default()
        };
        let nodes = nodes.iter().map(|&node| node as u64).collect();
        RecordPayload { due, full, nodes }
    }

    pub fn length(&self) -> usize {
        self.due.nominal_bytes()
    }

    /// Returns a record with its fill, for stamping.
    pub fn buffer(&self) -> Record {
        self.due.clone()
    }

    pub fn stamp(record: &mut Record, seq: u64, send_ns: i64) {
        record.seq = seq;
        record.trailer_seq = seq;
        record.send_ns = send_ns;
    }

    /// Checks an arrival.
    pub fn check(&self, arrival: &Record) -> Checked {
        let expected = &self.due;
        let intact = || {
            arrival.trailer_seq == arrival.seq
                && arrival.samples.len() == expected.samples.len()
                && (!self.full
                    || (arrival.samples == expected.samples
                        && arrival.position == expected.position
                        && arrival.orientation == expected.orientation))
        };
        let verdict = if !self.nodes.contains(&(arrival.seq >> 48)) || arrival.name != expected.name
        {
            Verdict::Foreign
        } else if intact() {
            Verdict::Ok
        } else {
            Verdict::Corrupt
        };
        Checked { verdict, seq: Some(arrival.seq), begin_ns: arrival.send_ns }
    }
}
