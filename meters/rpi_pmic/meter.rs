//! The power of the rails that the power chip of a Raspberry Pi 5 measures. The program `vcgencmd`
//! asks the firmware for them.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use crate::bounded::{Bounded, Controls};
use crate::clock;
use crate::launch::inherited_env;
use crate::lock::locked;
use crate::meter::{Absent, Fault, OpenedStream, Out, Received, Stream, Tree, Wait};
use crate::pump::Sink;

const PROGRAM: &str = "vcgencmd";
const ARGUMENT: &str = "pmic_read_adc";
/// The token of the guard, which names the processes of a reading.
const RUN: &str = "meter";
const PERIOD_NS: i64 = 1_000_000_000;
/// The firmware answers within milliseconds.
const LATE: Duration = Duration::from_secs(2);
/// An answer has 26 lines of about 35 bytes.
const ANSWER_BYTES_MAX: usize = 8 << 10;
const EXCERPT_BYTES: usize = 60;
/// The board's supply has 5 V and 5 A. The core's rail has more current at a lower voltage.
const AMPERES_MAX: f64 = 30.0;
const VOLTS_MAX: f64 = 6.0;
/// The input and the clock's battery, of which the chip measures the voltage only.
const WITHOUT_CURRENT: [&str; 2] = ["EXT5V", "BATT"];

struct Pmic {
    path: String,
    controls: Controls,
    next_ns: i64,
    rails: Vec<String>,
}

/// What the chip measures of a rail.
#[derive(Default)]
struct Rail {
    amperes: Option<f64>,
    volts: Option<f64>,
}

pub fn open(tree: &Tree, at: &str) -> Result<OpenedStream, Absent> {
    // An address must not start any other program.
    let is_program = Path::new(at).file_name().is_some_and(|name| name == PROGRAM);
    if !at.starts_with('/') || at.contains('\0') || !is_program {
        return Err(Absent::because(format!(
            "found {at:?}; allowed: the path of {PROGRAM}, such as /usr/bin/{PROGRAM}"
        )));
    }
    if matches!(tree, Tree::Live) {
        let file = std::fs::metadata(at).map_err(|error| {
            Absent::because(format!(
                "{at}: {error}. Raspberry Pi OS has {PROGRAM} in the package raspi-utils; only a \
                 Raspberry Pi 5 measures its rails."
            ))
        })?;
        if !file.is_file() || file.permissions().mode() & 0o111 == 0 {
            return Err(Absent::because(format!("{at} is no program that can be executed")));
        }
    }
    let (path, controls) = (at.into(), Controls::default());
    Ok(OpenedStream::new(Pmic { path, controls, next_ns: 0, rails: Vec::new() }))
}

impl Stream for Pmic {
    fn receive(&mut self, wait: &Wait, answer: &mut Vec<u8>) -> Result<Received, Fault> {
        wait.until(self.next_ns)?;
        let asked_ns = clock::monotonic_ns();
        self.next_ns = asked_ns + PERIOD_NS;
        let until = Instant::now() + LATE;
        let order = Bounded {
            argv: vec![self.path.clone(), ARGUMENT.into()],
            env: inherited_env(),
            cwd: "/".into(),
            until,
        };
        let output = Arc::<Mutex<Vec<u8>>>::default();
        let ended = order.run(RUN, &self.controls, [sink(&output), sink(&output)]);
        // The text of the problem contains the address, which a report must not.
        let ended = ended.map_err(|_| match Instant::now() < until {
            true => Fault::because(format!("{PROGRAM} cannot be executed")),
            false => Fault::because(format!("no answer within {} s", LATE.as_secs())),
        })?;
        answer.append(&mut locked(&output));
        if ended.code != Some(0) {
            return Err(Fault::Because(failure(ended.code, answer)));
        }
        let t_ns = clock::monotonic_ns();
        let read_ns = t_ns - asked_ns;
        Ok(Received { t_ns, read_ns, delay_ns: read_ns })
    }

