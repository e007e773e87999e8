//! Keeps records in memory during the window and writes the sample file after it (C-24 to C-26).

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::constants::{
    header_at, record_at, FILE_CLOCK, FILE_MAGIC, FILE_VERSION, HEADER_BYTES, RECORD_BYTES,
    UNKNOWN_NS,
};

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
    fn to_bytes(self) -> [u8; RECORD_BYTES] {
        let mut out = [0; RECORD_BYTES];
        out[record_at::SEQ].copy_from_slice(&self.seq.to_le_bytes());
        out[record_at::INTENDED_NS].copy_from_slice(&self.intended_ns.to_le_bytes());
        out[record_at::BEGIN_NS].copy_from_slice(&self.begin_ns.to_le_bytes());
        out[record_at::END_NS].copy_from_slice(&self.end_ns.to_le_bytes());
        out[record_at::BYTES].copy_from_slice(&self.bytes.to_le_bytes());
        out[record_at::PEER].copy_from_slice(&self.peer.to_le_bytes());
        out[record_at::KIND].copy_from_slice(&self.kind.to_le_bytes());
        out[record_at::FLAGS].copy_from_slice(&self.flags.to_le_bytes());
        out
    }
}

/// Room for `capacity` records. The constructor allocates and touches the memory.
pub struct Recorder {
    records: Vec<Record>,
    capacity: usize,
    overflow: u64,
}

impl Recorder {
    /// Fails if the allocation fails.
    pub fn new(capacity: usize) -> io::Result<Self> {
        let mut records = Vec::new();
        records.try_reserve_exact(capacity).map_err(io::Error::other)?;
        // Writes the memory once, so that the window has no page faults.
        let (seq, begin_ns, end_ns) = (u64::MAX, UNKNOWN_NS, UNKNOWN_NS);
        let empty =
            Record { seq, intended_ns: 0, begin_ns, end_ns, bytes: 0, peer: 0, kind: 0, flags: 0 };
        records.resize(capacity, empty);
        records.clear();
        Ok(Recorder { records, capacity, overflow: 0 })
    }

    #[inline]
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

    /// Writes the file `path` with this `role` (a code of C-24), `node` and payload `seed`.
    pub fn write(&self, path: &Path, role: u8, node: u16, seed: u64) -> io::Result<()> {
        let mut header = [0; HEADER_BYTES];
        header[header_at::MAGIC].copy_from_slice(FILE_MAGIC);
        header[header_at::VERSION].copy_from_slice(&FILE_VERSION.to_le_bytes());
        header[header_at::HEADER_BYTES].copy_from_slice(&(HEADER_BYTES as u16).to_le_bytes());
        header[header_at::RECORD_BYTES].copy_from_slice(&(RECORD_BYTES as u16).to_le_bytes());
        header[header_at::ROLE].copy_from_slice(&role.to_le_bytes());
        header[header_at::CLOCK].copy_from_slice(&FILE_CLOCK.to_le_bytes());
        header[header_at::NODE].copy_from_slice(&node.to_le_bytes());
        header[header_at::COUNT].copy_from_slice(&self.recorded().to_le_bytes());
        header[header_at::OVERFLOW].copy_from_slice(&self.overflow().to_le_bytes());
        header[header_at::SEED].copy_from_slice(&seed.to_le_bytes());
        let mut file = BufWriter::new(File::create(path)?);
        file.write_all(&header)?;
        for record in &self.records {
            file.write_all(&record.to_bytes())?;
        }
        file.flush()
    }
}
