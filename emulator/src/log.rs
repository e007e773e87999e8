//! The log of frames: a header and one record of fixed size per frame and receiver, little-endian.
//! `wattwire/rig/emulator_log.py` reads it, and docs/links.md describes it.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{sync_channel, SyncSender};
use std::thread::JoinHandle;

use crate::law::Cause;

pub const MAGIC: &[u8; 8] = b"WWLINK01";
pub const RECORD_BYTES: usize = 40;
/// Receiver of a frame that was dropped before the switch chose its receivers.
pub const NO_PORT: u8 = 255;

const CHUNK_BYTES: usize = 64 * 1024;
/// Chunks that wait for the disk. More of them delay frames, and the log shows this lateness.
const CHUNKS_MAX: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Fate {
    Delivered = 0,
    QueueFull = 1,
    RandomLoss = 2,
    BurstLoss = 3,
    /// Planned, but the emulator ended before, or the device did not accept the frame.
    NotWritten = 4,
}

impl From<Cause> for Fate {
    fn from(cause: Cause) -> Fate {
        match cause {
            Cause::QueueFull => Fate::QueueFull,
            Cause::Random => Fate::RandomLoss,
            Cause::Burst => Fate::BurstLoss,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub in_ns: u64,
    /// 0 for a dropped frame.
    pub planned_ns: u64,
    /// 0 for a frame that did not leave.
    pub out_ns: u64,
    /// The last eight bytes of the frame, by which probes recognise their frames.
    pub mark: u64,
    pub size_bytes: u32,
    pub from: u8,
    pub to: u8,
    pub fate: Fate,
}

impl Record {
    pub fn encode(&self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        let numbers = [self.in_ns, self.planned_ns, self.out_ns, self.mark];
        for (at, number) in numbers.iter().enumerate() {
            bytes[at * 8..][..8].copy_from_slice(&number.to_le_bytes());
        }
        bytes[32..36].copy_from_slice(&self.size_bytes.to_le_bytes());
        bytes[36..39].copy_from_slice(&[self.from, self.to, self.fate as u8]);
        bytes
    }
}

/// The file of a log, before its writer starts.
pub struct LogFile {
    file: File,
}

/// Writes records to a file in a thread of its own, because a disk can stall for seconds.
pub struct Log {
    chunk: Vec<u8>,
    chunks: Option<SyncSender<Vec<u8>>>,
    writer: Option<JoinHandle<io::Result<()>>>,
}

impl LogFile {
    pub fn create(path: &Path) -> io::Result<LogFile> {
        let header = [MAGIC.as_slice(), &(RECORD_BYTES as u64).to_le_bytes()].concat();
        LogFile::with_header(path, &header)
    }

    pub fn with_header(path: &Path, header: &[u8]) -> io::Result<LogFile> {
        let mut file = File::create(path)?;
        file.write_all(header)?;
        Ok(LogFile { file })
    }

    /// Start the writer. A process with threads cannot enter a user namespace, so do that first.
    pub fn start(mut self) -> Log {
        let (chunks, received) = sync_channel::<Vec<u8>>(CHUNKS_MAX);
        let writer = std::thread::spawn(move || {
            let mut result = Ok(());
            // After an error, chunks are still received, so that no frame waits for a full disk.
            for chunk in received {
                if result.is_ok() {
                    result = self.file.write_all(&chunk);
                }
            }
            result
        });
        Log { chunk: Vec::with_capacity(CHUNK_BYTES), chunks: Some(chunks), writer: Some(writer) }
    }
}

impl Log {
    pub fn write(&mut self, record: &Record) {
        self.append(&record.encode());
    }

    pub fn append(&mut self, bytes: &[u8]) {
        self.chunk.extend_from_slice(bytes);
        if self.chunk.len() + RECORD_BYTES > CHUNK_BYTES {
            self.flush();
        }
    }

    /// Pass the records to the writer, so that a crash loses few of them.
    pub fn flush(&mut self) {
        if self.chunk.is_empty() {
            return;
        }
        let full = std::mem::replace(&mut self.chunk, Vec::with_capacity(CHUNK_BYTES));
        if let Some(chunks) = &self.chunks {
            let _ = chunks.send(full);
        }
    }

    /// Write what remains and return the first error of the file.
    pub fn close(mut self) -> io::Result<()> {
        self.flush();
        self.chunks = None;
        match self.writer.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            _ => Err(io::Error::other("the writer of the log panicked")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_forty_bytes_with_its_fields_in_order() {
        let record = Record {
            in_ns: 1,
            planned_ns: 2,
            out_ns: 3,
            mark: 4,
            size_bytes: 5,
            from: 6,
            to: 7,
            fate: Fate::BurstLoss,
        };
        let bytes = record.encode();
        assert_eq!([bytes[0], bytes[8], bytes[16], bytes[24], bytes[32]], [1, 2, 3, 4, 5]);
        assert_eq!(bytes[36..40], [6, 7, 3, 0]);
    }

    #[test]
    fn a_full_disk_is_an_error() {
        assert!(LogFile::create(Path::new("/dev/full")).is_err());
        let file = File::create("/dev/full").unwrap();
        let mut log = LogFile { file }.start();
        log.chunk = vec![0; CHUNK_BYTES];
        assert!(log.close().is_err());
    }
}
