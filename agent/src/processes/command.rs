//! Runs a short command and replies with its output, for versions and checks.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;

use crate::bounded::{Bounded, Controls};
use crate::launch::inherited_env;
use crate::lock::locked;
use crate::protocol::{Answer, Problem};
use crate::pump::Sink;

const OUTPUT_BYTES_MAX: usize = 64 << 10;
const TIMEOUT_S_MAX: f64 = 3600.0;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    argv: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<String>,
    #[serde(default = "default_timeout_s")]
    timeout_s: f64,
}

fn default_timeout_s() -> f64 {
    10.0
}

/// Runs the command to its end and replies with its exit code and the end of its output.
pub fn command(request: Command, state: &Path, controls: &Controls) -> Answer {
    if request.argv.is_empty() {
        return Err(Problem::usage(
            "command: argv: found an empty list; allowed: a program with its arguments",
        ));
    }
    let timeout_s = request.timeout_s;
    if !(timeout_s > 0.0 && timeout_s <= TIMEOUT_S_MAX) {
        return Err(Problem::usage(format!(
            "command: timeout_s: found {timeout_s}; allowed: above 0, at most {TIMEOUT_S_MAX}"
        )));
    }
    let mut env = inherited_env();
    env.extend(request.env);
    let cwd = request.cwd.unwrap_or_else(|| state.display().to_string());
    let until = Instant::now() + Duration::from_secs_f64(timeout_s);
    let output = Arc::new(Mutex::new(Tail::default()));
    let ended = Bounded { argv: request.argv, env, cwd, until }
        .run("command", controls, [sink(&output), sink(&output)])
        .map_err(|problem| {
            let text = locked(&output).text();
            let message = format!("command: {} (time limit {timeout_s} s)", problem.message);
            Problem::new(problem.kind, format!("{message}; its output: {text:?}"))
        })?;
    let output = locked(&output);
    Ok(json!({"code": ended.code, "signal": ended.signal, "output": output.text(),
              "omitted_bytes": output.omitted_bytes}))
}

fn sink(output: &Arc<Mutex<Tail>>) -> Sink {
    let output = output.clone();
    Sink::Bytes(Box::new(move |bytes| locked(&output).add(bytes)))
}

/// The last bytes of an output.
#[derive(Default)]
struct Tail {
    bytes: VecDeque<u8>,
    omitted_bytes: usize,
}

impl Tail {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let excess = self.bytes.len().saturating_sub(OUTPUT_BYTES_MAX);
        self.bytes.drain(..excess);
        self.omitted_bytes += excess;
    }

    fn text(&self) -> String {
        let bytes: Vec<u8> = self.bytes.iter().copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_keeps_the_last_bytes_and_counts_the_others() {
        let mut tail = Tail::default();
        tail.add(b"first");
        tail.add(&vec![b'x'; OUTPUT_BYTES_MAX - 3]);
        tail.add("é".as_bytes());
        assert_eq!(tail.omitted_bytes, 4);
        assert!(tail.text().starts_with("txxx") && tail.text().ends_with("xé"));
    }
}
