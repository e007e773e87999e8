//! Energy and power channels of `/sys/class/hwmon`: counters, power, and voltage times current.

use std::collections::BTreeSet;
use std::io;

use serde_json::{json, Map, Value};

use crate::meter::{Absent, Meter, Opened, Place, Samples, SeriesId, Tree, TreeFile};

const FOLDER: &str = "sys/class/hwmon";
/// Where who knows the wiring names the channels that feed the whole machine, one a line.
const INPUTS: &str = "etc/wattwire/hwmon-input";
const GRANT: &str = "sudo chmod a+r /sys/class/hwmon/hwmon*/energy*_input";
/// Labels of rails that feed a whole board, by the makers' documentation (README.md).
const INPUT_LABELS: [&str; 2] = ["VDD_IN", "POM_5V_IN"];
/// ACPI's power meter measures what the whole machine draws.
const INPUT_CHIPS: [&str; 1] = ["power_meter"];
/// Chips whose voltage N and current N are of one channel by the kernel's documentation.
const PAIRED_CHIPS: [(&str, u32); 1] = [("ina3221", 3)];

struct Hwmon {
    channels: Vec<Channel>,
}

struct Channel {
    subject: String,
    quantity: &'static str,
    /// Which files it is read from, for the series' info.
    from: String,
    source: Source,
    series: Option<SeriesId>,
}

enum Source {
    /// µJ.
    Energy(TreeFile),
    /// µW.
    Power(TreeFile),
    /// mV and mA: their product is µW.
    Product(TreeFile, TreeFile),
}

/// What was found and could not be used.
#[derive(Default)]
struct Left {
    denied: Vec<String>,
    disabled: Vec<String>,
    unreadable: Vec<String>,
}

/// One chip while its channels are looked for.
struct Chip<'a> {
    tree: &'a Tree,
    folder: String,
    chip: String,
    /// Its name, with a number where several chips are called so.
    name: String,
    files: BTreeSet<String>,
}

pub fn open(tree: &Tree) -> Result<Opened, Absent> {
    let names = tree.list(FOLDER).map_err(|_| {
        Absent::because(format!("/{FOLDER} is not there: the kernel shows no sensors"))
    })?;
    let listed = tree.text(INPUTS).unwrap_or_default();
    let inputs: Vec<&str> = listed.lines().map(str::trim).collect();
    let (mut channels, mut left) = (Vec::<Channel>::new(), Left::default());
    let mut seen: Vec<String> = Vec::new();
    for name in in_order(names) {
        let folder = format!("{FOLDER}/{name}");
        let Ok(chip) = tree.text(&format!("{folder}/name")) else { continue };
        seen.push(chip.clone());
        let same = seen.iter().filter(|other| **other == chip).count();
        let name = if same == 1 { chip.clone() } else { format!("{chip}.{same}") };
        let files = tree.list(&folder).unwrap_or_default();
        let chip = Chip { tree, folder, chip, name, files };
        for mut channel in chip.channels(&inputs, &mut left) {
            // Boards label unused rails alike: the second `NC` is a channel of its own.
            if channels.iter().any(|known| known.subject == channel.subject) {
                channel.subject = format!("{} ({})", channel.subject, channel.from);
            }
            channels.push(channel);
        }
    }
    if channels.is_empty() {
        return Err(absent(&left));
    }
    let shown: Map<String, Value> =
        channels.iter().map(|channel| (channel.subject.clone(), channel.quantity.into())).collect();
    let mut info = Map::new();
    info.insert("channels".into(), shown.into());
    info.insert("denied".into(), json!(left.denied));
    info.insert("disabled".into(), json!(left.disabled));
    info.insert("unreadable".into(), json!(left.unreadable));
    Ok(Opened { meter: Box::new(Hwmon { channels }), info })
}

