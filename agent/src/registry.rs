//! The meters of `meters/<name>/`, which `build.rs` compiled into this agent.

use serde_json::{json, Map, Value};

use crate::manifest::{Manifest, Quantity, Tier};
use crate::meter::{Absent, Opened, OpenedStream, Tree};
use crate::protocol::Problem;

include!(concat!(env!("OUT_DIR"), "/meters.rs"));

/// A compiled meter.
pub struct Entry {
    pub manifest: Manifest,
    pub open: Open,
}

pub enum Open {
    Polled(fn(&Tree) -> Result<Opened, Absent>),
    /// The second argument is the address of the device.
    Stream(fn(&Tree, &str) -> Result<OpenedStream, Absent>),
}

impl Entry {
    /// Returns why a stream meter without an address is absent.
    pub fn without_address(&self) -> Absent {
        let Manifest { name, address, .. } = &self.manifest;
        Absent::because(format!(
            "no address; give one with --meter {name}={address}, or in [meters] of a rig"
        ))
    }
}

pub fn find(name: &str) -> Option<&'static Entry> {
    METERS.iter().find(|entry| entry.manifest.name == name)
}

/// Returns the error of an address for a meter that has none.
pub fn no_stream(name: &str) -> Problem {
    let of_stream = METERS.iter().filter(|entry| entry.manifest.tier == Tier::Stream);
    let names: Vec<&str> = of_stream.map(|entry| entry.manifest.name).collect();
    Problem::usage(format!(
        "{name}: found an address; allowed only for meters outside the machine: {}",
        names.join(", ")
    ))
}

/// Returns the description of each meter for the reply to `hello`.
pub fn describe_all(tree: &Tree) -> Vec<Value> {
    METERS
        .iter()
        .map(|entry| {
            let quantities: Vec<Value> =
                entry.manifest.quantities.iter().map(describe_quantity).collect();
            let opened = match entry.open {
                Open::Polled(open) => open(tree),
                Open::Stream(_) => Err(entry.without_address()),
            };
            let (state, reason, grant, info) = match opened {
                Ok(opened) => ("present", String::new(), String::new(), opened.info),
                Err(absent) => ("absent", absent.reason, absent.grant, Map::new()),
            };
            json!({"name": entry.manifest.name, "title": entry.manifest.title,
                   "state": state, "reason": reason, "grant": grant,
                   "tier": format!("{:?}", entry.manifest.tier).to_lowercase(),
                   "default": entry.manifest.default, "quantities": quantities, "info": info})
        })
        .collect()
}

fn describe_quantity(quantity: &Quantity) -> Value {
    json!({"name": quantity.name, "unit": quantity.unit, "scope": quantity.scope,
           "counter": quantity.counter, "kind": quantity.kind, "summary": quantity.summary,
           "wrap": quantity.wrap, "rank": quantity.rank})
}
