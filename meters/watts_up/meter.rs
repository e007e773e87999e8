//! The power that a Watts Up? Pro sends once per second over its serial line.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value};

use crate::clock;
use crate::meter::{Absent, Fault, OpenedStream, Out, Received, Stream, Tree, Wait};

mod serial;

use serial::Serial;

/// Starts external logging at an interval of 1 s: the meter sends each record at once.
const START: &[u8] = b"#L,W,3,E,,1;";
const STOP: &[u8] = b"#L,W,0;";
const ASK_INTERVAL: &[u8] = b"#S,R,0;";
const DATA: &[u8] = b"#d,";
const INTERVAL: &[u8] = b"#s,";
const INTERVAL_NS: i64 = 1_000_000_000;
/// A record comes each second. A meter that is busy with its display is late by less than that.
const LATE_NS: i64 = 3 * INTERVAL_NS;
/// The meter answers within a few milliseconds, but while it logs, records come first.
const ANSWER_NS: i64 = 1_500_000_000;
const FIELDS: usize = 18;
/// A record has at most 110 bytes.
const RECORD_BYTES_MAX: usize = 256;
/// In the units of the record: 0.1 W, 0.1 V and 1 mA.
const WATTS_MAX: u32 = 40_000;
const VOLTS_MAX: u32 = 3_000;
const MILLIAMPERES_MAX: u32 = 20_000;
const EXCERPT_BYTES: usize = 40;

/// Whether this agent has waited for records of a meter that nobody had started.
static HAS_LISTENED: AtomicBool = AtomicBool::new(false);

struct WattsUp {
    path: String,
    serial: Option<Serial>,
    is_logging: bool,
    /// START was sent to the meter, which may be logging although a fault came after it.
    has_started: bool,
    /// Bytes that have come after the last record, and the time of the first of them.
    bytes: Vec<u8>,
    first_ns: i64,
    last_ns: i64,
    /// The meter's own interval in s, which `close` sets again.
    interval_before_s: Option<u32>,
    /// The meter was sending when it was opened: another program left it so.
    was_logging: bool,
}

pub fn open(tree: &Tree, at: &str) -> Result<OpenedStream, Absent> {
    if !at.starts_with('/') || at.contains('\0') {
        return Err(Absent::because(format!(
            "found {at:?}; allowed: the path of a serial device, such as /dev/ttyUSB0"
        )));
    }
    let serial = match tree {
        Tree::Live => Some(Serial::open(at)?),
        Tree::Replay(_) => None,
    };
    Ok(OpenedStream::new(WattsUp {
        path: at.into(),
        serial,
        is_logging: false,
        has_started: false,
        bytes: Vec::with_capacity(2 * RECORD_BYTES_MAX),
        first_ns: 0,
        last_ns: 0,
        interval_before_s: None,
        was_logging: false,
    }))
}

impl WattsUp {
    /// Asks for the interval that the meter has, and starts its logging.
    fn start(&mut self, wait: &Wait) -> Result<(), Fault> {
        if self.serial.is_none() {
            let opened = Serial::open(&self.path);
            // The reason contains the address, which a report must not.
            let opened = opened.map_err(|_| Fault::because("cannot be opened again"))?;
            self.serial = Some(opened);
        }
        self.bytes.clear();
        // Once per agent, because it costs a second. A later sampling follows one of this agent.
        if !HAS_LISTENED.swap(true, Ordering::Relaxed) {
            let until_ns = clock::monotonic_ns() + INTERVAL_NS + INTERVAL_NS / 5;
            self.was_logging = self.awaits(DATA, wait, until_ns)?.is_some();
        }
        if self.interval_before_s.is_none() {
            self.send(ASK_INTERVAL)?;
            let until_ns = clock::monotonic_ns() + ANSWER_NS;
            let record = self.awaits(INTERVAL, wait, until_ns)?.unwrap_or_default();
            let fields = fields_of(&record).unwrap_or_default();
            self.interval_before_s = fields.get(1).and_then(|field| field.parse().ok());
        }
        self.has_started = true;
        self.send(START)?;
        self.is_logging = true;
        Ok(())
    }

