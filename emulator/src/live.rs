//! The emulator on the wire: one thread that reads the devices, waits for due frames and writes
//! them. It ends when standard input closes, and its devices end with it.

use std::io::{self, BufRead, Write};
use std::os::fd::RawFd;
use std::rc::Rc;

use crate::capture::Capture;
use crate::emulation::{record, Arrival, Delivery, Emulation};
use crate::log::{Fate, Log, LogFile, NO_PORT};
use crate::profile::{Port, Profile, Tap};
use crate::switch::Switch;
use crate::tap::{self, Device};

const FRAME_BYTES_MAX: usize = 65_536;
const MARK_BYTES: usize = 8;
/// Frames that are read from one device before due frames are written again.
const BATCH_FRAMES: usize = 16;
const FLUSH_EVERY_NS: u64 = 500_000_000;
const NS_PER_S: u64 = 1_000_000_000;
const PRIORITY: i32 = 40;

struct Live {
    devices: Vec<Option<Device>>,
    emulation: Emulation<Rc<[u8]>>,
    switch: Switch,
    log: Log,
    capture: Option<Capture>,
    buffer: Vec<u8>,
    /// The beginning of a command whose line has not ended.
    commands: String,
}

pub fn run(profile: &Profile, log: LogFile) -> io::Result<()> {
    let tap = |port: &Port| -> io::Result<Tap> {
        port.tap.clone().ok_or_else(|| io::Error::other(format!("port {}: no tap", port.name)))
    };
    let taps: Vec<Tap> = profile.ports.iter().map(tap).collect::<io::Result<_>>()?;
    let devices = tap::create_all(&taps)?;
    let log = log.start(); // before the priority, which threads inherit
    let capture = profile.capture.as_deref().map(Capture::start).transpose()?;
    let priority = become_real_time();
    let mut live = Live {
        devices: devices.into_iter().map(Some).collect(),
        emulation: Emulation::new(profile),
        switch: Switch::new(profile.ports.len()),
        log,
        capture,
        buffer: vec![0; FRAME_BYTES_MAX],
        commands: String::new(),
    };
    let mut out = io::stdout();
    writeln!(out, "{{\"ready\": true, \"scheduler\": \"{priority}\"}}")?;
    out.flush()?;
    live.until_input_ends()?;
    live.log_rest();
    live.capture.map_or(Ok(()), Capture::close)?;
    live.log.close()
}

/// Ask for SCHED_FIFO, and return the scheduler in use. Users without the permission keep theirs.
fn become_real_time() -> &'static str {
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = PRIORITY;
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) };
    if result == 0 {
        "SCHED_FIFO"
    } else {
        "SCHED_OTHER"
    }
}

fn now_ns() -> u64 {
    let mut time: libc::timespec = unsafe { std::mem::zeroed() };
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * NS_PER_S + time.tv_nsec as u64
}

impl Live {
    fn until_input_ends(&mut self) -> io::Result<()> {
        let mut flush_at_ns = now_ns() + FLUSH_EVERY_NS;
        loop {
            self.write_due();
            let now = now_ns();
            if now >= flush_at_ns {
                self.log.flush();
                flush_at_ns = now + FLUSH_EVERY_NS;
            }
            let wake_ns = self.emulation.next_ns().map_or(flush_at_ns, |due| due.min(flush_at_ns));
            let ready = self.wait(wake_ns.saturating_sub(now))?;
            if ready[0] && !self.obey()? {
                return Ok(());
            }
            for port in 0..self.devices.len() {
                if ready[port + 1] {
                    self.read_some(port);
                }
            }
        }
    }

    /// Wait for input or a time; return whether standard input and each device are readable.
    fn wait(&self, timeout_ns: u64) -> io::Result<Vec<bool>> {
        let descriptors = std::iter::once(libc::STDIN_FILENO).chain(
            self.devices.iter().map(|device| device.as_ref().map_or(-1, Device::descriptor)),
        );
        let mut polled: Vec<libc::pollfd> = descriptors
            .map(|fd: RawFd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 })
            .collect();
        let timeout = libc::timespec {
            tv_sec: (timeout_ns / NS_PER_S) as libc::time_t,
            tv_nsec: (timeout_ns % NS_PER_S) as libc::c_long,
        };
        let count = polled.len() as libc::nfds_t;
        let result = unsafe { libc::ppoll(polled.as_mut_ptr(), count, &timeout, std::ptr::null()) };
        let error = io::Error::last_os_error();
        if result < 0 && error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
        Ok(polled.iter().map(|entry| result > 0 && entry.revents != 0).collect())
    }

    /// Obey the commands that have arrived; return false at the end of the input.
    fn obey(&mut self) -> io::Result<bool> {
        let mut input = io::stdin().lock();
        let arrived = input.fill_buf()?;
        let count = arrived.len();
        self.commands.push_str(&String::from_utf8_lossy(arrived));
        input.consume(count);
        while let Some((line, rest)) = self.commands.split_once('\n') {
            let start = line.strip_prefix("start ").and_then(|time| time.parse().ok());
            let Some(start_ns) = start else {
                return Err(io::Error::other(format!("found {line:?}; allowed: start NS")));
            };
            self.emulation.start(start_ns);
            self.commands = rest.to_owned();
        }
        Ok(count > 0)
    }

    fn read_some(&mut self, port: usize) {
        for _ in 0..BATCH_FRAMES {
            let Some(device) = &mut self.devices[port] else { return };
            match device.read(&mut self.buffer) {
                Ok(size) => self.take(port, size),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                Err(_) => {
                    self.devices[port] = None; // its namespace has gone
                    return;
                }
            }
        }
    }

    fn take(&mut self, port: usize, size: usize) {
        let frame: Rc<[u8]> = self.buffer[..size].into();
        let in_ns = now_ns();
        if let Some(capture) = &mut self.capture {
            capture.keep(&frame, in_ns);
        }
        let arrival = Arrival { in_ns, size_bytes: size as u32, mark: mark(&frame), from: port };
        let receivers = self.switch.receivers(port, &frame);
        let log = &mut self.log;
        if receivers == 0 {
            return log.write(&record(arrival, NO_PORT, Fate::NotWritten, 0, 0));
        }
        self.emulation.arrive(arrival, receivers, frame, &mut |record| log.write(&record));
    }

    fn write_due(&mut self) {
        let log = &mut self.log;
        loop {
            let due = self.emulation.due(now_ns(), &mut |record| log.write(&record));
            let Some(delivery) = due else { return };
            let device = self.devices[delivery.to].as_mut();
            let is_written = device.is_some_and(|device| device.write(&delivery.frame).is_ok());
            log_delivery(log, &delivery, is_written.then(now_ns));
        }
    }

    /// Log the frames that are under way at the end.
    fn log_rest(&mut self) {
        let log = &mut self.log;
        loop {
            let rest = self.emulation.due(u64::MAX, &mut |record| log.write(&record));
            let Some(delivery) = rest else { return };
            log_delivery(log, &delivery, None);
        }
    }
}

fn log_delivery(log: &mut Log, delivery: &Delivery<Rc<[u8]>>, out_ns: Option<u64>) {
    let fate = if out_ns.is_some() { Fate::Delivered } else { Fate::NotWritten };
    let to = delivery.to as u8;
    log.write(&record(delivery.arrival, to, fate, delivery.planned_ns, out_ns.unwrap_or(0)));
}

fn mark(frame: &[u8]) -> u64 {
    let end = frame.len().checked_sub(MARK_BYTES).map(|from| &frame[from..]);
    end.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}
