//! Energy and power channels of `/sys/class/hwmon`: counters, power, and voltage times current.

use std::collections::BTreeSet;
use std::io;

use serde_json::{json, Map, Value};

use crate::meter::{Absent, Meter, Opened, Place, Samples, SeriesId, Tree, TreeFile};

const FOLDER: &str = "sys/class/hwmon";
/// The file in which users list the channels that supply the complete machine, one per line.
const INPUTS: &str = "etc/wattwire/hwmon-input";
const GRANT: &str = "sudo chmod a+r /sys/class/hwmon/hwmon*/energy*_input";
/// Labels of rails that supply a complete board, from the vendors' documentation (README.md).
const INPUT_LABELS: [&str; 2] = ["VDD_IN", "POM_5V_IN"];
/// ACPI's power meter measures the power of the complete machine.
const INPUT_CHIPS: [&str; 1] = ["power_meter"];
/// Chips whose voltage N and current N belong to the same channel (kernel documentation), with the
/// number of their channels.
const PAIRED_CHIPS: [(&str, u32); 1] = [("ina3221", 3)];

struct Hwmon {
    channels: Vec<Channel>,
}

struct Channel {
    subject: String,
    quantity: &'static str,
    /// Names of the channel's files, for the series' info.
    from: String,
    source: Source,
    series: Option<SeriesId>,
}

enum Source {
    /// In µJ.
    Energy(TreeFile),
    /// In µW.
    Power(TreeFile),
    /// In mV and mA; the product is in µW.
    Product(TreeFile, TreeFile),
}

/// Channels that the meter cannot use.
#[derive(Default)]
struct Unusable {
    denied: Vec<String>,
    disabled: Vec<String>,
    unreadable: Vec<String>,
}

/// A chip during the search for its channels.
struct Chip<'a> {
    tree: &'a Tree,
    folder: String,
    chip: String,
    /// The chip's name, with a number if several chips have it.
    name: String,
    files: BTreeSet<String>,
}

pub fn open(tree: &Tree) -> Result<Opened, Absent> {
    let names = tree.list(FOLDER).map_err(|_| {
        Absent::because(format!("/{FOLDER} does not exist: the kernel exposes no sensors"))
    })?;
    let listed = tree.text(INPUTS).unwrap_or_default();
    let inputs: Vec<&str> = listed.lines().map(str::trim).collect();
    let (mut channels, mut unusable) = (Vec::<Channel>::new(), Unusable::default());
    let mut chips: Vec<String> = Vec::new();
    for name in in_order(names) {
        let folder = format!("{FOLDER}/{name}");
        let Ok(chip) = tree.text(&format!("{folder}/name")) else { continue };
        chips.push(chip.clone());
        let number = chips.iter().filter(|other| **other == chip).count();
        let name = if number == 1 { chip.clone() } else { format!("{chip}.{number}") };
        let files = tree.list(&folder).unwrap_or_default();
        let chip = Chip { tree, folder, chip, name, files };
        for mut channel in chip.channels(&inputs, &mut unusable) {
            // Boards give unused rails the same label, such as `NC`.
            if channels.iter().any(|known| known.subject == channel.subject) {
                channel.subject = format!("{} ({})", channel.subject, channel.from);
            }
            channels.push(channel);
        }
    }
    if channels.is_empty() {
        return Err(absent(&unusable));
    }
    let quantities: Map<String, Value> =
        channels.iter().map(|channel| (channel.subject.clone(), channel.quantity.into())).collect();
    let mut info = Map::new();
    info.insert("channels".into(), quantities.into());
    info.insert("denied".into(), json!(unusable.denied));
    info.insert("disabled".into(), json!(unusable.disabled));
    info.insert("unreadable".into(), json!(unusable.unreadable));
    Ok(Opened { meter: Box::new(Hwmon { channels }), info })
}

fn absent(unusable: &Unusable) -> Absent {
    if !unusable.denied.is_empty() {
        let reason = format!("only root may read {}", unusable.denied.join(", "));
        return Absent { reason, grant: GRANT.into() };
    }
    let rest = [&unusable.disabled[..], &unusable.unreadable[..]].concat();
    Absent::because(match rest.is_empty() {
        true => format!("no chip below /{FOLDER} has an energy or power channel"),
        false => format!("all channels are disabled or have no value: {}", rest.join(", ")),
    })
}

/// Sorts hwmon2 before hwmon10, which keeps the numbers of chips with the same name stable.
fn in_order(names: BTreeSet<String>) -> Vec<String> {
    let mut names: Vec<String> = names.into_iter().collect();
    names.sort_by_key(|name| {
        name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(u32::MAX)
    });
    names
}

