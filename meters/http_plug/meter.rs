//! The energy counter of a plug that answers over HTTP: a Shelly of the second generation, or a
//! plug with Tasmota. The plug is only read, never switched.

use serde_json::Value;

use crate::clock;
use crate::meter::{Absent, Fault, OpenedStream, Out, Received, Stream, Tree, Wait};

mod http;

const PERIOD_NS: i64 = 1_000_000_000;
/// A plug may write its counter once per second. Requests at nearly the same time as the writes
/// would get the new value or the one before by chance, so that the energy of a window jumps by
/// that of a second. The first requests are therefore close, until one finds a write; later ones
/// are half a period after a write.
const SEEK_PERIOD_NS: i64 = 200_000_000;
/// A plug that writes less often has long windows, in which a second is small.
const SEEK_NS: i64 = 6_000_000_000;
const UJ_PER_WATT_HOUR: f64 = 3.6e9;
const WATTS_MAX: f64 = 5000.0;
const WATT_HOURS_MAX: f64 = 1e9;
/// A plug that writes its counter once per minute in steps of 1 Wh does not stand still for so long
/// while it states a power that makes several steps.
const STILL_NS: i64 = 150_000_000_000;
const STILL_JOULES: f64 = 7200.0;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Shelly,
    Tasmota,
}

struct Plug {
    kind: Kind,
    host: String,
    path: String,
    /// The deadline of the next request.
    next_ns: i64,
    /// When the search for a write of the counter ends without one. None: no request yet, or it has
    /// ended.
    seeks_until_ns: Option<i64>,
    /// When the answer before came, and its counter in µJ.
    last: Option<(i64, u64)>,
    /// When the counter last changed, or the first answer came.
    changed_ns: i64,
    /// It was remarked that the counter stands still.
    is_still: bool,
    /// The time that the plug stated in its last answer.
    stated_time: Option<String>,
}

/// What an answer of a plug states.
struct Stated {
    energy_uj: u64,
    watts: f64,
    /// A time that sorts as text.
    time: Option<String>,
}

pub fn open(_: &Tree, at: &str) -> Result<OpenedStream, Absent> {
    let (kind, place) = match at.split_once(':') {
        Some(("shelly", place)) => (Kind::Shelly, place),
        Some(("tasmota", place)) => (Kind::Tasmota, place),
        _ => return Err(refusal(at)),
    };
    let (host, channel) = place.split_once('/').unwrap_or((place, "0"));
    let is_host = !host.is_empty() && host.bytes().all(is_in_host);
    let channel: u8 = channel.parse().ok().filter(|_| is_host).ok_or_else(|| refusal(at))?;
    let path = match kind {
        Kind::Shelly => format!("/rpc/Switch.GetStatus?id={channel}"),
        Kind::Tasmota if channel == 0 => "/cm?cmnd=Status%208".into(),
        Kind::Tasmota => return Err(refusal(at)),
    };
    let has_port = host.rfind(':') > host.rfind(']');
    let host = if has_port { host.to_string() } else { format!("{host}:80") };
    let (last, stated_time) = (None, None);
    Ok(OpenedStream::new(Plug {
        kind,
        host,
        path,
        next_ns: 0,
        seeks_until_ns: None,
        last,
        changed_ns: 0,
        is_still: false,
        stated_time,
    }))
}

fn refusal(at: &str) -> Absent {
    Absent::because(format!(
        "found {at:?}; allowed: shelly:HOST[:PORT][/CHANNEL] or tasmota:HOST[:PORT], such as \
         shelly:192.168.1.20. It contains no path, because a path could switch the plug."
    ))
}

fn is_in_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte)
}

impl Stream for Plug {
    fn receive(&mut self, wait: &Wait, answer: &mut Vec<u8>) -> Result<Received, Fault> {
        wait.until(self.next_ns)?;
        let asked_ns = clock::monotonic_ns();
        if self.next_ns == 0 {
            self.next_ns = asked_ns;
            self.seeks_until_ns = Some(asked_ns + SEEK_NS);
        }
        self.seeks_until_ns = self.seeks_until_ns.filter(|until_ns| asked_ns < *until_ns);
        let period_ns = if self.seeks_until_ns.is_some() { SEEK_PERIOD_NS } else { PERIOD_NS };
        // A late request does not move the later ones.
        let missed = (asked_ns - self.next_ns).max(0) / period_ns;
        self.next_ns += (missed + 1) * period_ns;
        http::get(&self.host, &self.path, wait, answer)?;
        let t_ns = clock::monotonic_ns();
        let read_ns = t_ns - asked_ns;
        Ok(Received { t_ns, read_ns, delay_ns: read_ns })
    }