    /// Returns the next record that begins with `kind`; None if none comes until `until_ns`.
    fn awaits(
        &mut self,
        kind: &[u8],
        wait: &Wait,
        until_ns: i64,
    ) -> Result<Option<Vec<u8>>, Fault> {
        while let Some(record) = self.next_record(wait, until_ns)? {
            if record.trim_ascii().starts_with(kind) {
                return Ok(Some(record));
            }
            // Other records may come without an end.
            if clock::monotonic_ns() >= until_ns {
                break;
            }
        }
        Ok(None)
    }

    fn send(&mut self, command: &[u8]) -> Result<(), Fault> {
        match &self.serial {
            Some(serial) => serial.write(command).map_err(|error| self.gone(&error)),
            None => Ok(()),
        }
    }

    fn gone(&self, error: &std::io::Error) -> Fault {
        Fault::because(format!("{error}; is the meter unplugged?"))
    }

    /// Returns the next record, or the bytes before one that are none. None: nothing until
    /// `until_ns`.
    fn next_record(&mut self, wait: &Wait, until_ns: i64) -> Result<Option<Vec<u8>>, Fault> {
        loop {
            if let Some(length) = record_length(&self.bytes) {
                return Ok(Some(self.bytes.drain(..length).collect()));
            }
            let Some(serial) = &self.serial else { return Ok(None) };
            if !wait.ready(serial.descriptor(), libc::POLLIN, until_ns)? {
                return Ok(None);
            }
            let mut buffer = [0u8; RECORD_BYTES_MAX];
            match serial.read(&mut buffer) {
                Ok(0) => {
                    let error = std::io::Error::from_raw_os_error(libc::EIO);
                    return Err(self.gone(&error));
                }
                Ok(length) => {
                    self.last_ns = clock::monotonic_ns();
                    if self.bytes.is_empty() {
                        self.first_ns = self.last_ns;
                    }
                    self.bytes.extend_from_slice(&buffer[..length]);
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(self.gone(&error)),
            }
        }
    }

    fn receive_record(&mut self, wait: &Wait, answer: &mut Vec<u8>) -> Result<Received, Fault> {
        if !self.is_logging {
            self.start(wait)?;
        }
        let until_ns = clock::monotonic_ns() + LATE_NS;
        match self.next_record(wait, until_ns)? {
            Some(record) => answer.extend(record),
            None => {
                let rest = match self.bytes.is_empty() {
                    true => "nothing came".into(),
                    false => format!("found {}", excerpt(&self.bytes)),
                };
                let late_s = LATE_NS / 1_000_000_000;
                return Err(Fault::because(format!(
                    "no record within {late_s} s: {rest}; is it a Watts Up?, and is it on?"
                )));
            }
        }
        let read_ns = self.last_ns - self.first_ns;
        // Bytes of the next record have come together with this one's last byte.
        self.first_ns = self.last_ns;
        // If this thread was late, later records have come too. Each is an interval younger.
        let queued = self.bytes.iter().filter(|byte| **byte == b';').count() as i64;
        let delay_ns = (1 + queued) * INTERVAL_NS + read_ns;
        // Different times keep the records in their order.
        Ok(Received { t_ns: self.last_ns - queued, read_ns, delay_ns })
    }
}

impl Stream for WattsUp {
    fn receive(&mut self, wait: &Wait, answer: &mut Vec<u8>) -> Result<Received, Fault> {
        let received = self.receive_record(wait, answer);
        if matches!(received, Err(Fault::Because(_))) {
            // The device is opened again, because it may have been plugged in again.
            self.is_logging = false;
            self.serial = None;
        }
        received
    }

    fn readings(&mut self, answer: &[u8], _: Received, out: &mut Out) -> Result<(), String> {
        let record = answer.trim_ascii();
        if record.starts_with(b"#") && record.ends_with(b";") && !record.starts_with(DATA) {
            return Ok(()); // an answer to a command
        }
        if !record.starts_with(DATA) {
            return Err(format!("noise on the line: {}", excerpt(record)));
        }
        let tenth_watts = watts_of(record)?;
        out.gauge("power_input", f64::from(tenth_watts) * 1e5);
        Ok(())
    }

