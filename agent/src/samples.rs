//! Series, records, the sanity of counters, and the sample file (PROTOCOL.md, "Sample file").

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender, TrySendError};
use std::thread;

use serde_json::{json, Map, Value};

use crate::clock;
use crate::meter::{Manifest, Quantity};

pub const RECORD_BYTES: usize = 24;
const BUFFER_RECORDS: usize = 32 << 10;

/// What one number in the file means.
pub struct Series {
    manifest: &'static Manifest,
    quantity: &'static Quantity,
    scope: String,
    subject: String,
    info: Map<String, Value>,
    /// Range at which the counter starts again from 0, where it does.
    wrap: Option<u64>,
    last_raw: Option<u64>,
    /// What the wraps so far add up to.
    offset: u64,
    last_value: f64,
    lost: u64,
    samples: u64,
}

impl Series {
    fn describe(&self, index: usize) -> Value {
        let mut info = self.info.clone();
        info.insert("lost".into(), self.lost.into());
        info.insert("samples".into(), self.samples.into());
        if let Some(range) = self.wrap {
            info.insert("wrap".into(), range.into());
        }
        json!({"series": index, "meter": self.manifest.name, "quantity": self.quantity.name,
               "unit": self.quantity.unit, "scope": self.scope, "subject": self.subject,
               "kind": self.quantity.kind, "counter": self.quantity.counter, "info": info})
    }

    /// The value to write for a raw reading; None if the reading cannot be believed.
    fn unwrapped(&mut self, raw: u64) -> Option<f64> {
        if let Some(last) = self.last_raw.filter(|last| raw < *last) {
            // A counter that goes back without a range, or from outside its range, is broken.
            let range = self.wrap.filter(|range| last <= *range)?;
            self.offset += range;
        }
        self.last_raw = Some(raw);
        Some((self.offset + raw) as f64)
    }
}

/// A handle to a declared series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesId(pub u32);

/// Where a series belongs, where it differs from the manifest.
pub struct Place<'a> {
    pub subject: &'a str,
    /// Empty: the manifest's.
    pub scope: &'a str,
    pub wrap: Option<u64>,
    pub info: Map<String, Value>,
}

impl<'a> Place<'a> {
    pub fn of(subject: &'a str) -> Place<'a> {
        Place { subject, scope: "", wrap: None, info: Map::new() }
    }
}

/// Takes what meters read: declares series, stamps and writes records. Declaring allocates,
/// putting does not.
pub struct Samples {
    series: Vec<Series>,
    manifest: Option<&'static Manifest>,
    writer: RecordWriter,
    /// In a replay, time comes from the fixture and reading costs nothing.
    fixed_t_ns: Option<i64>,
    t_ns: i64,
    charged_ns: i64,
    pub edge: bool,
}

impl Samples {
    pub fn new(writer: RecordWriter) -> Samples {
        Samples {
            series: Vec::new(),
            manifest: None,
            writer,
            fixed_t_ns: None,
            t_ns: 0,
            charged_ns: 0,
            edge: false,
        }
    }

    /// The meter that declares from now on.
    pub fn declare_for(&mut self, manifest: &'static Manifest) {
        self.manifest = Some(manifest);
    }

    pub fn at(&mut self, t_ns: i64) {
        self.fixed_t_ns = Some(t_ns);
    }

    /// Declares a series of one of the meter's quantities (a name from its `meter.toml`).
    pub fn declare(&mut self, quantity: &str, place: Place) -> SeriesId {
        let manifest = self.manifest.expect("the sampler names the meter before it declares");
        let quantity = manifest
            .quantities
            .iter()
            .find(|known| known.name == quantity)
            .unwrap_or_else(|| panic!("{}/meter.toml has no {quantity:?}", manifest.name));
        let scope = if place.scope.is_empty() { quantity.scope } else { place.scope };
        self.series.push(Series {
            manifest,
            quantity,
            scope: scope.into(),
            subject: place.subject.into(),
            info: place.info,
            wrap: place.wrap,
            last_raw: None,
            offset: 0,
            last_value: f64::MIN,
            lost: 0,
            samples: 0,
        });
        SeriesId(self.series.len() as u32 - 1)
    }

    /// Stamps the readings that follow with now (given back, in ns); call it right before the
    /// system call that reads.
    pub fn begin(&mut self) -> i64 {
        self.t_ns = self.fixed_t_ns.unwrap_or_else(clock::monotonic_ns);
        self.charged_ns = self.t_ns;
        self.t_ns
    }

    /// Writes a raw counter: wraps are resolved, one that goes back is counted as lost.
    pub fn counter(&mut self, series: SeriesId, raw: u64) {
        match self.series[series.0 as usize].unwrapped(raw) {
            Some(value) => self.put(series, value),
            None => self.lost(series),
        }
    }

