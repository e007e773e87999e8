//! Series, records, checks of counters, and the sample file (PROTOCOL.md, "Sample file").

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender, TrySendError};
use std::thread;

use serde_json::{json, Map, Value};

use crate::clock;
use crate::manifest::{Manifest, Quantity};

pub const RECORD_BYTES: usize = 24;
const BUFFER_RECORDS: usize = 32 << 10;

/// The meaning of a series of numbers in the file.
pub struct Series {
    manifest: &'static Manifest,
    quantity: &'static Quantity,
    scope: String,
    subject: String,
    info: Map<String, Value>,
    /// The range at which the counter wraps to 0; None for a counter without wraps.
    wrap: Option<u64>,
    last_raw: Option<u64>,
    /// The sum of all wraps. It is negative after a reset of a counter that started at a high
    /// value.
    offset: i128,
    last_value: f64,
    lost: u64,
    samples: u64,
    /// Another agent of this machine reads this series.
    is_skipped: bool,
}

impl Series {
    fn describe(&self, index: usize) -> Value {
        let mut info = self.info.clone();
        info.insert("lost".into(), self.lost.into());
        info.insert("samples".into(), self.samples.into());
        if let Some(range) = self.wrap {
            info.insert("wrap".into(), range.into());
        }
        let mut described = json!({
            "series": index, "meter": self.manifest.name, "quantity": self.quantity.name,
            "unit": self.quantity.unit, "scope": self.scope, "subject": self.subject,
            "kind": self.quantity.kind, "counter": self.quantity.counter, "info": info});
        if let Some(rank) = self.quantity.rank {
            described["rank"] = rank.into();
        }
        described
    }

    /// Returns the value to write for a raw reading. None: the counter was reset. It continues
    /// from its last value, and its increase since the last reading is lost.
    fn unwrapped(&mut self, raw: u64) -> Option<f64> {
        let (raw, last) = (raw as i128, self.last_raw.replace(raw).unwrap_or(raw) as i128);
        if raw >= last {
            return Some((self.offset + raw) as f64);
        }
        // The readings are too frequent for an increase of more than half a range, so a larger
        // one is a reset.
        match self.wrap.map(i128::from).filter(|range| raw + range - last < range / 2) {
            Some(range) => {
                self.offset += range;
                Some((self.offset + raw) as f64)
            }
            None => {
                self.offset += last - raw;
                None
            }
        }
    }
}

/// A reading: a raw counter, which may wrap or be reset, or a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    Counter(u64),
    Gauge(f64),
}

/// A handle to a declared series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesId(pub u32);

/// The subject of a series, and its differences from the manifest.
pub struct Place<'a> {
    pub subject: &'a str,
    /// If empty, the manifest's scope applies.
    pub scope: &'a str,
    pub wrap: Option<u64>,
    pub info: Map<String, Value>,
}

