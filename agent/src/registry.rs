//! The meters of `meters/<name>/`, which `build.rs` compiled into this agent.

use serde_json::{json, Map, Value};

use crate::manifest::{Manifest, Quantity, Tier};
use crate::meter::{Absent, Opened, Tree};

include!(concat!(env!("OUT_DIR"), "/meters.rs"));

/// A compiled meter.
pub struct Entry {
    pub manifest: Manifest,
    pub open: fn(&Tree) -> Result<Opened, Absent>,
}

pub fn find(name: &str) -> Option<&'static Entry> {
    METERS.iter().find(|entry| entry.manifest.name == name)
}

/// Returns the description of each meter for the reply to `hello`.
pub fn describe_all(tree: &Tree) -> Vec<Value> {
    METERS
        .iter()
        .map(|entry| {
            let quantities: Vec<Value> =
                entry.manifest.quantities.iter().map(describe_quantity).collect();
            let (state, reason, grant, info) = match (entry.open)(tree) {
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