fn absent(left: &Left) -> Absent {
    if !left.denied.is_empty() {
        let reason = format!("{} may be read by root only", left.denied.join(", "));
        return Absent { reason, grant: GRANT.into() };
    }
    let rest = [&left.disabled[..], &left.unreadable[..]].concat();
    Absent::because(match rest.is_empty() {
        true => format!("no chip below /{FOLDER} has a channel of energy or power"),
        false => format!("channels that are disabled or give no value: {}", rest.join(", ")),
    })
}

/// hwmon2 before hwmon10, so that the numbers of chips that are called the same stay.
fn in_order(names: BTreeSet<String>) -> Vec<String> {
    let mut names: Vec<String> = names.into_iter().collect();
    names.sort_by_key(|name| {
        name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(u32::MAX)
    });
    names
}

impl Chip<'_> {
    fn channels(&self, inputs: &[&str], left: &mut Left) -> Vec<Channel> {
        let mut channels: Vec<Channel> = Vec::new();
        for (prefix, suffixes) in [("energy", &["input"][..]), ("power", &["input", "average"])] {
            for number in self.numbers(prefix) {
                let found = suffixes
                    .iter()
                    .find(|suffix| self.files.contains(&format!("{prefix}{number}_{suffix}")));
                let Some(suffix) = found else { continue };
                let file = format!("{prefix}{number}_{suffix}");
                let label = self.label(prefix, number);
                let opened = self.open(&[(prefix, number)], &[&file], left);
                let source = opened.map(|mut files| match prefix {
                    "energy" => Source::Energy(files.remove(0)),
                    _ => Source::Power(files.remove(0)),
                });
                channels.extend(source.map(|source| self.channel(label, file, source, inputs)));
            }
        }
        // Where the chip states power itself, multiplying would state it a second time.
        let states_power = channels.iter().any(|one| matches!(one.source, Source::Power(_)));
        if !states_power {
            channels.extend(self.products(inputs, left));
        }
        channels
    }

    /// Voltage times current, where it is known that both are of one channel.
    fn products(&self, inputs: &[&str], left: &mut Left) -> Vec<Channel> {
        let mut channels = Vec::new();
        for current in self.numbers("curr") {
            let Some((volt, label)) = self.voltage_of(current) else { continue };
            let files = [format!("in{volt}_input"), format!("curr{current}_input")];
            if !files.iter().all(|file| self.files.contains(file)) {
                continue;
            }
            let names: Vec<&str> = files.iter().map(String::as_str).collect();
            let Some(mut opened) = self.open(&[("in", volt), ("curr", current)], &names, left)
            else {
                continue;
            };
            let amperes = opened.remove(1);
            let source = Source::Product(opened.remove(0), amperes);
            channels.push(self.channel(label, files.join(" x "), source, inputs));
        }
        channels
    }

    /// The voltage that belongs to a current: by the chip's documentation, or by their labels.
    fn voltage_of(&self, current: u32) -> Option<(u32, String)> {
        let paired = PAIRED_CHIPS.iter().find(|(chip, _)| *chip == self.chip);
        if let Some((_, last)) = paired {
            return (current <= *last).then(|| (current, self.label("in", current)));
        }
        let own = self.own_label("curr", current)?;
        self.numbers("in").into_iter().find_map(|volt| {
            let label = self.own_label("in", volt)?;
            let rail = common_rail(&label, &own)?.to_string();
            Some((volt, rail))
        })
    }

    /// Opens files of channels that are switched on; what fails is noted.
    fn open(
        &self,
        parts: &[(&str, u32)],
        files: &[&str],
        left: &mut Left,
    ) -> Option<Vec<TreeFile>> {
        let shown = format!("{}/{}", self.name, files.join(" x "));
        let is_off = parts.iter().any(|(prefix, number)| {
            self.text(&format!("{prefix}{number}_enable")).is_some_and(|text| text == "0")
        });
        if is_off {
            left.disabled.push(shown);
            return None;
        }
        let mut opened = Vec::new();
        for file in files {
            let found = self.tree.open(&format!("{}/{file}", self.folder)).and_then(|file| {
                // Some channels open and then refuse to be read (ENODATA while switched off).
                file.read(&mut [0u8; 32])?;
                Ok(file)
            });
            match found {
                Ok(file) => opened.push(file),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    left.denied.push(shown);
                    return None;
                }
                Err(_) => {
                    left.unreadable.push(shown);
                    return None;
                }
            }
        }
        Some(opened)
    }

    fn channel(&self, label: String, from: String, source: Source, inputs: &[&str]) -> Channel {
        let subject = format!("{}/{label}", self.name);
        let is_input = INPUT_CHIPS.contains(&self.chip.as_str())
            || INPUT_LABELS.contains(&label.as_str())
            || inputs.contains(&subject.as_str());
        let is_socket = self.chip == "amd_energy" && label.starts_with("Esocket");
        let quantity = match (&source, is_input, is_socket) {
            (Source::Energy(_), true, _) => "energy_input",
            (Source::Energy(_), false, true) => "energy",
            (Source::Energy(_), false, false) => "energy_part",
            (_, true, _) => "power_input",
            (_, false, _) => "power_part",
        };
        Channel { subject, quantity, from, source, series: None }
    }

    /// The numbers N of the files `<prefix>N_…`.
    fn numbers(&self, prefix: &str) -> BTreeSet<u32> {
        let number = |file: &String| {
            let (number, _) = file.strip_prefix(prefix)?.split_once('_')?;
            number.parse().ok()
        };
        self.files.iter().filter_map(number).collect()
    }

    fn text(&self, file: &str) -> Option<String> {
        self.tree.text(&format!("{}/{file}", self.folder)).ok()
    }

    fn own_label(&self, prefix: &str, number: u32) -> Option<String> {
        self.text(&format!("{prefix}{number}_label")).filter(|label| !label.is_empty())
    }

    fn label(&self, prefix: &str, number: u32) -> String {
        self.own_label(prefix, number).unwrap_or_else(|| format!("{prefix}{number}"))
    }
}

