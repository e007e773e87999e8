//! The node's spec, state and records, and its lines LISTENING, READY and DONE.

use std::fmt::Display;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU64};
use std::sync::{Mutex, MutexGuard};

use serde_json::{json, Value};

use crate::clock::{now_ns, sleep_until_ns, SECOND_NS};
use crate::constants::{flag, is_sender, Kind, GUARANTEE_WORDS, ROLES, UNKNOWN_NS, UNKNOWN_PEER};
use crate::dialogue::Dialogue;
use crate::error::{failed, Error, SendFailed};
use crate::message::{Buffer, Form};
use crate::recorder::{Record, Recorder};
use crate::schedule::{Open, Schedule};
use crate::spec::Spec;

/// Maximum wait between two checks for STOP.
pub(crate) const NAP_NS: i64 = 100_000_000;

#[derive(Debug, Clone, Default)]
pub struct Library {
    pub name: String,
    pub version: String,
    pub build: String,
}

/// A guarantee with the values of C-07.
#[derive(Debug, Clone, Copy)]
pub struct Guarantee {
    pub delivery: &'static str,
    pub ordering: &'static str,
    pub overload: &'static str,
}

/// The fields of READY (C-07). None: the middleware cannot tell.
#[derive(Debug, Clone)]
pub struct Ready {
    pub matched: Option<usize>,
    pub library: Library,
    /// The values in force that the library reports, and other known values. The kit adds the
    /// requested values of the other settings.
    pub effective: Vec<(&'static str, Value)>,
    pub guarantee: Guarantee,
    pub discovery_ns: Option<i64>,
}

#[derive(Default)]
pub(crate) struct Counts {
    pub sent: u64,
    pub received: u64,
    pub foreign: u64,
    pub corrupt: u64,
    pub probes: u64,
}

/// The state that changes in the window. Every event locks it once.
pub(crate) struct State {
    pub schedule: Schedule,
    pub recorder: Recorder,
    pub counts: Counts,
    /// The counter after the last arrival's (C-21).
    pub expected: u64,
    pub first_begin_ns: i64,
    pub last_end_ns: i64,
    pub arrival_ns: i64,
}

impl State {
    #[inline]
    pub fn update_first_begin(&mut self, begin_ns: i64) {
        if self.first_begin_ns == UNKNOWN_NS {
            self.first_begin_ns = begin_ns;
        }
    }
}

/// A node. All threads of the process may share it.
pub struct Kit {
    pub(crate) spec: Spec,
    pub(crate) dialogue: &'static Dialogue,
    process_start_ns: i64,
    pub(crate) sender: bool,
    pub(crate) form: Form,
    pub(crate) kind: Kind,
    peer: u16,
    pub(crate) times: Times,
    encoding: String,
    native: bool,
    overlaps: bool,
    feedback_count: i64,
    /// Sequence and begin of the open blocking call.
    pub(crate) current_seq: AtomicU64,
    pub(crate) current_begin_ns: AtomicI64,
    state: Mutex<State>,
    /// The reason why the last probe was not sent.
    pub(crate) reason: Mutex<String>,
}

/// Times of the spec, read once so that messages need no look-up.
pub(crate) struct Times {
    pub period_ns: i64,
    pub phase_ns: i64,
    pub timeout_ns: i64,
    pub spin_ns: i64,
    pub quiet_ns: i64,
    pub linger_ns: i64,
}

impl Times {
    fn new(spec: &Spec) -> Self {
        Times {
            period_ns: spec.integer("period_ns"),
            phase_ns: spec.integer("phase_ns"),
            timeout_ns: spec.integer("timeout_ns"),
            spin_ns: spec.integer("spin_ns"),
            quiet_ns: spec.integer("quiet_ms") * 1_000_000,
            linger_ns: spec.integer("linger_ms") * 1_000_000,
        }
    }
}

impl Kit {
    pub(crate) fn new(
        spec: Spec,
        dialogue: &'static Dialogue,
        process_start_ns: i64,
    ) -> Result<Self, Error> {
        let sender = is_sender(spec.string("role"));
        let peers = spec.integers("peers.nodes");
        let this_node = [spec.integer("node")];
        let open_loop = spec.string("loop") == "open";
        let state = State {
            schedule: Schedule::new(&spec),
            recorder: Recorder::new(spec.integer("record.capacity") as usize)?,
            counts: Counts::default(),
            expected: 0,
            first_begin_ns: UNKNOWN_NS,
            last_end_ns: UNKNOWN_NS,
            arrival_ns: 0,
        };
        Ok(Kit {
            dialogue,
            process_start_ns,
            sender,
            form: Form::new(&spec, if sender { &this_node } else { &peers }),
            kind: match spec.string("pattern") {
                "topic" | "pipeline" => Kind::Message,
                "action" => Kind::Result,
                _ => Kind::Call,
            },
            peer: if let [only] = peers[..] { only as u16 } else { UNKNOWN_PEER },
            times: Times::new(&spec),
            encoding: spec.string("payload.encoding").into(),
            native: open_loop && spec.string("pacing") == "native",
            overlaps: open_loop && spec.integer("outstanding_max") > 1,
            feedback_count: spec.integer("action.feedback"),
            current_seq: AtomicU64::new(0),
            current_begin_ns: AtomicI64::new(0),
            state: Mutex::new(state),
            reason: Mutex::default(),
            spec,
        })
    }

