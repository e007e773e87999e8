//! Compiles every folder `meters/*` that has both a `meter.toml` and a `meter.rs` into the agent:
//! those of this repository and those below the roots in WATTWIRE_PATH. An invalid manifest stops
//! the build with an error that names its path, the value and the allowed values.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    title: String,
    #[allow(dead_code)] // used only by the catalogue
    summary: String,
    tier: String,
    default: bool,
    /// Values of scope `machine` belong to the network namespace of the agent.
    #[serde(default)]
    per_network_namespace: bool,
    /// An example of an address, of a meter of tier `stream`.
    address: Option<String>,
    #[allow(dead_code)] // used only by the catalogue
    window_s: Option<f64>,
    #[allow(dead_code)] // used only by the catalogue
    class: Option<String>,
    quantity: Vec<Quantity>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Quantity {
    name: String,
    unit: String,
    scope: String,
    counter: bool,
    kind: String,
    summary: String,
    wrap: Option<String>,
    #[allow(dead_code)] // used only by the catalogue's forecasts
    step_ns: Option<u64>,
    rank: Option<u32>,
}

const STREAM: &str = "stream";
const TIERS: [&str; 4] = ["tick", "second", "edge", STREAM];
/// The quantity of a stream meter that states how old its readings may be.
const DELAY: &str = "delay";
const UNITS: [&str; 8] = ["ns", "bytes", "uj", "uw", "celsius", "hz", "share", "count"];
const SCOPES: [&str; 7] = ["machine", "package", "cpu", "gpu", "process", "interface", "harness"];
const KINDS: [&str; 3] = ["measured", "estimate", "bound"];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let folders = meter_folders();
    let mut modules = String::new();
    let mut entries = String::new();
    let mut ranked = BTreeMap::new();
    for (index, folder) in folders.iter().enumerate() {
        println!("cargo:rerun-if-changed={}", folder.display());
        let source = fs::canonicalize(folder.join("meter.rs")).expect("exists");
        writeln!(modules, "#[path = {source:?}]\nmod meter_{index};").expect("to a string");
        entries.push_str(&entry(index, folder, &mut ranked));
    }
    let text = format!("{modules}\npub static METERS: &[Entry] = &[\n{entries}];\n");
    let out = PathBuf::from(env::var("OUT_DIR").expect("set by cargo"));
    fs::write(out.join("meters.rs"), text).expect("cargo's own folder is writable");
}

/// Returns the folders of all meters, sorted by name. If two roots have a meter of the same name,
/// the first root takes precedence, as in the catalogue: WATTWIRE_PATH, then this repository.
fn meter_folders() -> Vec<PathBuf> {
    println!("cargo:rerun-if-env-changed=WATTWIRE_PATH");
    let agent = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let search_path = env::var("WATTWIRE_PATH").unwrap_or_default();
    let mut roots: Vec<PathBuf> =
        search_path.split(':').filter(|root| !root.is_empty()).map(PathBuf::from).collect();
    roots.push(agent.join(".."));
    let mut folders_by_name = BTreeMap::new();
    for meters in roots.iter().map(|root| root.join("meters")).filter(|folder| folder.is_dir()) {
        println!("cargo:rerun-if-changed={}", meters.display());
        let entries =
            fs::read_dir(&meters).unwrap_or_else(|error| panic!("{}: {error}", meters.display()));
        for folder in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            if folder.join("meter.toml").exists() && folder.join("meter.rs").exists() {
                let name = folder.file_name().expect("an entry of a folder").to_owned();
                folders_by_name.entry(name).or_insert(folder);
            }
        }
    }
    folders_by_name.into_values().collect()
}

/// Ranks, each with the quantity that has it.
type Ranked = BTreeMap<u32, String>;