impl<'a> Place<'a> {
    pub fn of(subject: &'a str) -> Place<'a> {
        Place { subject, scope: "", wrap: None, info: Map::new() }
    }
}

/// Receives the readings of meters: declares series, adds times and writes records. Only
/// declarations allocate memory.
pub struct Samples {
    series: Vec<Series>,
    manifest: Option<&'static Manifest>,
    writer: RecordWriter,
    /// The fixture's time in a replay, where a reading has a duration of 0.
    fixed_t_ns: Option<i64>,
    t_ns: i64,
    charged_ns: i64,
    pub edge: bool,
    /// If false, declared series of the whole machine get no records and no description.
    pub machine_wide: bool,
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
            machine_wide: true,
        }
    }

    /// Sets the meter of the next declarations.
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
            is_skipped: !self.machine_wide && manifest.is_machine_wide(scope),
        });
        SeriesId(self.series.len() as u32 - 1)
    }

    /// Sets and returns the time, in ns, of the readings that follow. Meters call it immediately
    /// before the system call that reads.
    pub fn begin(&mut self) -> i64 {
        self.t_ns = self.fixed_t_ns.unwrap_or_else(clock::monotonic_ns);
        self.charged_ns = self.t_ns;
        self.t_ns
    }

    /// Writes a raw counter, corrected for wraps. A counter that decreases counts as lost.
    pub fn counter(&mut self, series: SeriesId, raw: u64) {
        match self.series[series.0 as usize].unwrapped(raw) {
            Some(value) => self.put(series, value),
            None => self.lost(series),
        }
    }

    /// Writes a value. The caller corrects a counter for wraps; a decrease counts as lost.
    pub fn put(&mut self, series: SeriesId, value: f64) {
        let now_ns = self.fixed_t_ns.unwrap_or_else(clock::monotonic_ns);
        let read_ns = (now_ns - self.charged_ns).clamp(0, u32::MAX as i64) as u32;
        if self.write(series, self.t_ns, read_ns, value) {
            self.charged_ns = now_ns;
        }
    }

    /// Writes a reading that came at `t_ns`, as `counter` or `put`.
    pub fn take(&mut self, series: SeriesId, t_ns: i64, read_ns: u32, amount: Amount) {
        let value = match amount {
            Amount::Counter(raw) => self.series[series.0 as usize].unwrapped(raw),
            Amount::Gauge(value) => Some(value),
        };
        match value {
            Some(value) => _ = self.write(series, t_ns, read_ns, value),
            None => self.lost(series),
        }
    }

    /// Returns whether the value was written.
    fn write(&mut self, series: SeriesId, t_ns: i64, read_ns: u32, value: f64) -> bool {
        let entry = &mut self.series[series.0 as usize];
        if entry.is_skipped {
            return false;
        }
        if !value.is_finite() || (entry.quantity.counter && value < entry.last_value) {
            entry.lost += 1;
            return false;
        }
        entry.last_value = value;
        entry.samples += 1;
        self.writer.record(t_ns, series.0, read_ns, value);
        true
    }

    /// Counts a failed reading.
    pub fn lost(&mut self, series: SeriesId) {
        self.series[series.0 as usize].lost += 1;
    }

    pub fn note(&mut self, series: SeriesId, key: &str, value: Value) {
        self.series[series.0 as usize].info.insert(key.into(), value);
    }

    pub fn describe(&self) -> Vec<Value> {
        let described = self.series.iter().enumerate().filter(|(_, series)| !series.is_skipped);
        described.map(|(index, series)| series.describe(index)).collect()
    }

    /// Removes and returns the records since the last call as (series, value), for a replay.
    pub fn take_values(&mut self) -> Vec<(u32, f64)> {
        let bytes = std::mem::take(&mut self.writer.buffer);
        self.writer.buffer = Vec::with_capacity(BUFFER_RECORDS * RECORD_BYTES);
        let records = bytes.chunks_exact(RECORD_BYTES);
        let word = |record: &[u8], at: usize| record[at..at + 8].try_into().unwrap_or([0; 8]);
        records
            .map(|record| {
                let series = u64::from_le_bytes(word(record, 8)) as u32;
                (series, f64::from_le_bytes(word(record, 16)))
            })
            .collect()
    }

    pub fn writer(&mut self) -> &mut RecordWriter {
        &mut self.writer
    }
}

