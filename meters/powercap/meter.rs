//! Energy counters of `/sys/class/powercap` (Intel and AMD RAPL): packages, parts and the platform.

use std::io;

use serde_json::{json, Map, Value};

use crate::meter::{Absent, Meter, Opened, Place, Samples, SeriesId, Tree, TreeFile};

const FOLDER: &str = "sys/class/powercap";
const GRANT: &str = "sudo chmod a+r /sys/class/powercap/*/energy_uj";
/// The end of the name of a package whose energy follows a law instead of a measurement.
const INVENTED: &str = "-invented";

struct Powercap {
    zones: Vec<Zone>,
}

struct Zone {
    /// The zone's folder, such as `intel-rapl:0:1`.
    folder: String,
    quantity: &'static str,
    subject: String,
    range_uj: Option<u64>,
    energy: TreeFile,
    series: Option<SeriesId>,
}

pub fn open(tree: &Tree) -> Result<Opened, Absent> {
    let names = tree.list(FOLDER).map_err(|_| {
        Absent::because(format!(
            "/{FOLDER} does not exist: the kernel exposes no energy counter (usual in a virtual \
             machine; on hardware: the module intel_rapl_common is missing)"
        ))
    })?;
    let (mut zones, mut denied, mut skipped) = (Vec::<Zone>::new(), Vec::new(), Vec::new());
    let mut folders: Vec<String> = names.into_iter().filter(|name| name.contains(':')).collect();
    // A second interface may expose the same package (`intel-rapl-mmio:0` and `intel-rapl:0`).
    // The sort puts the interface with the shorter name first, which takes precedence.
    folders.sort_by_key(|name| name.find(':'));
    for folder in folders {
        match open_zone(tree, &folder) {
            Ok(zone) if zones.iter().any(|known| known.is_same(&zone)) => skipped.push(folder),
            Ok(zone) => zones.push(zone),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => denied.push(folder),
            Err(_) => skipped.push(folder),
        }
    }
    if zones.is_empty() && !denied.is_empty() {
        return Err(Absent {
            reason: format!(
                "only root may read energy_uj of {} (since Linux 5.10)",
                denied.join(", ")
            ),
            grant: GRANT.into(),
        });
    }
    if zones.is_empty() {
        return Err(Absent::because(format!("/{FOLDER} has no zone with a counter")));
    }
    let mut info = Map::new();
    let subjects: Map<String, Value> =
        zones.iter().map(|zone| (zone.folder.clone(), Value::from(zone.subject.clone()))).collect();
    info.insert("zones".into(), subjects.into());
    info.insert("denied".into(), json!(denied));
    info.insert("skipped".into(), json!(skipped));
    let invented: Vec<&str> =
        zones.iter().map(|zone| zone.subject.as_str()).filter(|s| s.ends_with(INVENTED)).collect();
    if !invented.is_empty() {
        info.insert("invented".into(), json!(invented));
    }
    Ok(Opened { meter: Box::new(Powercap { zones }), info })
}

fn open_zone(tree: &Tree, folder: &str) -> io::Result<Zone> {
    let text = |folder: &str, file: &str| tree.text(&format!("{FOLDER}/{folder}/{file}"));
    let name = text(folder, "name")?;
    let energy = tree.open(&format!("{FOLDER}/{folder}/energy_uj"))?;
    // The file of a zone without a counter can be opened, but reading fails (EIO, ENODATA).
    energy.read(&mut [0u8; 32])?;
    let range = text(folder, "max_energy_range_uj").ok().and_then(|text| text.parse().ok());
    let parent = folder.rsplit_once(':').map(|(parent, _)| parent).filter(|p| p.contains(':'));
    let (quantity, subject) = match parent.map(|parent| text(parent, "name")) {
        Some(Ok(package)) => ("energy_part", format!("{package}/{name}")),
        _ if name.starts_with("psys") => ("energy_platform", name),
        _ if name.starts_with("package") => ("energy", name),
        _ => ("energy_part", name),
    };
    let folder = folder.to_string();
    Ok(Zone { folder, quantity, subject, range_uj: range, energy, series: None })
}

impl Zone {
    fn is_same(&self, other: &Zone) -> bool {
        self.quantity == other.quantity && self.subject == other.subject
    }
}

impl Meter for Powercap {
    fn declare(&mut self, samples: &mut Samples) {
        for zone in &mut self.zones {
            let mut info = Map::new();
            info.insert("zone".into(), zone.folder.as_str().into());
            let place = Place { wrap: zone.range_uj, info, ..Place::of(&zone.subject) };
            zone.series = Some(samples.declare(zone.quantity, place));
        }
    }

    fn read(&mut self, samples: &mut Samples) {
        for zone in &self.zones {
            let Some(series) = zone.series else { continue };
            samples.begin();
            match zone.energy.number() {
                Some(raw) => samples.counter(series, raw),
                None => samples.lost(series),
            }
        }
    }
}
