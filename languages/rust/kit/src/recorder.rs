//! The sample file: records in memory during the window, written after it (C-24 to C-26).

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::clock::UNKNOWN_NS;

/// What a record is about; the codes of C-25.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Message = 0,
    Call = 1,
    Goal = 2,
    Accept = 3,
    Feedback = 4,
    Result = 5,
}

/// Bits of a record's flags (C-25).
pub mod flag {
    pub const WARM_UP: u8 = 1;
    pub const FAILED: u8 = 2;
    pub const TIMEOUT: u8 = 4;
    pub const CORRUPT: u8 = 8;
}

/// The node number of a peer that nobody knows.
pub const UNKNOWN_PEER: u16 = u16::MAX;

pub const HEADER_BYTES: u16 = 64;
pub const RECORD_BYTES: u16 = 40;

#[derive(Debug, Clone, Copy)]
pub struct Record {
    pub seq: u64,
    pub intended_ns: i64,
    pub begin_ns: i64,
    pub end_ns: i64,
    pub bytes: u32,
    pub peer: u16,
    pub kind: u8,
    pub flags: u8,
}

impl Record {
    fn to_bytes(self) -> [u8; RECORD_BYTES as usize] {
        let mut out = [0; RECORD_BYTES as usize];
        out[0..8].copy_from_slice(&self.seq.to_le_bytes());
        out[8..16].copy_from_slice(&self.intended_ns.to_le_bytes());
        out[16..24].copy_from_slice(&self.begin_ns.to_le_bytes());
        out[24..32].copy_from_slice(&self.end_ns.to_le_bytes());
        out[32..36].copy_from_slice(&self.bytes.to_le_bytes());
        out[36..38].copy_from_slice(&self.peer.to_le_bytes());
        out[38] = self.kind;
        out[39] = self.flags;
        out
    }
}

/// Room for `capacity` records, taken and touched when it is made.
pub struct Recorder {
    records: Vec<Record>,
    capacity: usize,
    overflow: u64,
}

impl Recorder {
    /// Fails where the memory cannot be had.
    pub fn new(capacity: usize) -> io::Result<Self> {
        let mut records = Vec::new();
        records.try_reserve_exact(capacity).map_err(io::Error::other)?;
        // Written once, so that no page is fetched within the window.
        let (seq, begin_ns, end_ns) = (u64::MAX, UNKNOWN_NS, UNKNOWN_NS);
        let nothing =
            Record { seq, intended_ns: 0, begin_ns, end_ns, bytes: 0, peer: 0, kind: 0, flags: 0 };
        records.resize(capacity, nothing);
        records.clear();
        Ok(Recorder { records, capacity, overflow: 0 })
    }

    pub fn add(&mut self, record: Record) {
        if self.records.len() < self.capacity {
            self.records.push(record);
        } else {
            self.overflow += 1;
        }
    }
    pub fn recorded(&self) -> u64 {
        self.records.len() as u64
    }
    pub fn overflow(&self) -> u64 {
        self.overflow
    }

    /// Writes the file `path` for this `role` (the codes of C-24), `node` and payload `seed`.
    pub fn write(&self, path: &Path, role: u8, node: u16, seed: u64) -> io::Result<()> {
        let mut header = [0; HEADER_BYTES as usize];
        header[0..8].copy_from_slice(b"WATTWIRE");
        header[8..10].copy_from_slice(&1u16.to_le_bytes());
        header[10..12].copy_from_slice(&HEADER_BYTES.to_le_bytes());
        header[12..14].copy_from_slice(&RECORD_BYTES.to_le_bytes());
        header[14] = role;
        header[15] = 1; // CLOCK_MONOTONIC
        header[16..18].copy_from_slice(&node.to_le_bytes());
        header[24..32].copy_from_slice(&self.recorded().to_le_bytes());
        header[32..40].copy_from_slice(&self.overflow().to_le_bytes());
        header[40..48].copy_from_slice(&seed.to_le_bytes());
        let mut file = BufWriter::new(File::create(path)?);
        file.write_all(&header)?;
        for record in &self.records {
            file.write_all(&record.to_bytes())?;
        }
        file.flush()
    }
}
