//! Creates payloads and checks arrivals for foreign and corrupt payloads (C-17 to C-22).

use crate::constants::{UNKNOWN_NS, UNKNOWN_PEER};

/// Mask of the message counter in a sequence.
pub const COUNTER_MASK: u64 = (1 << 48) - 1;

pub(crate) const ALPHABET: &[u8; 64] =
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Ok,
    Corrupt,
    Foreign,
}

/// The result of checking an arrival. `seq` is None if it cannot be read.
#[derive(Debug, Clone, Copy)]
pub struct Checked {
    pub verdict: Verdict,
    pub seq: Option<u64>,
    pub begin_ns: i64,
}

/// The specification's keys for payloads.
#[derive(Debug, Clone)]
pub struct Shape {
    pub bytes: usize,
    pub text: bool,
    pub seed: u64,
    pub literal: Vec<u8>,
    pub full: bool,
}

/// The payload of a run, and the nodes that send it.
pub struct Payload {
    shape: Shape,
    pub length: usize,
    pub carries_seq: bool,
    /// Number of payload bytes per byte of the header.
    unit: usize,
    fill: Vec<u8>,
    trailer_bytes: usize,
    nodes: Vec<u64>,
    /// True for bytes with header, trailer and a fill of at least a word.
    plain: bool,
}

impl Payload {
    pub fn new(shape: Shape, nodes: &[i64]) -> Self {
        let unit = if shape.text { 2 } else { 1 };
        let literal = !shape.literal.is_empty();
        let length = if literal { shape.literal.len() } else { shape.bytes };
        let trailer_bytes = if length >= 24 * unit { 8 * unit } else { 0 };
        let fill_bytes = if literal { 0 } else { length.saturating_sub(16 * unit + trailer_bytes) };
        let mut fill = fill_stream(shape.seed, fill_bytes);
        if shape.text {
            fill.iter_mut().for_each(|byte| *byte = ALPHABET[usize::from(*byte % 64)]);
        }
        let nodes = nodes.iter().map(|&node| node as u64).collect();
        let carries_seq = !literal && length >= 8 * unit;
        let plain = unit == 1 && fill.len() >= 8;
        Payload { shape, length, carries_seq, unit, fill, trailer_bytes, nodes, plain }
    }

    /// Returns a payload with its fill, for stamping.
    pub fn buffer(&self) -> Vec<u8> {
        let mut out = self.shape.literal.clone();
        out.resize(self.length, 0);
        if !self.fill.is_empty() {
            let fill_at = 16 * self.unit;
            out[fill_at..fill_at + self.fill.len()].copy_from_slice(&self.fill);
        }
        out
    }

    /// Writes sequence and send time into a buffer, whose fill stays unchanged.
    #[inline]
    pub fn stamp(&self, buffer: &mut [u8], seq: u64, begin_ns: i64) {
        if self.plain {
            buffer[..8].copy_from_slice(&seq.to_le_bytes());
            buffer[8..16].copy_from_slice(&begin_ns.to_le_bytes());
            buffer[self.length - 8..].copy_from_slice(&seq.to_le_bytes());
            return;
        }
        if !self.shape.literal.is_empty() {
            return;
        }
        let mut header = [0; 32];
        self.encode(seq.to_le_bytes(), &mut header);
        self.encode(begin_ns.to_le_bytes(), &mut header[8 * self.unit..]);
        let count = self.length.min(16 * self.unit);
        buffer[..count].copy_from_slice(&header[..count]);
        let trailer_at = self.length - self.trailer_bytes;
        buffer[trailer_at..].copy_from_slice(&header[..self.trailer_bytes]);
    }

    /// Returns whether a payload begins with this sequence.
    #[inline]
    pub(crate) fn carries(&self, data: &[u8], seq: u64) -> bool {
        if self.unit == 1 {
            return data.first_chunk() == Some(&seq.to_le_bytes());
        }
        let (header, count) = self.header(seq);
        data.get(..count) == Some(&header[..count])
    }

    /// Returns the encoded sequence, and its length of 8 or 16 bytes.
    #[inline]
    pub fn header(&self, seq: u64) -> ([u8; 16], usize) {
        let mut out = [0; 16];
        self.encode(seq.to_le_bytes(), &mut out);
        (out, 8 * self.unit)
    }

    /// Returns the known bytes of a payload: the literal, or the header up to the payload's length.
    pub(crate) fn known_bytes<'a>(&'a self, header: &'a [u8]) -> &'a [u8] {
        if self.shape.literal.is_empty() {
            &header[..header.len().min(self.length)]
        } else {
            &self.shape.literal
        }
    }

    fn encode(&self, bytes: [u8; 8], out: &mut [u8]) {
        if self.unit == 1 {
            out[..8].copy_from_slice(&bytes);
            return;
        }
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        for (pair, byte) in out.chunks_exact_mut(2).zip(bytes) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
    }