    fn close(&mut self) {
        if self.has_started {
            // The device may be gone, and then there is nothing to end.
            if self.serial.is_none() {
                self.serial = Serial::open(&self.path).ok();
            }
            let _ = self.send(STOP);
            if let Some(interval_s) = self.interval_before_s.filter(|interval_s| *interval_s != 1) {
                let _ = self.send(format!("#S,W,2,,{interval_s};").as_bytes());
            }
        }
        self.serial = None;
    }

    fn info(&self) -> Map<String, Value> {
        let mut info = Map::new();
        if self.was_logging {
            let text = "the meter was sending already: a program that was killed, or another one";
            info.insert("was_logging".into(), text.into());
        }
        info
    }
}

/// Returns the length of the first record, or of the bytes before it that are none.
fn record_length(bytes: &[u8]) -> Option<usize> {
    let begin = bytes.iter().position(|byte| *byte == b'#');
    let blank = bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    match begin {
        // White space between records belongs to the record after it.
        Some(begin) if begin > blank => Some(begin),
        Some(begin) => {
            let rest = &bytes[begin + 1..];
            let end = rest.iter().position(|byte| matches!(byte, b';' | b'#'));
            match end {
                Some(end) if rest[end] == b';' => Some(begin + end + 2),
                Some(end) => Some(begin + end + 1),
                None => (bytes.len() > RECORD_BYTES_MAX).then_some(bytes.len()),
            }
        }
        None => (bytes.len() > RECORD_BYTES_MAX).then_some(bytes.len()),
    }
}

/// Returns the fields of a record after its command, subcommand and count, if the count is right.
fn fields_of(record: &[u8]) -> Result<Vec<String>, String> {
    let text = String::from_utf8_lossy(record);
    let Some(whole) = text.trim().strip_suffix(';') else {
        let fields = text.split(',').count().saturating_sub(3);
        return Err(format!("half a record, with {fields} fields and no end"));
    };
    let words: Vec<&str> = whole.split(',').map(str::trim).collect();
    let fields: Vec<String> = words.iter().skip(3).map(|word| word.to_string()).collect();
    match words.get(2).and_then(|word| word.parse::<usize>().ok()) {
        Some(count) if count == fields.len() => Ok(fields),
        _ => Err(format!(
            "a record with {} fields that states {}",
            fields.len(),
            words.get(2).unwrap_or(&"no number")
        )),
    }
}

/// Returns the power of a record in 0.1 W. A line may parse by chance, so all fields are checked.
fn watts_of(record: &[u8]) -> Result<u32, String> {
    let fields = fields_of(record)?;
    if fields.len() != FIELDS {
        return Err(format!("a record with {} fields; allowed: {FIELDS}", fields.len()));
    }
    // The meter writes _ for a field that is switched off.
    let numbers = fields.iter().map(|field| match field.as_str() {
        "_" => Ok(None),
        field => field.parse::<u32>().map(Some).map_err(|_| field),
    });
    let numbers: Vec<Option<u32>> = numbers
        .collect::<Result<_, _>>()
        .map_err(|field| format!("a record with the field {}", excerpt(field.as_bytes())))?;
    let watts = numbers[0].ok_or("a record without a power: the meter's field W is off")?;
    let (volts, milliamperes) = (numbers[1].unwrap_or(0), numbers[2].unwrap_or(0));
    if watts > WATTS_MAX || volts > VOLTS_MAX || milliamperes > MILLIAMPERES_MAX {
        return Err(format!(
            "a record with {} W, {} V and {} A; allowed: at most {} W, {} V and {} A",
            f64::from(watts) / 10.0,
            f64::from(volts) / 10.0,
            f64::from(milliamperes) / 1000.0,
            WATTS_MAX / 10,
            VOLTS_MAX / 10,
            MILLIAMPERES_MAX / 1000
        ));
    }
    Ok(watts)
}

fn excerpt(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(EXCERPT_BYTES)];
    format!("\"{}\"", shown.escape_ascii())
}