impl Chip<'_> {
    fn channels(&self, inputs: &[&str], unusable: &mut Unusable) -> Vec<Channel> {
        let mut channels: Vec<Channel> = Vec::new();
        for (prefix, suffixes) in [("energy", &["input"][..]), ("power", &["input", "average"])] {
            for number in self.numbers(prefix) {
                let suffix = suffixes
                    .iter()
                    .find(|suffix| self.files.contains(&format!("{prefix}{number}_{suffix}")));
                let Some(suffix) = suffix else { continue };
                let file = format!("{prefix}{number}_{suffix}");
                let label = self.label(prefix, number);
                let opened = self.open(&[(prefix, number)], &[&file], unusable);
                let source = opened.map(|mut files| match prefix {
                    "energy" => Source::Energy(files.remove(0)),
                    _ => Source::Power(files.remove(0)),
                });
                channels.extend(source.map(|source| self.channel(label, file, source, inputs)));
            }
        }
        // If the chip reports power, a product would duplicate it.
        let reports_power =
            channels.iter().any(|channel| matches!(channel.source, Source::Power(_)));
        if !reports_power {
            channels.extend(self.products(inputs, unusable));
        }
        channels
    }

    /// Returns channels of voltage times current, for known pairs.
    fn products(&self, inputs: &[&str], unusable: &mut Unusable) -> Vec<Channel> {
        let mut channels = Vec::new();
        for current in self.numbers("curr") {
            let Some((volt, label)) = self.voltage_of(current) else { continue };
            let files = [format!("in{volt}_input"), format!("curr{current}_input")];
            if !files.iter().all(|file| self.files.contains(file)) {
                continue;
            }
            let names: Vec<&str> = files.iter().map(String::as_str).collect();
            let Some(mut opened) = self.open(&[("in", volt), ("curr", current)], &names, unusable)
            else {
                continue;
            };
            let amperes = opened.remove(1);
            let source = Source::Product(opened.remove(0), amperes);
            channels.push(self.channel(label, files.join(" x "), source, inputs));
        }
        channels
    }

    /// Returns the voltage that belongs to a current, by the chip's documentation or by the labels.
    fn voltage_of(&self, current: u32) -> Option<(u32, String)> {
        let paired = PAIRED_CHIPS.iter().find(|(chip, _)| *chip == self.chip);
        if let Some((_, last)) = paired {
            return (current <= *last).then(|| (current, self.label("in", current)));
        }
        let current_label = self.label_file("curr", current)?;
        self.numbers("in").into_iter().find_map(|volt| {
            let label = self.label_file("in", volt)?;
            let rail = common_rail(&label, &current_label)?.to_string();
            Some((volt, rail))
        })
    }

    /// Opens the files of an enabled channel. Records a channel that is disabled or not readable.
    fn open(
        &self,
        parts: &[(&str, u32)],
        files: &[&str],
        unusable: &mut Unusable,
    ) -> Option<Vec<TreeFile>> {
        let description = format!("{}/{}", self.name, files.join(" x "));
        let is_off = parts.iter().any(|(prefix, number)| {
            self.text(&format!("{prefix}{number}_enable")).is_some_and(|text| text == "0")
        });
        if is_off {
            unusable.disabled.push(description);
            return None;
        }
        let mut opened = Vec::new();
        for file in files {
            let result = self.tree.open(&format!("{}/{file}", self.folder)).and_then(|file| {
                // The file of a disabled channel can be opened, but reading fails (ENODATA).
                file.read(&mut [0u8; 32])?;
                Ok(file)
            });
            match result {
                Ok(file) => opened.push(file),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    unusable.denied.push(description);
                    return None;
                }
                Err(_) => {
                    unusable.unreadable.push(description);
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

    /// Returns the numbers N of the files `<prefix>N_…`.
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

    fn label_file(&self, prefix: &str, number: u32) -> Option<String> {
        self.text(&format!("{prefix}{number}_label")).filter(|label| !label.is_empty())
    }

    fn label(&self, prefix: &str, number: u32) -> String {
        self.label_file(prefix, number).unwrap_or_else(|| format!("{prefix}{number}"))
    }
}

/// Returns the common rail of a voltage's and a current's labels, such as `5V` for two equal labels
/// or `core` for `Vcore` and `Icore`.
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

/// Current and power may be negative because of reverse flow or noise around 0.
fn signed(file: &TreeFile) -> Option<f64> {
    let mut buffer = [0u8; 32];
    let text = file.read(&mut buffer).ok()?;
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}