    /// Checks an arrival by C-21. `expected` is the next counter, by which incomplete sequences are
    /// completed.
    #[inline]
    pub fn check(&self, data: &[u8], expected: &mut u64) -> Checked {
        if let Some((seq, begin_ns)) = self.read_plain(data) {
            return Checked { verdict: Verdict::Ok, seq: Some(seq), begin_ns };
        }
        if !self.shape.literal.is_empty() {
            let good = data == self.shape.literal;
            let verdict = if good { Verdict::Ok } else { Verdict::Corrupt };
            return Checked {
                verdict,
                seq: Some(self.complete(0, 0, expected)),
                begin_ns: UNKNOWN_NS,
            };
        }
        let (seq, begin_ns) = self.read_header(data, expected);
        let verdict = match seq {
            None => Verdict::Corrupt,
            Some(seq) if self.is_foreign(seq, data) => Verdict::Foreign,
            Some(_) if self.is_intact(data) => Verdict::Ok,
            Some(_) => Verdict::Corrupt,
        };
        Checked { verdict, seq, begin_ns }
    }

    /// Reads sequence and send time of a complete payload of these nodes. Returns None if its
    /// trailer or fill is wrong.
    #[inline]
    fn read_plain(&self, data: &[u8]) -> Option<(u64, i64)> {
        if !self.plain || data.len() != self.length {
            return None;
        }
        let (header, rest) = data.split_first_chunk::<16>()?;
        let (fill, trailer) = rest.split_last_chunk::<8>()?;
        let seq = u64::from_le_bytes(header[..8].try_into().expect("8 of 16 bytes"));
        let begin_ns = i64::from_le_bytes(header[8..].try_into().expect("8 of 16 bytes"));
        let good = seq == u64::from_le_bytes(*trailer)
            && fill.first_chunk::<8>() == self.fill.first_chunk()
            && (!self.shape.full || fill == self.fill)
            && self.nodes.contains(&(seq >> 48));
        good.then_some((seq, begin_ns))
    }

    fn is_foreign(&self, seq: u64, data: &[u8]) -> bool {
        let first = &self.fill[..self.fill.len().min(8)];
        let fill = data.get(16 * self.unit..).unwrap_or_default();
        let count = first.len().min(fill.len());
        !self.nodes.contains(&(seq >> 48)) || fill[..count] != first[..count]
    }

    fn is_intact(&self, data: &[u8]) -> bool {
        let fill_at = 16 * self.unit;
        data.len() == self.length
            && data[self.length - self.trailer_bytes..] == data[..self.trailer_bytes]
            && (!self.shape.full
                || self.fill.is_empty()
                || data[fill_at..fill_at + self.fill.len()] == self.fill)
    }

    fn read_header(&self, data: &[u8], expected: &mut u64) -> (Option<u64>, i64) {
        let place = &data[..data.len().min(self.length).min(16 * self.unit)];
        let count = place.len() / self.unit;
        let mut head = [0; 16];
        for (at, byte) in head[..count].iter_mut().enumerate() {
            match self.decode(place, at) {
                Some(decoded) => *byte = decoded,
                None => return (None, UNKNOWN_NS),
            }
        }
        let (low, high) = head.split_at(8);
        let seq = u64::from_le_bytes(low.try_into().expect("8 of 16 bytes"));
        let time = i64::from_le_bytes(high.try_into().expect("8 of 16 bytes"));
        let begin_ns = if count == 16 { time } else { UNKNOWN_NS };
        if !self.carries_seq {
            let known = count.min(6);
            return (Some(self.complete(seq & COUNTER_MASK, known, expected)), begin_ns);
        }
        (if count >= 8 { Some(seq) } else { None }, begin_ns)
    }

    fn decode(&self, place: &[u8], at: usize) -> Option<u8> {
        if self.unit == 1 {
            return Some(place[at]);
        }
        let digit = |c: u8| match c {
            b'0'..=b'9' => Some(c - b'0'),
            b'a'..=b'f' => Some(c - b'a' + 10),
            _ => None,
        };
        Some(digit(place[2 * at])? << 4 | digit(place[2 * at + 1])?)
    }

    /// Returns the sequence with these low bytes that is nearest to the next expected sequence.
    fn complete(&self, low: u64, known_bytes: usize, expected: &mut u64) -> u64 {
        let node = match self.nodes[..] {
            [only] => only,
            _ => u64::from(UNKNOWN_PEER),
        };
        let next = *expected as i64;
        let mut counter = next;
        if known_bytes > 0 {
            let modulus = 1i64 << (8 * known_bytes);
            let ahead = (low as i64 - next).rem_euclid(modulus);
            counter += if ahead > modulus / 2 { ahead - modulus } else { ahead };
            if counter < 0 {
                counter += modulus;
            }
        }
        *expected = next.max(counter + 1) as u64;
        node << 48 | counter as u64
    }
}

/// Returns the first `count` bytes of the fill of C-19 (splitmix64, little-endian words).
pub(crate) fn fill_stream(seed: u64, count: usize) -> Vec<u8> {
    let mut out = vec![0; count.next_multiple_of(8)];
    let mut state = seed;
    for word in out.chunks_exact_mut(8) {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        word.copy_from_slice(&(z ^ (z >> 31)).to_le_bytes());
    }
    out.truncate(count);
    out
}