    fn readings(&mut self, answer: &[u8], received: Received, out: &mut Out) -> Result<(), String> {
        let body = http::body(answer).map_err(|text| self.hint(text))?;
        let stated = self.stated(body)?;
        if stated.time < self.stated_time {
            let (time, before) = (stated.time.unwrap_or_default(), self.stated_time.take());
            let before = before.unwrap_or_default();
            self.last = None;
            return Err(format!(
                "the plug's time ran backwards, from {before} to {time}: its clock was set, or it \
                 restarted"
            ));
        }
        self.stated_time = stated.time;
        out.gauge("power_stated", stated.watts * 1e6);
        let t_ns = received.t_ns;
        let Some((last_ns, last_uj)) = self.last.replace((t_ns, stated.energy_uj)) else {
            // It is unknown when the counter reached this value.
            self.changed_ns = t_ns;
            return Ok(());
        };
        if stated.energy_uj < last_uj {
            let joules = |uj: u64| uj as f64 / 1e6;
            let (from, to) = (joules(last_uj), joules(stated.energy_uj));
            out.remark(format!("the counter was reset, from {from:.1} J to {to:.1} J"));
        }
        // Between its steps the counter is behind. A step has come since the answer before.
        if stated.energy_uj != last_uj {
            out.delay(t_ns - last_ns + received.read_ns);
            let is_close = t_ns - last_ns < 2 * SEEK_PERIOD_NS;
            if is_close && self.seeks_until_ns.take().is_some() {
                self.next_ns = (last_ns + t_ns) / 2 + PERIOD_NS / 2;
            }
        }
        if stated.energy_uj != last_uj || stated.watts == 0.0 {
            self.changed_ns = t_ns;
            self.is_still = false;
            out.counter("energy_input", stated.energy_uj);
        }
        let still_ns = t_ns - self.changed_ns;
        let may_remark = still_ns > STILL_NS && !self.is_still;
        if may_remark && stated.watts.abs() * still_ns as f64 / 1e9 > STILL_JOULES {
            self.is_still = true;
            out.remark(format!(
                "the counter stands still, although the plug states {} W",
                stated.watts
            ));
        }
        Ok(())
    }
}

impl Plug {
    fn hint(&self, text: String) -> String {
        match (text.contains(" 404 "), self.kind) {
            (true, Kind::Shelly) => {
                format!("{text}: no Shelly of the second generation; has it Tasmota?")
            }
            (true, Kind::Tasmota) => format!("{text}: no Tasmota; is it a Shelly?"),
            _ => text,
        }
    }

    fn stated(&self, body: &[u8]) -> Result<Stated, String> {
        let document: Value = serde_json::from_slice(body).map_err(|error| {
            let shown = http::excerpt(body);
            match error.is_eof() {
                true => format!("half an answer: {shown}"),
                false => format!("an answer that is no JSON: {shown}"),
            }
        })?;
        let (energy, per_unit_wh, power, time) = match self.kind {
            Kind::Shelly => {
                let energy = &document["aenergy"];
                let time = energy["minute_ts"].as_u64().map(|seconds| format!("{seconds:020}"));
                (&energy["total"], 1.0, &document["apower"], time)
            }
            Kind::Tasmota => {
                let sensors = &document["StatusSNS"];
                let energy = &sensors["ENERGY"];
                let time = sensors["Time"].as_str().map(str::to_string);
                (&energy["Total"], 1000.0, &energy["Power"], time)
            }
        };
        let (energy, watts) = match (energy.as_f64(), power.as_f64()) {
            (Some(energy), Some(watts)) => (energy * per_unit_wh, watts),
            _ => {
                return Err(format!(
                    "an answer without one energy and one power: {energy} and {power}; does the \
                     plug measure, and has it one channel?"
                ))
            }
        };
        if !(0.0..=WATT_HOURS_MAX).contains(&energy) || watts.abs() > WATTS_MAX {
            return Err(format!(
                "an answer with {energy} Wh and {watts} W; allowed: 0 to {WATT_HOURS_MAX} Wh and \
                 at most {WATTS_MAX} W"
            ));
        }
        Ok(Stated { energy_uj: (energy * UJ_PER_WATT_HOUR).round() as u64, watts, time })
    }
}
