//! The node's specification: which keys there are and what they may hold (C-02).

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};

use crate::error::Error;

/// What a key may hold.
#[derive(Debug, Clone, Copy)]
pub enum Rule {
    String,
    Boolean,
    /// From the first to the second, both allowed.
    Integer(i64, i64),
    OneOf(&'static [&'static str]),
    Run,
    Cell,
    Strings,
    Integers(i64, i64),
}

impl Rule {
    fn describe(&self) -> String {
        match self {
            Rule::String => "a string".into(),
            Rule::Boolean => "true or false".into(),
            Rule::Integer(low, high) => format!("an integer, {low} to {high}"),
            Rule::OneOf(options) => format!("one of {}", options.join(", ")),
            Rule::Run => "a string like [a-z0-9]{4,32}".into(),
            Rule::Cell => "a string like middleware/language".into(),
            Rule::Strings => "a list of strings".into(),
            Rule::Integers(low, high) => format!("a list of integers, each {low} to {high}"),
        }
    }

    fn obeyed_by(&self, value: &Value) -> bool {
        let within = |v: &Value, low, high| v.as_i64().is_some_and(|n| n >= low && n <= high);
        let text = value.as_str();
        match *self {
            Rule::String => value.is_string(),
            Rule::Boolean => value.is_boolean(),
            Rule::Integer(low, high) => within(value, low, high),
            Rule::OneOf(options) => text.is_some_and(|t| options.contains(&t)),
            Rule::Run => text.is_some_and(|t| {
                (4..=32).contains(&t.len())
                    && t.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
            }),
            Rule::Cell => text.and_then(|t| t.split_once('/')).is_some_and(|(left, right)| {
                let printable = |b: u8| b.is_ascii_graphic() && b != b'/';
                let word = |w: &str| !w.is_empty() && w.bytes().all(printable);
                word(left) && word(right)
            }),
            Rule::Strings => value.as_array().is_some_and(|a| a.iter().all(Value::is_string)),
            Rule::Integers(low, high) => {
                value.as_array().is_some_and(|a| a.iter().all(|v| within(v, low, high)))
            }
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

fn roles_of(pattern: &str) -> [&'static str; 2] {
    match pattern {
        "topic" => ["publisher", "subscriber"],
        "action" => ["action_client", "action_server"],
        "pingpong" => ["ping", "pong"],
        _ => ["client", "server"],
    }
}

const BIG: i64 = i64::MAX;
const MS_MAX: i64 = (1 << 40) - 1;
const RULES: [(&str, Rule); 33] = [
    ("contract", Rule::Integer(1, 1)),
    ("run", Rule::Run),
    ("cell", Rule::Cell),
    ("pattern", Rule::OneOf(&["topic", "service", "action", "pingpong"])),
    ("role", Rule::OneOf(&ROLES)),
    ("node", Rule::Integer(0, 65534)),
    ("index", Rule::Integer(0, BIG)),
    ("peers.nodes", Rule::Integers(0, 65534)),
    ("peers.count", Rule::Integer(0, BIG)),
    ("peers.endpoints", Rule::Strings),
    ("loop", Rule::OneOf(&["open", "closed"])),
    ("period_ns", Rule::Integer(0, BIG)),
    ("phase_ns", Rule::Integer(0, BIG)),
    ("duration_ns", Rule::Integer(0, BIG)),
    ("count", Rule::Integer(0, (1 << 48) - 2)),
    ("warmup_ns", Rule::Integer(0, BIG)),
    ("overrun_ns", Rule::Integer(0, BIG)),
    ("timeout_ns", Rule::Integer(1, BIG)),
    ("outstanding_max", Rule::Integer(1, BIG)),
    ("quiet_ms", Rule::Integer(0, MS_MAX)),
    ("linger_ms", Rule::Integer(0, MS_MAX)),
    ("ready_timeout_ms", Rule::Integer(1, MS_MAX)),
    ("pacing", Rule::OneOf(&["kit", "native"])),
    ("spin_ns", Rule::Integer(0, BIG)),
    ("payload.bytes", Rule::Integer(0, 67_108_864)),
    ("payload.encoding", Rule::OneOf(&["bytes", "text", "record"])),
    ("payload.seed", Rule::Integer(0, BIG)),
    ("payload.literal", Rule::String),
    ("reply", Rule::OneOf(&["echo", "ack", "literal"])),
    ("reply.literal", Rule::String),
    ("verify", Rule::OneOf(&["header", "full"])),
    ("action.feedback", Rule::Integer(0, u32::MAX as i64)),
    ("record.capacity", Rule::Integer(0, u32::MAX as i64)),
];

/// A specification whose every key obeys its rule. Getters panic on a key that does not exist.
#[derive(Debug)]
pub struct Spec {
    values: Map<String, Value>,
}

impl Spec {
    /// Reads the file `path`; `settings` are the middleware's own keys.
    pub fn read(path: &Path, settings: &[(&str, Rule)]) -> Result<Self, Error> {
        let unreadable = |reason: &dyn std::fmt::Display| {
            Error::bad_spec("--spec", path.display(), format!("a flat JSON object ({reason})"))
        };
        let text = std::fs::read(path).map_err(|error| unreadable(&error))?;
        let values: Map<String, Value> =
            serde_json::from_slice(&text).map_err(|error| unreadable(&error))?;
        let mut rules: BTreeMap<String, Rule> =
            RULES.iter().map(|&(key, rule)| (key.into(), rule)).collect();
        rules.extend(settings.iter().map(|&(name, rule)| (format!("settings.{name}"), rule)));
        for (key, value) in &values {
            if !rules.contains_key(key) {
                let known: Vec<&str> = settings.iter().map(|&(name, _)| name).collect();
                let allowed = format!("nothing: no such key; known settings: {}", known.join(", "));
                return Err(Error::bad_spec(key, value, allowed));
            }
        }
        for (key, rule) in &rules {
            match values.get(key) {
                None => return Err(Error::bad_spec(key, "nothing", rule.describe())),
                Some(value) if !rule.obeyed_by(value) => {
                    return Err(Error::bad_spec(key, value, rule.describe()))
                }
                Some(_) => {}
            }
        }
        let spec = Spec { values };
        spec.check_together()?;
        Ok(spec)
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

    /// What one key demands of another.
    fn check_together(&self) -> Result<(), Error> {
        let (pattern, role) = (self.string("pattern"), self.string("role"));
        let roles = roles_of(pattern);
        if !roles.contains(&role) {
            let allowed = format!("{} with pattern {pattern}", roles.join(", "));
            return Err(Error::bad_spec("role", role, allowed));
        }
        let closed = self.string("loop") == "closed";
        if closed && pattern == "topic" {
            return Err(Error::bad_spec("loop", "closed", "open with pattern topic"));
        }
        let needed: &[&str] = if closed { &["count"] } else { &["period_ns", "duration_ns"] };
        for key in needed {
            if self.integer(key) == 0 {
                let allowed = format!("more than 0 with loop {}", self.string("loop"));
                return Err(Error::bad_spec(key, 0, allowed));
            }
        }
        let is_literal = !self.string("payload.literal").is_empty();
        if self.string("payload.encoding") == "record" {
            let bytes = self.integer("payload.bytes");
            if bytes < 96 {
                let allowed = "at least 96 with payload.encoding record";
                return Err(Error::bad_spec("payload.bytes", bytes, allowed));
            }
            if is_literal {
                let found = self.get("payload.literal");
                let allowed = "an empty string with payload.encoding record";
                return Err(Error::bad_spec("payload.literal", found, allowed));
            }
        }
        let whole_bytes = if self.string("payload.encoding") == "text" { 16 } else { 8 };
        let is_short = self.integer("payload.bytes") < whole_bytes;
        if is_short && !is_literal && !is_sender(role) && self.integers("peers.nodes").len() != 1 {
            let allowed = "one node, because the payload is too short for the whole sequence";
            return Err(Error::bad_spec("peers.nodes", self.get("peers.nodes"), allowed));
        }
        Ok(())
    }
}