    fn readings(&mut self, answer: &[u8], _: Received, out: &mut Out) -> Result<(), String> {
        let rails = rails_of(answer)?;
        let mut watts = 0.0;
        let mut names = Vec::new();
        for (name, rail) in &rails {
            match (rail.amperes, rail.volts) {
                (Some(amperes), Some(volts)) => {
                    watts += amperes * volts;
                    names.push(name.to_string());
                }
                (None, _) if WITHOUT_CURRENT.contains(name) => {}
                // The sum would be too small.
                (None, _) => return Err(format!("half an answer: {name} has no current")),
                (_, None) => return Err(format!("half an answer: {name} has no voltage")),
            }
        }
        if names.is_empty() {
            return Err(format!("an answer without a current: {}", excerpt(answer)));
        }
        self.rails = names;
        out.gauge("power_rails", watts * 1e6);
        Ok(())
    }

    fn info(&self) -> Map<String, Value> {
        let text = format!("the sum of the rails {}", self.rails.join(", "));
        Map::from_iter([("rails".to_string(), text.into())])
    }
}

fn sink(output: &Arc<Mutex<Vec<u8>>>) -> Sink {
    let output = output.clone();
    Sink::Bytes(Box::new(move |bytes| {
        let mut output = locked(&output);
        let room = ANSWER_BYTES_MAX - output.len();
        output.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }))
}

fn failure(code: Option<i32>, output: &[u8]) -> String {
    let ending = code.map_or("a signal".into(), |code| format!("code {code}"));
    let text = String::from_utf8_lossy(output);
    // What the older and the newer program print without a right to the firmware.
    let has_no_right = ["VCHI initialization failed", "/dev/vcio"].iter().any(|t| text.contains(t));
    let remedy = match has_no_right {
        true => "; is the user in the group video? sudo usermod -aG video $USER, then log in again",
        false => "",
    };
    format!("{PROGRAM} ended with {ending}: {}{remedy}", excerpt(output))
}

/// Returns what an answer states of each rail. Half a line and a value out of range are errors.
fn rails_of(answer: &[u8]) -> Result<BTreeMap<&str, Rail>, String> {
    let text = std::str::from_utf8(answer)
        .map_err(|_| format!("an answer that is no text: {}", excerpt(answer)))?;
    if text.contains("error_msg=") {
        let shown = excerpt(answer);
        return Err(format!("the firmware refuses {ARGUMENT}: {shown}; is it a Raspberry Pi 5?"));
    }
    let mut rails = BTreeMap::<&str, Rail>::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let shown = || excerpt(line.as_bytes());
        let (name, unit, value) =
            reading(line).ok_or_else(|| format!("a line that is no reading: {}", shown()))?;
        let rail = rails.entry(name).or_default();
        let (place, most) = match unit {
            'A' => (&mut rail.amperes, AMPERES_MAX),
            _ => (&mut rail.volts, VOLTS_MAX),
        };
        if !(0.0..=most).contains(&value) {
            return Err(format!("a line with {}; allowed: 0 to {most} {unit}", shown()));
        }
        if place.replace(value).is_some() {
            return Err(format!("a line that comes twice: {}", shown()));
        }
    }
    Ok(rails)
}

/// Returns the rail, the unit and the value of a line such as `VDD_CORE_A current(7)=0.9A`.
fn reading(line: &str) -> Option<(&str, char, f64)> {
    let (name, reading) = line.trim().split_once(' ')?;
    let (rail, kind, unit) = match name.strip_suffix("_A") {
        Some(rail) => (rail, "current(", 'A'),
        None => (name.strip_suffix("_V")?, "volt(", 'V'),
    };
    let (channel, value) = reading.strip_prefix(kind)?.split_once(")=")?;
    channel.parse::<u8>().ok()?;
    Some((rail, unit, value.strip_suffix(unit)?.parse().ok()?))
}

fn excerpt(bytes: &[u8]) -> String {
    let bytes = bytes.trim_ascii();
    format!("\"{}\"", bytes[..bytes.len().min(EXCERPT_BYTES)].escape_ascii())
}