/// The rail that a voltage's and a current's label both name: the same label, or `Vcore`/`Icore`.
fn common_rail<'a>(volt: &'a str, current: &'a str) -> Option<&'a str> {
    if volt == current {
        return Some(volt);
    }
    let (of_volt, of_current) = (volt.strip_prefix(['V', 'v'])?, current.strip_prefix(['I', 'i'])?);
    (of_volt == of_current && !of_volt.is_empty()).then_some(of_volt)
}

impl Meter for Hwmon {
    fn declare(&mut self, samples: &mut Samples) {
        for channel in &mut self.channels {
            let mut info = Map::new();
            info.insert("from".into(), channel.from.as_str().into());
            let place = Place { info, ..Place::of(&channel.subject) };
            channel.series = Some(samples.declare(channel.quantity, place));
        }
    }

    fn read(&mut self, samples: &mut Samples) {
        for channel in &self.channels {
            let Some(series) = channel.series else { continue };
            samples.begin();
            match &channel.source {
                Source::Energy(file) => match file.number() {
                    Some(raw) => samples.counter(series, raw),
                    None => samples.lost(series),
                },
                Source::Power(file) => put(samples, series, signed(file)),
                Source::Product(volt, current) => {
                    let product = signed(volt).zip(signed(current)).map(|(v, i)| v * i);
                    put(samples, series, product);
                }
            }
        }
    }
}

fn put(samples: &mut Samples, series: SeriesId, value: Option<f64>) {
    match value {
        Some(value) => samples.put(series, value),
        None => samples.lost(series),
    }
}

/// Currents and power may be negative: a rail that feeds back, or noise around nothing.
fn signed(file: &TreeFile) -> Option<f64> {
    let mut buffer = [0u8; 32];
    let text = file.read(&mut buffer).ok()?;
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}