    pub fn spec(&self) -> &Spec {
        &self.spec
    }
    pub fn string(&self, key: &str) -> &str {
        self.spec.string(key)
    }
    pub fn integer(&self, key: &str) -> i64 {
        self.spec.integer(key)
    }
    pub fn boolean(&self, key: &str) -> bool {
        self.spec.boolean(key)
    }
    pub fn strings(&self, key: &str) -> Vec<&str> {
        self.spec.strings(key)
    }
    pub fn integers(&self, key: &str) -> Vec<i64> {
        self.spec.integers(key)
    }
    /// Returns the encoding of payloads: bytes, text or record.
    pub fn encoding(&self) -> &str {
        &self.encoding
    }
    #[inline]
    pub fn is_native(&self) -> bool {
        self.native
    }
    /// Returns whether several calls may be open at once (C-33).
    pub fn overlaps(&self) -> bool {
        self.overlaps
    }
    /// Returns whether payloads carry a sequence. Short payloads and literals do not.
    #[inline]
    pub fn carries_seq(&self) -> bool {
        self.form.carries_seq()
    }
    pub fn period_ns(&self) -> i64 {
        self.times.period_ns
    }
    pub fn timeout_ns(&self) -> i64 {
        self.times.timeout_ns
    }
    pub fn feedback_count(&self) -> i64 {
        self.feedback_count
    }
    /// Returns a buffer with the fill of this run's payloads. Call this before READY.
    pub fn buffer(&self) -> Buffer {
        self.form.buffer()
    }

    /// Prints LISTENING.
    pub fn listening(&self, endpoints: &[String]) {
        self.dialogue.line("LISTENING", &json!({ "endpoints": endpoints }));
    }

    /// Waits until `count_now` reaches peers.count, and calls `poll(timeout_ns)` in between.
    /// Returns the duration in ns. Fails after ready_timeout_ms.
    pub fn await_peers(
        &self,
        mut count_now: impl FnMut() -> usize,
        mut poll: impl FnMut(i64),
    ) -> Result<i64, Error> {
        let begin_ns = now_ns();
        let (peers, limit_ms) = (self.integer("peers.count"), self.integer("ready_timeout_ms"));
        loop {
            let matched = count_now();
            if matched as i64 >= peers {
                return Ok(now_ns() - begin_ns);
            }
            if now_ns() > self.ready_deadline_ns() {
                return Err(failed(format!(
                    "matched {matched} of {peers} peers within ready_timeout_ms = {limit_ms}; \
                     are they running?"
                )));
            }
            poll(1_000_000);
        }
    }

    /// Returns the error for a message that was not sent or a failed call (C-36). If no probe gets
    /// a reply, the node reports the last reason.
    pub fn not_sent(&self, reason: impl Display) -> SendFailed {
        if self.dialogue.start_ns() == 0 {
            *self.reason.lock().expect("a panic ends the process") = reason.to_string();
        }
        SendFailed
    }

