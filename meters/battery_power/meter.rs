//! The power of the batteries in `/sys/class/power_supply` while no other supply is connected.

use serde_json::{json, Map};

use crate::meter::{Absent, Meter, Opened, Place, Samples, SeriesId, Tree, TreeFile};

const FOLDER: &str = "sys/class/power_supply";
/// The end of the model name of a battery whose power is not measured.
const INVENTED: &str = "-invented";
/// Converts µWh to µJ.
const SECONDS_PER_HOUR: f64 = 3600.0;

struct PowerSupply {
    batteries: Vec<Battery>,
    /// The files `online` of all other supplies.
    others: Vec<TreeFile>,
}

struct Battery {
    name: String,
    status: TreeFile,
    power: Power,
    energy: Option<Energy>,
    series: Option<SeriesId>,
    energy_series: Option<SeriesId>,
}

enum Power {
    /// In µW.
    Direct(TreeFile),
    /// In µV and µA.
    Product(TreeFile, TreeFile),
}

enum Energy {
    /// In µWh.
    Direct(TreeFile),
    /// In µAh and µV.
    Product(TreeFile, TreeFile),
}

#[derive(PartialEq)]
enum Status {
    Discharging,
    Other,
    Unread,
}

pub fn open(tree: &Tree) -> Result<Opened, Absent> {
    let names = tree.list(FOLDER).unwrap_or_default();
    let (mut batteries, mut others, mut skipped) = (Vec::new(), Vec::new(), Vec::new());
    for name in names {
        let text = |file: &str| tree.text(&format!("{FOLDER}/{name}/{file}")).unwrap_or_default();
        // The battery of a mouse or a headset does not supply the machine.
        let feeds_machine = text("scope") != "Device" && text("present") != "0";
        match (text("type").as_str(), feeds_machine) {
            ("Battery", true) => match battery(tree, &name) {
                Some(battery) => batteries.push(battery),
                None => skipped.push(name),
            },
            ("Mains" | "USB" | "Wireless" | "UPS", true) => {
                others.extend(tree.open(&format!("{FOLDER}/{name}/online")).ok());
            }
            _ => skipped.push(name),
        }
    }
    if batteries.is_empty() {
        let skipped = if skipped.is_empty() { "none".into() } else { skipped.join(", ") };
        return Err(Absent::because(format!(
            "/{FOLDER} has no battery that supplies this machine and reports its power (other \
             supplies: {skipped})"
        )));
    }
    let mut info = Map::new();
    let names: Vec<&str> = batteries.iter().map(|battery| battery.name.as_str()).collect();
    info.insert("batteries".into(), json!(names));
    info.insert("other_supplies".into(), others.len().into());
    info.insert("skipped".into(), json!(skipped));
    let model = |name: &str| tree.text(&format!("{FOLDER}/{name}/model_name")).unwrap_or_default();
    let invented: Vec<&str> =
        names.iter().copied().filter(|name| model(name).ends_with(INVENTED)).collect();
    if !invented.is_empty() {
        info.insert("invented".into(), json!(invented));
    }
    let note = "unplug the machine; the meter has readings only while a battery discharges";
    info.insert("note".into(), note.into());
    Ok(Opened { meter: Box::new(PowerSupply { batteries, others }), info })
}

fn battery(tree: &Tree, name: &str) -> Option<Battery> {
    let file = |file: &str| tree.open(&format!("{FOLDER}/{name}/{file}")).ok();
    let power = match file("power_now") {
        Some(power) => Power::Direct(power),
        None => Power::Product(file("voltage_now")?, file("current_now")?),
    };
    let energy = match file("energy_now") {
        Some(energy) => Some(Energy::Direct(energy)),
        None => file("charge_now").zip(file("voltage_now")).map(|(q, v)| Energy::Product(q, v)),
    };
    let (status, name) = (file("status")?, name.to_string());
    Some(Battery { name, status, power, energy, series: None, energy_series: None })
}

impl Battery {
    fn status(&self) -> Status {
        let mut buffer = [0u8; 32];
        match self.status.read(&mut buffer).map(|text| text.trim_ascii()) {
            Ok(b"Discharging") => Status::Discharging,
            Ok(_) => Status::Other,
            Err(_) => Status::Unread,
        }
    }

    fn power_uw(&self) -> Option<f64> {
        match &self.power {
            Power::Direct(power) => magnitude(power),
            Power::Product(volt, current) => Some(magnitude(volt)? * magnitude(current)? / 1e6),
        }
    }

    fn energy_uj(&self) -> Option<f64> {
        let hours = match self.energy.as_ref()? {
            Energy::Direct(energy) => magnitude(energy)?,
            Energy::Product(charge, volt) => magnitude(charge)? * magnitude(volt)? / 1e6,
        };
        Some(hours * SECONDS_PER_HOUR)
    }
}

/// Returns the absolute value, because only some drivers report discharge as negative.
fn magnitude(file: &TreeFile) -> Option<f64> {
    let mut buffer = [0u8; 32];
    let text = file.read(&mut buffer).ok()?;
    let value: f64 = std::str::from_utf8(text).ok()?.trim().parse().ok()?;
    Some(value.abs())
}

impl Meter for PowerSupply {
    fn declare(&mut self, samples: &mut Samples) {
        for battery in &mut self.batteries {
            battery.series = Some(samples.declare("power_input", Place::of(&battery.name)));
            let energy = battery.energy.as_ref();
            battery.energy_series =
                energy.map(|_| samples.declare("energy_left", Place::of(&battery.name)));
        }
    }

    fn read(&mut self, samples: &mut Samples) {
        let has_supply = self.others.iter().any(|online| online.number().is_some_and(|on| on > 0));
        let discharging =
            self.batteries.iter().any(|battery| battery.status() == Status::Discharging);
        for battery in &self.batteries {
            let Some(series) = battery.series else { continue };
            samples.begin();
            let power_uw = match battery.status() {
                _ if has_supply || !discharging => None,
                Status::Discharging => battery.power_uw(),
                // Another battery supplies the machine.
                Status::Other => Some(0.0),
                Status::Unread => None,
            };
            match power_uw {
                Some(power_uw) => samples.put(series, power_uw),
                None => samples.lost(series),
            }
            let Some(series) = battery.energy_series else { continue };
            samples.begin();
            match battery.energy_uj() {
                Some(energy_uj) => samples.put(series, energy_uj),
                None => samples.lost(series),
            }
        }
    }
}