/// Collects records in a preallocated buffer. A thread writes them, so the sampler never waits for
/// a disk.
pub struct RecordWriter {
    buffer: Vec<u8>,
    full: Option<SyncSender<Vec<u8>>>,
    empty: Receiver<Vec<u8>>,
    thread: Option<thread::JoinHandle<io::Result<()>>>,
    pub records: u64,
    /// The number of records dropped because the disk was too slow and all buffers were full.
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
                // After the sampler has ended, no thread needs the buffer.
                let _ = emptied.try_send(buffer);
            }
            Ok(())
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

    /// Creates a writer without a file; the records remain in its buffer.
    pub fn in_memory() -> RecordWriter {
        RecordWriter {
            buffer: Vec::with_capacity(BUFFER_RECORDS * RECORD_BYTES),
            full: None,
            empty: sync_channel(0).1,
            thread: None,
            records: 0,
            dropped: 0,
        }
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

    /// Gives the buffer to the writing thread if it is at least half full. Waking that thread
    /// costs as much CPU time as a tick, and half a buffer is room for records while it writes.
    pub fn hand_over_half_full(&mut self) {
        if self.buffer.len() >= self.buffer.capacity() / 2 {
            self.hand_over();
        }
    }

    /// Exchanges the buffer for an empty buffer of the writing thread, if there is one.
    fn hand_over(&mut self) {
        let Some(full) = &self.full else { return };
        if self.buffer.is_empty() {
            return;
        }
        let Ok(empty) = self.empty.try_recv() else { return };
        let buffer = std::mem::replace(&mut self.buffer, empty);
        if let Err(TrySendError::Full(buffer) | TrySendError::Disconnected(buffer)) =
            full.try_send(buffer)
        {
            // Disconnected: a write failed, and `finish` returns its error. Full is impossible
            // because the channel has room for all buffers.
            self.buffer = buffer;
        }
    }

    /// Writes the remaining records. The caller syncs the file with the run's other files.
    pub fn finish(&mut self) -> io::Result<()> {
        if let Some(full) = self.full.take() {
            // The sampling has ended, so this may wait. The thread's result has the error of a
            // failed send.
            let _ = full.send(std::mem::take(&mut self.buffer));
        }
        match self.thread.take() {
            Some(thread) => thread
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("the sample file's thread panicked"))),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;

    fn unwrapping(wrap: Option<u64>, raws: &[u64]) -> (Vec<Option<f64>>, bool) {
        let manifest = &registry::find("fake").unwrap().manifest;
        let mut series = Series {
            manifest,
            quantity: &manifest.quantities[0],
            is_skipped: false,
            scope: String::new(),
            subject: String::new(),
            info: Map::new(),
            wrap,
            last_raw: None,
            offset: 0,
            last_value: f64::MIN,
            lost: 0,
            samples: 0,
        };
        let values: Vec<Option<f64>> = raws.iter().map(|raw| series.unwrapped(*raw)).collect();
        let known: Vec<f64> = values.iter().flatten().copied().collect();
        let monotonic = known.windows(2).all(|pair| pair[0] <= pair[1]);
        (values, monotonic)
    }

    #[test]
    fn a_wrap_adds_the_range_each_time() {
        let (values, monotonic) = unwrapping(Some(100), &[90, 10, 95, 95, 5]);
        // 10 to 95 is an increase; 95 to 5 is the second wrap.
        let expected = [90.0, 110.0, 195.0, 195.0, 205.0].map(Some);
        assert_eq!(values, expected);
        assert!(monotonic);
    }

    #[test]
    fn a_counter_that_is_set_back_loses_one_reading_and_never_goes_negative() {
        let (values, monotonic) = unwrapping(None, &[1000, 1500, 3, 10]);
        assert_eq!(values, [Some(1000.0), Some(1500.0), None, Some(1507.0)]);
        assert!(monotonic);
    }

    #[test]
    fn a_fall_of_less_than_half_a_range_is_a_reset_even_where_wraps_are_known() {
        let (values, _) = unwrapping(Some(1000), &[400, 300, 350]);
        assert_eq!(values, [Some(400.0), None, Some(450.0)]);
    }

    #[test]
    fn a_series_of_the_whole_machine_has_no_records_if_another_agent_reads_it() {
        let manifest = &registry::find("fake").unwrap().manifest;
        let own = Place { scope: "interface", ..Place::of("own") };
        let mut samples = Samples::new(RecordWriter::in_memory());
        samples.machine_wide = false;
        samples.declare_for(manifest);
        let quantity = manifest.quantities[0].name;
        let skipped = samples.declare(quantity, Place::of("package-0"));
        let kept = samples.declare(quantity, own);
        for series in [skipped, kept] {
            samples.put(series, 1.0);
            samples.counter(series, 2);
        }
        let described = samples.describe();
        assert_eq!(described.len(), 1);
        assert_eq!((&described[0]["series"], &described[0]["subject"]), (&json!(1), &json!("own")));
        assert_eq!(samples.take_values(), [(1, 1.0), (1, 2.0)]);
    }

    #[test]
    fn the_writing_thread_gets_a_buffer_only_once_it_is_half_full() {
        let path = std::env::temp_dir().join(format!("wattwire-half-{}", std::process::id()));
        let mut writer = RecordWriter::create(&path).unwrap();
        for index in 0..BUFFER_RECORDS / 2 {
            writer.hand_over_half_full();
            assert_eq!(writer.buffer.len(), index * RECORD_BYTES);
            writer.record(0, 0, 0, 0.0);
        }
        writer.hand_over_half_full();
        assert!(writer.buffer.is_empty());
        writer.finish().unwrap();
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn the_file_holds_every_record_in_order_after_its_header() {
        let path = std::env::temp_dir().join(format!("wattwire-records-{}", std::process::id()));
        let mut writer = RecordWriter::create(&path).unwrap();
        let count = 3 * BUFFER_RECORDS as u64 + 7;
        for index in 0..count {
            writer.record(index as i64, 5, 9, index as f64);
            if index % 1000 == 0 {
                while index > 0 && writer.buffer.len() > BUFFER_RECORDS * RECORD_BYTES / 2 {
                    writer.hand_over();
                }
            }
        }
        writer.finish().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(writer.records, count);
        assert_eq!(writer.dropped, 0);
        assert_eq!(&bytes[..12], b"WWSAMPLE\x01\0\x18\0");
        assert_eq!(bytes.len() as u64, 64 + count * RECORD_BYTES as u64);
        let last = &bytes[bytes.len() - RECORD_BYTES..];
        assert_eq!(last[..8], (count as i64 - 1).to_le_bytes());
        assert_eq!(last[8..12], 5u32.to_le_bytes());
        assert_eq!(last[12..16], 9u32.to_le_bytes());
        assert_eq!(last[16..], (count as f64 - 1.0).to_le_bytes());
    }
}
