//! Meters of tier `stream`: devices outside the machine, which answer when they like.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;

use serde_json::{json, Map, Value};

use crate::clock;
use crate::manifest::Manifest;
use crate::samples::Amount;

/// A device outside the machine. Its methods run in a thread of the device and may wait.
pub trait Stream: Send {
    /// Waits for the next answer, and appends its bytes to `answer`. It ends by itself with an
    /// error once the device is late.
    fn receive(&mut self, wait: &Wait, answer: &mut Vec<u8>) -> Result<Received, Fault>;

    /// Writes the readings of an answer. The error says what the answer contains instead.
    fn readings(&mut self, answer: &[u8], received: Received, out: &mut Out) -> Result<(), String>;

    /// Leaves the device as it was before. It must not wait.
    fn close(&mut self) {}

    /// Returns what is known about the device, for the description of its series.
    fn info(&self) -> Map<String, Value> {
        Map::new()
    }
}

pub struct OpenedStream {
    pub stream: Box<dyn Stream>,
}

impl OpenedStream {
    pub fn new(stream: impl Stream + 'static) -> OpenedStream {
        OpenedStream { stream: Box::new(stream) }
    }
}

/// When an answer came, on CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    pub t_ns: i64,
    /// The duration of the reading, from the request, or from the answer's first byte.
    pub read_ns: i64,
    /// How old the answer may be when it came.
    pub delay_ns: i64,
}

/// The reason why there is no answer.
#[derive(Debug, PartialEq)]
pub enum Fault {
    /// The sampling has ended.
    Stopped,
    Because(String),
}

impl Fault {
    pub fn because(text: impl Into<String>) -> Fault {
        Fault::Because(text.into())
    }
}

/// A value of a device. It is small, because the agent has room for many of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// The index of the device among those of the sampling.
    pub stream: u16,
    /// The index of the quantity in the manifest.
    pub quantity: u16,
    pub t_ns: i64,
    pub read_ns: u32,
    pub amount: Amount,
}

/// Takes the readings of an answer.
pub struct Out<'a> {
    manifest: &'static Manifest,
    stream: u16,
    received: Received,
    taken: &'a mut Taken,
}

/// What an answer contains.
#[derive(Default)]
pub struct Taken {
    pub readings: Vec<Reading>,
    /// What is wrong with the device although the answer is valid.
    pub remarks: Vec<String>,
}

impl Out<'_> {
    /// Writes a raw counter, which the sampler corrects for a reset.
    pub fn counter(&mut self, quantity: &str, raw: u64) {
        self.write(quantity, Amount::Counter(raw));
    }

    pub fn gauge(&mut self, quantity: &str, value: f64) {
        self.write(quantity, Amount::Gauge(value));
    }

    /// States how old the readings may be, if it is not what `receive` returned.
    pub fn delay(&mut self, delay_ns: i64) {
        self.received.delay_ns = delay_ns;
    }

    pub fn remark(&mut self, text: String) {
        self.taken.remarks.push(text);
    }

    fn write(&mut self, quantity: &str, amount: Amount) {
        let mut quantities = self.manifest.quantities.iter();
        let quantity = quantities
            .position(|known| known.name == quantity)
            .unwrap_or_else(|| panic!("{}/meter.toml has no {quantity:?}", self.manifest.name));
        let Received { t_ns, read_ns, .. } = self.received;
        let quantity = quantity as u16;
        let read_ns = read_ns.clamp(0, u32::MAX as i64) as u32;
        let reading = Reading { stream: self.stream, quantity, t_ns, read_ns, amount };
        self.taken.readings.push(reading);
    }
}

/// Lets a device's thread wait until its device is ready, a time has come or the sampling ends.
pub struct Wait {
    closed: UnixStream,
}

impl Wait {
    /// Returns a wait that ends once a byte comes on `closed`.
    pub fn new(closed: UnixStream) -> Wait {
        Wait { closed }
    }

    /// Waits until `fd` has one of `events` of poll(2). Returns false if it has none until
    /// `until_ns`.
    pub fn ready(&self, fd: RawFd, events: i16, until_ns: i64) -> Result<bool, Fault> {
        let entry = |fd, events| libc::pollfd { fd, events, revents: 0 };
        let mut polled = [entry(self.closed.as_raw_fd(), libc::POLLIN), entry(fd, events)];
        loop {
            let left_ns = until_ns - clock::monotonic_ns();
            let wait_ms = (left_ns.max(0) as u64).div_ceil(1_000_000).min(60_000) as i32;
            // SAFETY: `polled` has two entries.
            let count = unsafe { libc::poll(polled.as_mut_ptr(), 2, wait_ms) };
            let error = io::Error::last_os_error();
            match count {
                _ if polled[0].revents != 0 => return Err(Fault::Stopped),
                1.. => return Ok(true),
                0 if left_ns <= 0 => return Ok(false),
                0 => {}
                _ if error.kind() == io::ErrorKind::Interrupted => {}
                _ => return Err(Fault::because(format!("poll: {error}"))),
            }
        }
    }

    /// Waits until a time, or less if the sampling ends.
    pub fn until(&self, until_ns: i64) -> Result<(), Fault> {
        // poll(2) ignores a negative descriptor.
        self.ready(-1, 0, until_ns).map(|_| ())
    }
}

/// Passes an answer to the readings of a stream, and adds how old they may be.
pub fn understand(
    stream: &mut dyn Stream,
    (manifest, index): (&'static Manifest, u16),
    answer: &[u8],
    received: Received,
) -> Result<Taken, String> {
    let mut taken = Taken::default();
    let mut out = Out { manifest, stream: index, received, taken: &mut taken };
    stream.readings(answer, received, &mut out)?;
    if !out.taken.readings.is_empty() {
        out.gauge("delay", out.received.delay_ns as f64);
    }
    Ok(taken)
}

/// Describes readings of a replay as (quantity, amount).
pub fn described(manifest: &Manifest, readings: &[Reading]) -> Vec<Value> {
    let described = readings.iter().map(|reading| {
        let name = manifest.quantities[usize::from(reading.quantity)].name;
        match reading.amount {
            Amount::Counter(raw) => json!({"quantity": name, "counter": raw}),
            Amount::Gauge(value) => json!({"quantity": name, "value": value}),
        }
    });
    described.collect()
}
