//! Messages of the agent's protocol: requests, replies and errors (PROTOCOL.md).

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::Deserialize;
use serde_json::{json, Map, Value};

pub const VERSION: u64 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Usage,
    Protocol,
    Absent,
    Permission,
    Busy,
    Io,
    Failed,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Usage => "usage",
            Kind::Protocol => "protocol",
            Kind::Absent => "absent",
            Kind::Permission => "permission",
            Kind::Busy => "busy",
            Kind::Io => "io",
            Kind::Failed => "failed",
        }
    }
}

/// The error that a failed request returns.
#[derive(Debug)]
pub struct Problem {
    pub kind: Kind,
    pub message: String,
}

impl Problem {
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Problem { kind, message: message.into() }
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Problem::new(Kind::Usage, message)
    }

    pub fn failed(message: impl Into<String>) -> Self {
        Problem::new(Kind::Failed, message)
    }

    /// An error of the operating system, with the failed action and its path.
    pub fn io(action: &str, path: impl AsRef<std::path::Path>, error: &std::io::Error) -> Self {
        let kind = match error.kind() {
            std::io::ErrorKind::PermissionDenied => Kind::Permission,
            std::io::ErrorKind::NotFound => Kind::Absent,
            _ => Kind::Io,
        };
        Problem::new(kind, format!("{action} {}: {error}", path.as_ref().display()))
    }
}

pub type Answer = Result<Value, Problem>;

/// A request, parsed into its id, its operation and its arguments.
pub struct Request {
    pub id: Value,
    pub op: String,
    pub arguments: Value,
}

impl Request {
    /// On failure gives the `id` as far as it could be read, so that the reply can name it.
    pub fn parse(line: &str) -> Result<Request, (Value, Problem)> {
        let mut fields: Map<String, Value> = match serde_json::from_str(line) {
            Ok(Value::Object(fields)) => fields,
            Ok(_) => {
                let problem = "a request is a JSON object; found another JSON value";
                return Err((Value::Null, Problem::new(Kind::Protocol, problem)));
            }
            Err(error) => {
                let problem = format!("a request is one JSON object per line: {error}");
                return Err((Value::Null, Problem::new(Kind::Protocol, problem)));
            }
        };
        let id = fields.remove("id").unwrap_or(Value::Null);
        match fields.remove("op") {
            Some(Value::String(op)) => Ok(Request { id, op, arguments: Value::Object(fields) }),
            _ => Err((id, Problem::new(Kind::Protocol, "op: missing or not a string"))),
        }
    }

    pub fn arguments<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        serde_json::from_value(self.arguments.clone())
            .map_err(|error| Problem::usage(format!("{}: {error}", self.op)))
    }
}

pub fn reply(id: &Value, answer: Answer) -> Value {
    let mut line = Map::new();
    line.insert("id".into(), id.clone());
    line.insert("ok".into(), answer.is_ok().into());
    match answer {
        Ok(Value::Object(fields)) => line.extend(fields),
        Ok(_) => {}
        Err(problem) => {
            let error = json!({"kind": problem.kind.name(), "message": problem.message});
            line.insert("error".into(), error);
        }
    }
    Value::Object(line)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    #[allow(dead_code)] // checked before the other fields are parsed
    pub protocol: u64,
    pub state: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Have {
    pub hashes: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Put {
    pub hash: String,
    pub path: Option<String>,
    pub base64: Option<String>,
}

#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
pub struct BuildFile {
    pub path: String,
    pub hash: String,
    #[serde(default = "default_mode")]
    pub mode: u32,
}

fn default_mode() -> u32 {
    0o644
}

#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
pub struct Build {
    pub key: String,
    #[serde(default)]
    pub files: Vec<BuildFile>,
    #[serde(default)]
    pub commands: Vec<Vec<String>>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    #[serde(default = "default_build_timeout_s")]
    pub timeout_s: f64,
    /// Returns the error `absent` instead of building if the artifact is not in the cache.
    #[serde(default)]
    pub cached_only: bool,
}

fn default_build_timeout_s() -> f64 {
    1800.0
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ports {
    pub count: usize,
}

#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
pub struct Spawn {
    pub process: String,
    pub run: String,
    pub argv: Vec<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    pub cwd: Option<String>,
    #[serde(default = "default_stdout")]
    pub stdout: String,
    pub stderr: Option<String>,
    #[serde(default)]
    pub clear_env: bool,
    /// Lists the processes of the tree with this period, as after a request `members`.
    pub members_period_ms: Option<u64>,
    /// The CPUs of the process; those of the agent by default.
    #[serde(default)]
    pub cpus: Vec<u32>,
}

fn default_stdout() -> String {
    "lines".into()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Write {
    pub process: String,
    pub text: Option<String>,
    #[serde(default)]
    pub close: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signal {
    pub process: String,
    pub signal: String,
    #[serde(default)]
    pub tree: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SampleStart {
    pub path: String,
    pub tick_hz: f64,
    pub meters: Vec<String>,
    #[serde(default)]
    pub subjects: BTreeMap<String, Value>,
    /// Reads the meters only at the start, at marks and at the stop, to avoid the cost of sampling.
    #[serde(default)]
    pub marks_only: bool,
    /// The addresses of meters of tier `stream`.
    #[serde(default)]
    pub addresses: BTreeMap<String, String>,
    /// If false, another agent of this machine reads the values of the whole machine.
    #[serde(default = "default_machine_wide")]
    pub machine_wide: bool,
}

fn default_machine_wide() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Heartbeat {
    pub patience_s: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    pub name: String,
    /// The time of the mark on CLOCK_MONOTONIC; now by default.
    pub at_ns: Option<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    pub us: i32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StayOff {
    pub cpus: Vec<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clock {
    #[serde(default = "default_clock_count")]
    pub count: usize,
}

fn default_clock_count() -> usize {
    10
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clean {
    #[serde(default)]
    pub run: String,
    /// Lists the leftovers without killing or removing them.
    #[serde(default)]
    pub look: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}
