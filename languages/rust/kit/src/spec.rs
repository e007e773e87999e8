//! Reads the node's specification and checks its keys and JSON types (C-02).

use std::net::Ipv4Addr;
use std::path::Path;

use serde_json::{Map, Value};

use crate::constants::{CONTRACT, KEYS, PIPELINE_KEYS};
use crate::error::Error;
use crate::json_type::Type;

/// A complete specification. Getters panic on a key that does not exist.
#[derive(Debug)]
pub struct Spec {
    values: Map<String, Value>,
}

impl Spec {
    /// Reads the file `path`. `settings` are the keys of the middleware.
    pub fn read(path: &Path, settings: &[(&str, Type)]) -> Result<Self, Error> {
        let unreadable = |reason: &dyn std::fmt::Display| {
            Error::bad_spec("--spec", path.display(), format!("a flat JSON object ({reason})"))
        };
        let text = std::fs::read(path).map_err(|error| unreadable(&error))?;
        let values: Map<String, Value> =
            serde_json::from_slice(&text).map_err(|error| unreadable(&error))?;
        let is_pipeline = values.get("pattern").is_some_and(|pattern| pattern == "pipeline");
        let pipeline_keys = PIPELINE_KEYS.iter().filter(|_| is_pipeline);
        let setting_keys = settings.iter().map(|&(name, kind)| (format!("settings.{name}"), kind));
        let keys = KEYS.iter().chain(pipeline_keys).map(|&(key, kind)| (key.to_owned(), kind));
        let known: Vec<(String, Type)> = keys.chain(setting_keys).collect();
        for (key, kind) in &known {
            let value = values.get(key);
            if !value.is_some_and(|value| kind.is_of(value)) {
                let text = value.map_or("nothing".into(), Value::to_string);
                return Err(Error::bad_spec(key, text, kind.describe()));
            }
        }
        if let Some((key, value)) =
            values.iter().find(|(key, _)| !known.iter().any(|k| k.0 == **key))
        {
            let names: Vec<&str> = settings.iter().map(|&(name, _)| name).collect();
            let allowed = format!("only keys of C-02 and the settings {}", names.join(", "));
            return Err(Error::bad_spec(key, value, allowed));
        }
        let spec = Spec { values };
        match spec.integer("contract") {
            CONTRACT => spec.check_addresses().map(|()| spec),
            other => Err(Error::bad_spec("contract", other, CONTRACT)),
        }
    }

    /// Returns an error if the address of the host or of a peer is no IPv4 address (C-38).
    fn check_addresses(&self) -> Result<(), Error> {
        let own = [("host.address", self.string("host.address"))];
        let peers = self.strings("peers.addresses");
        let peers = peers.into_iter().map(|address| ("peers.addresses", address));
        for (key, address) in own.into_iter().chain(peers) {
            if address.parse::<Ipv4Addr>().is_err() {
                return Err(Error::bad_spec(key, address, "an IPv4 address"));
            }
        }
        Ok(())
    }

    pub fn get(&self, key: &str) -> &Value {
        self.values.get(key).unwrap_or_else(|| panic!("specifications have no key {key}"))
    }
    pub fn string(&self, key: &str) -> &str {
        self.get(key).as_str().unwrap_or_else(|| panic!("{key} is not a string"))
    }
    pub fn integer(&self, key: &str) -> i64 {
        self.get(key).as_i64().unwrap_or_else(|| panic!("{key} is not an integer"))
    }
    pub fn boolean(&self, key: &str) -> bool {
        self.get(key).as_bool().unwrap_or_else(|| panic!("{key} is not a boolean"))
    }
    pub fn strings(&self, key: &str) -> Vec<&str> {
        self.get(key).as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    }
    pub fn integers(&self, key: &str) -> Vec<i64> {
        self.get(key).as_array().into_iter().flatten().filter_map(Value::as_i64).collect()
    }
    /// Returns the settings without their prefix, to initialise READY's `effective`.
    pub fn settings(&self) -> Map<String, Value> {
        let named = self.values.iter();
        named.filter_map(|(k, v)| Some((k.strip_prefix("settings.")?.into(), v.clone()))).collect()
    }
}
