//! Applies the law to given frames in logical time: `law PROFILE LOG` reads the frames from
//! standard input, 16 bytes each, little-endian: time in ns (u64), size in bytes (u32), port of the
//! sender (u16), port of the receiver (u16). Their times do not fall.

use std::io::{self, BufReader, Read};

use crate::emulation::{record, Arrival, Emulation};
use crate::log::{Fate, Log, LogFile};
use crate::profile::Profile;

const FRAME_BYTES: usize = 16;
const READ_BYTES: usize = 1 << 16;

/// Write the fate of each frame to the log; a frame's mark is its position in the input.
pub fn run(profile: &Profile, log: LogFile, input: impl Read) -> io::Result<()> {
    let mut log = log.start();
    let mut emulation: Emulation<()> = Emulation::new(profile);
    emulation.start(0);
    let mut input = BufReader::with_capacity(READ_BYTES, input);
    let mut bytes = [0; FRAME_BYTES];
    let mut mark = 0;
    while read_frame(&mut input, &mut bytes)? {
        let (arrival, to) = decoded(&bytes, mark);
        if arrival.from.max(to) >= profile.ports.len() {
            let error =
                format!("frame {mark}: port {}; the profile has fewer", arrival.from.max(to));
            return Err(io::Error::new(io::ErrorKind::InvalidData, error));
        }
        deliver(&mut emulation, arrival.in_ns, &mut log);
        emulation.arrive(arrival, 1 << to, (), &mut |record| log.write(&record));
        mark += 1;
    }
    deliver(&mut emulation, u64::MAX, &mut log);
    log.close()
}

fn read_frame(input: &mut impl Read, bytes: &mut [u8; FRAME_BYTES]) -> io::Result<bool> {
    match input.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn decoded(bytes: &[u8; FRAME_BYTES], mark: u64) -> (Arrival, usize) {
    let number = |from: usize, to: usize| {
        bytes[from..to].iter().rev().fold(0u64, |number, &byte| number << 8 | u64::from(byte))
    };
    let arrival = Arrival {
        in_ns: number(0, 8),
        size_bytes: number(8, 12) as u32,
        mark,
        from: number(12, 14) as usize,
    };
    (arrival, number(14, 16) as usize)
}

fn deliver(emulation: &mut Emulation<()>, until_ns: u64, log: &mut Log) {
    loop {
        let due = emulation.due(until_ns, &mut |record| log.write(&record));
        let Some(frame) = due else { return };
        let (to, at_ns) = (frame.to as u8, frame.planned_ns);
        log.write(&record(frame.arrival, to, Fate::Delivered, at_ns, at_ns));
    }
}