fn entry(index: usize, folder: &Path, ranked: &mut Ranked) -> String {
    let path = folder.join("meter.toml");
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let manifest: Manifest =
        toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let name = folder.file_name().expect("a folder").to_string_lossy();
    check(&path, "tier", &manifest.tier, &TIERS);
    let tier = match manifest.tier.as_str() {
        "tick" => "Tick",
        "second" => "Second",
        STREAM => "Stream",
        _ => "Edge",
    };
    check_stream(&path, &manifest);
    let mut quantities = String::new();
    for quantity in &manifest.quantity {
        check(&path, "unit", &quantity.unit, &UNITS);
        check(&path, "scope", &quantity.scope, &SCOPES);
        check(&path, "kind", &quantity.kind, &KINDS);
        check_rank(&path, quantity, ranked);
        let Quantity { name, unit, scope, counter, kind, summary, wrap, rank, .. } = quantity;
        writeln!(
            quantities,
            "Quantity {{ name: {name:?}, unit: {unit:?}, scope: {scope:?}, counter: {counter}, \
             kind: {kind:?}, summary: {summary:?}, wrap: {wrap:?}, rank: {rank:?} }},"
        )
        .expect("to a string");
    }
    let open = if manifest.tier == STREAM { "Stream" } else { "Polled" };
    format!(
        "Entry {{ manifest: Manifest {{ name: {name:?}, title: {:?}, tier: Tier::{tier}, \
         default: {}, per_network_namespace: {}, address: {:?}, quantities: &[{quantities}] }}, \
         open: Open::{open}(meter_{index}::open) }},\n",
        manifest.title,
        manifest.default,
        manifest.per_network_namespace,
        manifest.address.unwrap_or_default()
    )
}

/// Panics if a meter of tier `stream` does not state how it is addressed and how old its readings
/// may be, or if another meter has an address.
fn check_stream(path: &Path, manifest: &Manifest) {
    let is_stream = manifest.tier == STREAM;
    let has_delay = manifest.quantity.iter().any(|quantity| {
        let Quantity { name, unit, counter, kind, .. } = quantity;
        (name.as_str(), unit.as_str(), *counter, kind.as_str()) == (DELAY, "ns", false, "bound")
    });
    let states_device =
        manifest.address.is_some() && manifest.window_s.is_some() && manifest.class.is_some();
    if is_stream && !(states_device && has_delay && !manifest.default) {
        panic!(
            "{}: tier \"{STREAM}\": needed: address, window_s, class, default = false, and a \
             quantity {DELAY:?} that is a gauge in ns of kind \"bound\"",
            path.display()
        );
    }
    let of_device =
        [manifest.address.is_some(), manifest.window_s.is_some(), manifest.class.is_some()];
    if !is_stream && of_device.contains(&true) {
        panic!(
            "{}: found address, window_s or class with tier {:?}; allowed only with tier \
             \"{STREAM}\"",
            path.display(),
            manifest.tier
        );
    }
}

/// Panics if a quantity with a rank is not a measured energy counter or power gauge, or if another
/// quantity has the same rank. The rank makes a quantity an energy source, and decides between
/// sources.
fn check_rank(path: &Path, quantity: &Quantity, ranked: &mut Ranked) {
    let Quantity { name, unit, counter, kind, rank, .. } = quantity;
    let is_energy = matches!((unit.as_str(), counter), ("uj", true) | ("uw", false));
    if rank.is_some() && !(is_energy && kind == "measured") {
        panic!(
            "{}: {name}: rank: found on a quantity with unit {unit:?}, counter = {counter}, kind \
             {kind:?}; allowed only with kind \"measured\", on a counter in uj or a gauge in uw",
            path.display()
        );
    }
    let Some(rank) = *rank else { return };
    let place = format!("{}: {name}", path.display());
    if let Some(other) = ranked.insert(rank, place.clone()) {
        panic!("{place}: rank: found {rank}, which {other} has too; choose another rank");
    }
}

fn check(path: &Path, key: &str, value: &str, allowed: &[&str]) {
    if !allowed.contains(&value) {
        panic!("{}: {key}: found {value:?}; allowed: {}", path.display(), allowed.join(", "));
    }
}
