//! Reads the node's specification and checks its keys and JSON types (C-02).

use std::net::Ipv4Addr;
use std::path::Path;

use serde_json::{Map, Value};

use crate::constants::{CONTRACT, KEYS, PIPELINE_KEYS};
use crate::error::Error;
use crate::json_type::Type;

const SETTING: &str = "settings.";
const ALLOWED: &str = "declared.allowed.";

/// A complete specification. Getters panic on a key that does not exist.
#[derive(Debug)]
pub struct Spec {
    values: Map<String, Value>,
}

impl Spec {
    /// Reads the file `path`.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let unreadable = |reason: &dyn std::fmt::Display| {
            Error::bad_spec("--spec", path.display(), format!("a flat JSON object ({reason})"))
        };
        let text = std::fs::read(path).map_err(|error| unreadable(&error))?;
        let values: Map<String, Value> =
            serde_json::from_slice(&text).map_err(|error| unreadable(&error))?;
        let spec = Spec { values };
        if spec.values.get("contract") != Some(&CONTRACT.into()) {
            let found = spec.values.get("contract").map_or("nothing".into(), Value::to_string);
            return Err(Error::bad_spec("contract", found, CONTRACT));
        }
        spec.check_types(&KEYS)?;
        if spec.string("pattern") == "pipeline" {
            spec.check_types(&PIPELINE_KEYS)?;
        }
        spec.check_settings()?;
        spec.check_addresses()?;
        Ok(spec)
    }

    fn check_types(&self, keys: &[(&str, Type)]) -> Result<(), Error> {
        keys.iter().try_for_each(|&(key, kind)| self.check_type(key, kind))
    }

    fn check_type(&self, key: &str, kind: Type) -> Result<(), Error> {
        match self.values.get(key) {
            Some(value) if kind.is_of(value) => Ok(()),
            Some(value) => Err(Error::bad_spec(key, value, kind.describe())),
            None => Err(Error::bad_spec(key, "nothing", kind.describe())),
        }
    }

    /// Returns the names and types of the declared settings.
    fn declared_settings(&self) -> Vec<(&str, Type)> {
        let lists =
            [("string", Type::String), ("integer", Type::Integer), ("boolean", Type::Boolean)];
        let named = |(word, kind): (&str, Type)| {
            let names = self.strings(&format!("declared.{word}_settings"));
            names.into_iter().map(move |name| (name, kind))
        };
        lists.into_iter().flat_map(named).collect()
    }

    /// Returns an error for a key that is not declared, and for a setting that is missing or has
    /// another type.
    fn check_settings(&self) -> Result<(), Error> {
        let settings = self.declared_settings();
        let names: Vec<&str> = settings.iter().map(|&(name, _)| name).collect();
        let is_pipeline = self.string("pattern") == "pipeline";
        for (key, value) in &self.values {
            let setting = key.strip_prefix(SETTING).or_else(|| key.strip_prefix(ALLOWED));
            let is_known = KEYS.iter().any(|(known, _)| known == key)
                || (is_pipeline && PIPELINE_KEYS.iter().any(|(known, _)| known == key))
                || setting.is_some_and(|name| names.contains(&name));
            if !is_known {
                let allowed = format!("only keys of C-02 and the settings {}", names.join(", "));
                return Err(Error::bad_spec(key, value, allowed));
            }
        }
        for (name, kind) in settings {
            self.check_type(&format!("{SETTING}{name}"), kind)?;
            let key = format!("{ALLOWED}{name}");
            let is_list = |value: &Value| {
                value.as_array().is_some_and(|list| list.iter().all(|item| kind.is_of(item)))
            };
            if let Some(value) = self.values.get(&key).filter(|value| !is_list(value)) {
                let allowed = format!("a list, each item {}", kind.describe());
                return Err(Error::bad_spec(&key, value, allowed));
            }
        }
        Ok(())
    }

    /// Returns a reason if the value of a setting is not among its supported values (C-03).
    pub(crate) fn unsupported_setting(&self) -> Option<String> {
        self.declared_settings().into_iter().find_map(|(name, _)| {
            let allowed = self.values.get(&format!("{ALLOWED}{name}"))?;
            let key = format!("{SETTING}{name}");
            let value = self.get(&key);
            let is_allowed = allowed.as_array().is_some_and(|list| list.contains(value));
            (!is_allowed).then(|| format!("{key} {value}; this cell supports {allowed}"))
        })
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
    /// Returns the settings without their prefix.
    pub(crate) fn settings(&self) -> Map<String, Value> {
        let named = self.values.iter();
        named.filter_map(|(k, v)| Some((k.strip_prefix(SETTING)?.into(), v.clone()))).collect()
    }
}
