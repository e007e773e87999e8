//! The frames from the hosts, kept as a file in the format pcap. Only runs that prove security keep
//! frames, because their copies cost time.

use std::io;
use std::path::Path;

use crate::log::{Log, LogFile};

/// Size at which a capture ends, so that it cannot fill the disk.
pub const BYTES_MAX: usize = 256 << 20;

const HEADER_BYTES: usize = 24;
const MAGIC_NS: u32 = 0xa1b2_3c4d;
const FRAME_BYTES_MAX: u32 = 65_536;
const ETHERNET: u32 = 1;
const NS_PER_S: u64 = 1_000_000_000;

pub struct Capture {
    log: Log,
    bytes_left: usize,
}

impl Capture {
    /// Create the file, and start its writer in a thread.
    pub fn start(path: &Path) -> io::Result<Capture> {
        let file = LogFile::with_header(path, &header())?;
        Ok(Capture { log: file.start(), bytes_left: BYTES_MAX - HEADER_BYTES })
    }

    pub fn keep(&mut self, frame: &[u8], in_ns: u64) {
        let record = record_header(frame.len() as u32, in_ns);
        let size = record.len() + frame.len();
        if size > self.bytes_left {
            self.bytes_left = 0;
            return;
        }
        self.bytes_left -= size;
        self.log.append(&record);
        self.log.append(frame);
    }

    pub fn close(self) -> io::Result<()> {
        self.log.close()
    }
}

fn header() -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..4].copy_from_slice(&MAGIC_NS.to_le_bytes());
    bytes[4..6].copy_from_slice(&2_u16.to_le_bytes());
    bytes[6..8].copy_from_slice(&4_u16.to_le_bytes());
    bytes[16..20].copy_from_slice(&FRAME_BYTES_MAX.to_le_bytes());
    bytes[20..].copy_from_slice(&ETHERNET.to_le_bytes());
    bytes
}

fn record_header(frame_bytes: u32, in_ns: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    let fields = [(in_ns / NS_PER_S) as u32, (in_ns % NS_PER_S) as u32, frame_bytes, frame_bytes];
    for (at, field) in fields.iter().enumerate() {
        bytes[at * 4..][..4].copy_from_slice(&field.to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_has_a_header_and_each_frame_with_its_time_and_length() {
        let path = std::env::temp_dir().join(format!("wattwire-capture-{}", std::process::id()));
        let mut capture = Capture::start(&path).unwrap();
        capture.keep(&[7, 8, 9], 2_000_000_005);
        capture.bytes_left = 18;
        capture.keep(&[7, 8, 9], 0);
        capture.keep(&[], 0); // after the first frame without room, none follows
        capture.close().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(bytes.len(), HEADER_BYTES + 16 + 3);
        assert_eq!(bytes[..4], MAGIC_NS.to_le_bytes());
        assert_eq!(bytes[24..40], [2, 0, 0, 0, 5, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0]);
        assert_eq!(bytes[40..], [7, 8, 9]);
    }
}
