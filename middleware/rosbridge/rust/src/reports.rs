//! The library's reports. It connects again when the bridge is lost, and skips messages that it
//! cannot decode; only its log reports either.

use std::sync::atomic::{AtomicU8, Ordering::SeqCst};
use std::sync::Mutex;

use log::{Level, LevelFilter, Log, Metadata, Record};

/// The phases of a client, in their order.
#[derive(Clone, Copy)]
pub enum Phase {
    /// Attempts to connect fail until the bridge is there.
    Connecting,
    /// The bridge's service reports errors, so a status, which the library hides, adds nothing.
    Opening,
    Ready,
    Ending,
}

pub struct Reports {
    phase: AtomicU8,
    last: Mutex<String>,
}

pub static REPORTS: Reports =
    Reports { phase: AtomicU8::new(Phase::Connecting as u8), last: Mutex::new(String::new()) };

const UNKNOWN_STATUS: &str = "unrecognized op `status`";
const LOST: &str = "Spin failed";

impl Reports {
    pub fn start(&'static self) {
        log::set_logger(self).expect("no other logger");
        log::set_max_level(LevelFilter::Warn);
    }

    pub fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, SeqCst);
    }

    fn is_in(&self, phase: Phase) -> bool {
        self.phase.load(SeqCst) == phase as u8
    }

    /// Returns the library's last report.
    pub fn last(&self) -> String {
        self.last.lock().expect("no panic").clone()
    }
}

impl Log for Reports {
    fn enabled(&self, metadata: &Metadata) -> bool {
        metadata.level() <= Level::Warn && metadata.target().starts_with("roslibrust")
    }

    /// Ends the node if the library reports a loss. The kit ends a node when a thread panics.
    fn log(&self, record: &Record) {
        if !self.enabled(record.metadata()) || self.is_in(Phase::Ending) {
            return;
        }
        let text = record.args().to_string();
        if self.is_in(Phase::Connecting) {
            *self.last.lock().expect("no panic") = text;
        } else if text.starts_with(LOST) {
            panic!("the bridge was lost: {text}");
        } else if !text.contains(UNKNOWN_STATUS) {
            panic!("roslibrust reports: {text}");
        } else if self.is_in(Phase::Ready) {
            panic!("the bridge reports an error whose text roslibrust hides");
        }
    }

    fn flush(&self) {}
}
