//! The node's specification: which keys there are and of which JSON type (C-02).

use std::path::Path;

use serde_json::{Map, Value};

use crate::error::Error;

/// The JSON type of a key's value; what it may hold beyond that, the harness has checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    String,
    Integer,
    Boolean,
    Strings,
    Integers,
}

impl Type {
    fn describe(self) -> &'static str {
        match self {
            Type::String => "a string",
            Type::Integer => "an integer",
            Type::Boolean => "true or false",
            Type::Strings => "a list of strings",
            Type::Integers => "a list of integers",
        }
    }

    fn is_of(self, value: &Value) -> bool {
        let each = |fits: fn(&Value) -> bool| value.as_array().is_some_and(|a| a.iter().all(fits));
        match self {
            Type::String => value.is_string(),
            Type::Integer => value.is_i64(),
            Type::Boolean => value.is_boolean(),
            Type::Strings => each(Value::is_string),
            Type::Integers => each(Value::is_i64),
        }
    }
}

/// In the order of the role codes of the sample file's header (C-24).
pub const ROLES: [&str; 8] = [
    "publisher",
    "subscriber",
    "server",
    "client",
    "action_server",
    "action_client",
    "ping",
    "pong",
];

/// Whether a role sends by the schedule.
pub fn is_sender(role: &str) -> bool {
    ["publisher", "client", "action_client", "ping"].contains(&role)
}

const CONTRACT: i64 = 2;
const KEYS: [(&str, Type); 37] = [
    ("contract", Type::Integer),
    ("run", Type::String),
    ("cell", Type::String),
    ("pattern", Type::String),
    ("role", Type::String),
    ("node", Type::Integer),
    ("index", Type::Integer),
    ("peers.nodes", Type::Integers),
    ("peers.count", Type::Integer),
    ("peers.endpoints", Type::Strings),
    ("loop", Type::String),
    ("period_ns", Type::Integer),
    ("phase_ns", Type::Integer),
    ("duration_ns", Type::Integer),
    ("count", Type::Integer),
    ("count_beyond", Type::Integer),
    ("warmup_ns", Type::Integer),
    ("overrun_ns", Type::Integer),
    ("timeout_ns", Type::Integer),
    ("outstanding_max", Type::Integer),
    ("quiet_ms", Type::Integer),
    ("linger_ms", Type::Integer),
    ("ready_timeout_ms", Type::Integer),
    ("pacing", Type::String),
    ("spin_ns", Type::Integer),
    ("payload.bytes", Type::Integer),
    ("payload.encoding", Type::String),
    ("payload.seed", Type::Integer),
    ("payload.literal", Type::String),
    ("reply", Type::String),
    ("reply.literal", Type::String),
    ("verify", Type::String),
    ("action.feedback", Type::Integer),
    ("record.capacity", Type::Integer),
    ("tls.authority", Type::String),
    ("tls.certificate", Type::String),
    ("tls.key", Type::String),
];

/// A specification that has every key. Getters panic on a key that does not exist.
#[derive(Debug)]
pub struct Spec {
    values: Map<String, Value>,
}

impl Spec {
    /// Reads the file `path`; `settings` are the middleware's own keys.
    pub fn read(path: &Path, settings: &[(&str, Type)]) -> Result<Self, Error> {
        let unreadable = |reason: &dyn std::fmt::Display| {
            Error::bad_spec("--spec", path.display(), format!("a flat JSON object ({reason})"))
        };
        let text = std::fs::read(path).map_err(|error| unreadable(&error))?;
        let values: Map<String, Value> =
            serde_json::from_slice(&text).map_err(|error| unreadable(&error))?;
        let own = settings.iter().map(|&(name, kind)| (format!("settings.{name}"), kind));
        let known: Vec<(String, Type)> =
            KEYS.iter().map(|&(key, kind)| (key.into(), kind)).chain(own).collect();
        for (key, kind) in &known {
            let found = values.get(key);
            if !found.is_some_and(|value| kind.is_of(value)) {
                let found = found.map_or("nothing".into(), Value::to_string);
                return Err(Error::bad_spec(key, found, kind.describe()));
            }
        }
        if let Some((key, value)) =
            values.iter().find(|(key, _)| !known.iter().any(|k| k.0 == **key))
        {
            let names: Vec<&str> = settings.iter().map(|&(name, _)| name).collect();
            let allowed = format!("nothing: no such key; known settings: {}", names.join(", "));
            return Err(Error::bad_spec(key, value, allowed));
        }
        let spec = Spec { values };
        match spec.integer("contract") {
            CONTRACT => Ok(spec),
            other => Err(Error::bad_spec("contract", other, CONTRACT)),
        }
    }

    pub fn get(&self, key: &str) -> &Value {
        self.values.get(key).unwrap_or_else(|| panic!("no key {key} in a specification"))
    }
    pub fn string(&self, key: &str) -> &str {
        self.get(key).as_str().unwrap_or_else(|| panic!("{key} is no string"))
    }
    pub fn integer(&self, key: &str) -> i64 {
        self.get(key).as_i64().unwrap_or_else(|| panic!("{key} is no integer"))
    }
    pub fn boolean(&self, key: &str) -> bool {
        self.get(key).as_bool().unwrap_or_else(|| panic!("{key} is no boolean"))
    }
    pub fn strings(&self, key: &str) -> Vec<&str> {
        self.get(key).as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    }
    pub fn integers(&self, key: &str) -> Vec<i64> {
        self.get(key).as_array().into_iter().flatten().filter_map(Value::as_i64).collect()
    }
    /// The settings without their prefix, as READY's `effective` may begin.
    pub fn settings(&self) -> Map<String, Value> {
        let named = self.values.iter();
        named.filter_map(|(k, v)| Some((k.strip_prefix("settings.")?.into(), v.clone()))).collect()
    }
}