    /// Writes a value (for a counter: one that is already unwrapped; it may not go back).
    pub fn put(&mut self, series: SeriesId, value: f64) {
        let now_ns = self.fixed_t_ns.unwrap_or_else(clock::monotonic_ns);
        let entry = &mut self.series[series.0 as usize];
        if !value.is_finite() || (entry.quantity.counter && value < entry.last_value) {
            entry.lost += 1;
            return;
        }
        entry.last_value = value;
        entry.samples += 1;
        let read_ns = (now_ns - self.charged_ns).clamp(0, u32::MAX as i64) as u32;
        self.charged_ns = now_ns;
        self.writer.record(self.t_ns, series.0, read_ns, value);
    }

    /// Counts a reading that could not be taken.
    pub fn lost(&mut self, series: SeriesId) {
        self.series[series.0 as usize].lost += 1;
    }

    pub fn note(&mut self, series: SeriesId, key: &str, value: Value) {
        self.series[series.0 as usize].info.insert(key.into(), value);
    }

    pub fn describe(&self) -> Vec<Value> {
        self.series.iter().enumerate().map(|(index, series)| series.describe(index)).collect()
    }

    pub fn writer(&mut self) -> &mut RecordWriter {
        &mut self.writer
    }
}

/// Collects records in a buffer that is allocated once and hands full ones to a thread, so that
/// the sampler never waits for a disk.
pub struct RecordWriter {
    buffer: Vec<u8>,
    full: Option<SyncSender<Vec<u8>>>,
    empty: Receiver<Vec<u8>>,
    thread: Option<thread::JoinHandle<io::Result<()>>>,
    pub records: u64,
    /// Records that found no room because the disk did not keep up.
    pub dropped: u64,
}

impl RecordWriter {
    pub fn create(path: &Path) -> io::Result<RecordWriter> {
        let mut file = File::create(path)?;
        file.write_all(&header())?;
        let (full, filled) = sync_channel::<Vec<u8>>(2);
        let (emptied, empty) = sync_channel::<Vec<u8>>(2);
        for _ in 0..2 {
            let _ = emptied.send(Vec::with_capacity(BUFFER_RECORDS * RECORD_BYTES));
        }
        let thread = thread::spawn(move || {
            for mut buffer in filled {
                file.write_all(&buffer)?;
                buffer.clear();
                // The sampler may be gone already; then the buffer is of no more use.
                let _ = emptied.try_send(buffer);
            }
            file.sync_all()
        });
        Ok(RecordWriter {
            buffer: Vec::with_capacity(BUFFER_RECORDS * RECORD_BYTES),
            full: Some(full),
            empty,
            thread: Some(thread),
            records: 0,
            dropped: 0,
        })
    }

    fn record(&mut self, t_ns: i64, series: u32, read_ns: u32, value: f64) {
        if self.buffer.len() + RECORD_BYTES > self.buffer.capacity() {
            self.hand_over();
        }
        if self.buffer.len() + RECORD_BYTES > self.buffer.capacity() {
            self.dropped += 1;
            return;
        }
        self.buffer.extend_from_slice(&t_ns.to_le_bytes());
        self.buffer.extend_from_slice(&series.to_le_bytes());
        self.buffer.extend_from_slice(&read_ns.to_le_bytes());
        self.buffer.extend_from_slice(&value.to_le_bytes());
        self.records += 1;
    }

    /// Gives the buffer to the writing thread if that has one to give back.
    pub fn hand_over(&mut self) {
        let Some(full) = &self.full else { return };
        if self.buffer.is_empty() {
            return;
        }
        let Ok(empty) = self.empty.try_recv() else { return };
        let buffer = std::mem::replace(&mut self.buffer, empty);
        if let Err(TrySendError::Full(buffer) | TrySendError::Disconnected(buffer)) =
            full.try_send(buffer)
        {
            // Disconnected: the disk failed, `finish` will say so. Full cannot be: there are as
            // many places as buffers.
            self.buffer = buffer;
        }
    }

    /// Writes what is left and syncs the file.
    pub fn finish(&mut self) -> io::Result<()> {
        if let Some(full) = self.full.take() {
            // Waiting is right here: sampling is over. A failed send shows as the thread's error.
            let _ = full.send(std::mem::take(&mut self.buffer));
        }
        match self.thread.take() {
            Some(thread) => thread.join().unwrap_or_else(|_| {
                Err(io::Error::new(io::ErrorKind::Other, "the sample file's thread panicked"))
            }),
            None => Ok(()),
        }
    }
}

fn header() -> [u8; 64] {
    let mut header = [0u8; 64];
    header[..8].copy_from_slice(b"WWSAMPLE");
    header[8..10].copy_from_slice(&1u16.to_le_bytes());
    header[10..12].copy_from_slice(&(RECORD_BYTES as u16).to_le_bytes());
    header
}