    /// Prints READY. Panics if the guarantee has a value that C-07 does not allow.
    pub fn ready(&self, ready: &Ready) {
        let Guarantee { delivery, ordering, overload } = ready.guarantee;
        let values = [delivery, ordering, overload];
        assert!(
            GUARANTEE_WORDS.iter().zip(values).all(|(allowed, value)| allowed.contains(&value)),
            "guarantee: found {delivery}, {ordering}, {overload}; allowed: the values of C-07"
        );
        let Library { name, version, build } = &ready.library;
        let mut effective = self.spec.settings();
        for (name, value) in &ready.effective {
            effective.insert((*name).into(), value.clone());
        }
        let line = json!({
            "matched": ready.matched,
            "startup_ns": now_ns() - self.process_start_ns,
            "discovery_ns": ready.discovery_ns,
            "library": {"name": name, "version": version, "build": build},
            "effective": effective,
            "guarantee": {"delivery": delivery, "ordering": ordering, "overload": overload},
        });
        self.dialogue.line("READY", &line);
    }

    /// Writes the samples into the folder `out` and prints DONE.
    pub(crate) fn finish(&self, out: &Path) -> Result<(), Error> {
        let state = self.lock();
        let role = ROLES.iter().position(|&role| role == self.string("role"));
        let path = out.join("samples.bin");
        let (node, seed) = (self.integer("node") as u16, self.integer("payload.seed") as u64);
        let written = state.recorder.write(&path, role.unwrap_or_default() as u8, node, seed);
        written.map_err(|error| failed(format!("cannot write {}: {error}", path.display())))?;
        let counts = &state.counts;
        let line = json!({
            "sent": counts.sent,
            "received": counts.received,
            "recorded": state.recorder.recorded(),
            "overflow": state.recorder.overflow(),
            "foreign": counts.foreign,
            "corrupt": counts.corrupt,
            "probes": counts.probes,
        });
        self.dialogue.line("DONE", &line);
        Ok(())
    }

    /// Locks the state. Sets the start of the schedule after GO has arrived.
    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().expect("a panic ends the process");
        if !state.schedule.started() && self.dialogue.start_ns() != 0 {
            state.schedule.start(self.dialogue.start_ns());
        }
        state
    }

    /// Records an event of a message that this node sent.
    #[inline]
    pub(crate) fn record_sent(
        &self,
        state: &mut State,
        open: &Open,
        end_ns: i64,
        (kind, mut flags): (Kind, u8),
    ) {
        if state.schedule.is_warm_up(open.slot.intended_ns) {
            flags |= flag::WARM_UP;
        }
        state.recorder.add(Record {
            seq: open.slot.seq,
            intended_ns: open.slot.intended_ns,
            begin_ns: open.begin_ns,
            end_ns,
            bytes: self.form.length() as u32,
            peer: self.peer,
            kind: kind as u8,
            flags,
        });
    }

    /// Records an event of a message that another node scheduled.
    #[inline]
    pub(crate) fn record_arrived(
        &self,
        state: &mut State,
        seq: u64,
        (begin_ns, end_ns): (i64, i64),
        bytes: usize,
        (kind, mut flags): (Kind, u8),
    ) {
        if state.schedule.is_warm_up(end_ns) {
            flags |= flag::WARM_UP;
        }
        state.recorder.add(Record {
            seq,
            intended_ns: UNKNOWN_NS,
            begin_ns,
            end_ns,
            bytes: bytes as u32,
            peer: if self.sender { self.peer } else { (seq >> 48) as u16 },
            kind: kind as u8,
            flags,
        });
    }

    /// Waits for GO. Returns the window's start, or None if STOP arrived first.
    pub fn wait_go(&self) -> Option<i64> {
        self.dialogue.wait_go_or_stop();
        Some(self.dialogue.start_ns()).filter(|&start_ns| start_ns != 0)
    }

    /// Sleeps until `due_ns`. Returns the last reading of the clock, or None if STOP arrived first.
    pub(crate) fn sleep_until(&self, due_ns: i64) -> Option<i64> {
        let wake_ns = due_ns.saturating_sub(self.times.spin_ns);
        while !self.dialogue.stopped() {
            let mut at_ns = now_ns();
            if at_ns >= wake_ns {
                while at_ns < due_ns {
                    std::hint::spin_loop();
                    at_ns = now_ns();
                }
                return Some(at_ns);
            }
            sleep_until_ns(wake_ns.min(at_ns + SECOND_NS));
        }
        None
    }

    pub(crate) fn ready_deadline_ns(&self) -> i64 {
        self.process_start_ns + self.integer("ready_timeout_ms") * 1_000_000
    }
}
