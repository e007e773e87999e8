//! The description of a cell, and the main function of a node.

use std::collections::HashMap;
use std::ffi::CString;
use std::path::{Path, PathBuf};

use crate::clock::now_ns;
use crate::constants::is_sender;
use crate::dialogue::{exit_now, Dialogue};
use crate::error::Error;
use crate::json_type::Type;
use crate::kit::Kit;
use crate::spec::Spec;

/// The function of a role. When it returns, the kit writes the samples and prints DONE.
pub type Role = fn(&'static Kit) -> Result<(), Error>;

/// The roles, settings and capabilities of a cell.
#[derive(Clone, Copy)]
pub struct Cell {
    pub roles: &'static [(&'static str, Role)],
    pub settings: &'static [(&'static str, Type)],
    pub capabilities: &'static [&'static str],
    pub payload_bytes_max: Option<i64>,
    /// Maximum nominal size of records, if they grow on the wire; None: payload_bytes_max.
    pub record_bytes_max: Option<i64>,
}

/// Runs this node and ends the process. Must be the first statement of `main`.
pub fn run(cell: Cell) -> ! {
    let process_start_ns = now_ns();
    let dialogue: &'static Dialogue = match Dialogue::open() {
        Ok(dialogue) => Box::leak(Box::new(dialogue)),
        Err(error) => {
            eprintln!(
                "descriptor 3 is not open: {error}; in a shell, start the node with 3>&1 (C-05)"
            );
            exit_now(2)
        }
    };
    // A panic in any thread ends the node, because the node would no longer be complete.
    std::panic::set_hook(Box::new(|info| dialogue.fail(4, None, &info.to_string())));
    if let Err(error) = run_role(cell, dialogue, process_start_ns) {
        dialogue.fail(error.code(), error.key(), &error.to_string());
    }
    exit_now(0)
}

fn run_role(cell: Cell, dialogue: &'static Dialogue, process_start_ns: i64) -> Result<(), Error> {
    let (spec_path, out) = read_arguments()?;
    let spec = Spec::read(&spec_path, cell.settings)?;
    let role = check_capabilities(&spec, &cell)?;
    dialogue.listen();
    // Never freed, because threads use the kit until the process ends.
    let kit: &'static Kit = Box::leak(Box::new(Kit::new(spec, dialogue, process_start_ns)?));
    role(kit)?;
    kit.finish(&out)
}

fn read_arguments() -> Result<(PathBuf, PathBuf), Error> {
    let arguments: Vec<String> =
        std::env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned()).collect();
    let named: HashMap<&str, &str> =
        arguments.chunks_exact(2).map(|pair| (pair[0].as_str(), pair[1].as_str())).collect();
    let (Some(spec), Some(out), 4) = (named.get("--spec"), named.get("--out"), arguments.len())
    else {
        let count = format!("{} arguments", arguments.len());
        return Err(Error::bad_spec("command line", count, "--spec FILE --out DIR"));
    };
    if !is_writable_folder(Path::new(out)) {
        return Err(Error::bad_spec("--out", out, "a writable folder"));
    }
    Ok((spec.into(), out.into()))
}

fn is_writable_folder(path: &Path) -> bool {
    let Ok(name) = CString::new(path.as_os_str().as_encoded_bytes()) else { return false };
    // SAFETY: `name` is zero-terminated and outlives the call.
    path.is_dir() && unsafe { libc::access(name.as_ptr(), libc::W_OK | libc::X_OK) } == 0
}

/// Returns the role's function, or Unsupported if the specification requires a capability that the
/// cell lacks (C-03).
fn check_capabilities(spec: &Spec, cell: &Cell) -> Result<Role, Error> {
    let name = spec.string("role");
    let Some(&(_, role)) = cell.roles.iter().find(|(known, _)| *known == name) else {
        let known: Vec<&str> = cell.roles.iter().map(|&(name, _)| name).collect();
        let reason = format!("role {name}; this cell supports {}", known.join(", "));
        return Err(Error::Unsupported(reason));
    };
    let mut required = vec![
        format!("encoding.{}", spec.string("payload.encoding")),
        format!("loop.{}", spec.string("loop")),
    ];
    if is_sender(name) {
        required.push(format!("pacing.{}", spec.string("pacing")));
    }
    if !["topic", "pipeline"].contains(&spec.string("pattern")) {
        required.push(format!("reply.{}", spec.string("reply")));
    }
    if !spec.string("payload.literal").is_empty() {
        required.push("literal".into());
    }
    let overlapping = spec.string("loop") == "open" && spec.integer("outstanding_max") > 1;
    if ["client", "ping"].contains(&name) && overlapping {
        required.push("async_client".into());
    }
    if let Some(missing) = required.iter().find(|name| !cell.capabilities.contains(&name.as_str()))
    {
        let known = cell.capabilities.join(", ");
        return Err(Error::Unsupported(format!("{missing}; this cell supports {known}")));
    }
    let bytes = spec.integer("payload.bytes");
    let is_record = spec.string("payload.encoding") == "record";
    let record_bytes_max = cell.record_bytes_max.filter(|_| is_record);
    match record_bytes_max.or(cell.payload_bytes_max) {
        Some(limit) if bytes > limit => Err(Error::Unsupported(format!(
            "payload.bytes {bytes}; this cell supports at most {limit}"
        ))),
        _ => Ok(role),
    }
}
