//! The main function of a node.

use std::collections::HashMap;
use std::ffi::CString;
use std::path::{Path, PathBuf};

use crate::clock::now_ns;
use crate::constants::is_sender;
use crate::dialogue::{exit_now, Dialogue};
use crate::error::Error;
use crate::kit::Kit;
use crate::spec::Spec;

/// The function of a role. When it returns, the kit writes the samples and prints DONE.
pub type Role = fn(&'static Kit) -> Result<(), Error>;

/// Runs this node and ends the process. Must be the first statement of `main`. `roles` names the
/// function of each role.
pub fn run(roles: &[(&str, Role)]) -> ! {
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
    if let Err(error) = run_role(roles, dialogue, process_start_ns) {
        dialogue.fail(error.code(), error.key(), &error.to_string());
    }
    exit_now(0)
}

fn run_role(
    roles: &[(&str, Role)],
    dialogue: &'static Dialogue,
    process_start_ns: i64,
) -> Result<(), Error> {
    let (spec_path, out) = read_arguments()?;
    let spec = Spec::read(&spec_path)?;
    let role = check_declaration(&spec, roles)?;
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

/// Returns the role's function, or Unsupported if the specification requires something that it does
/// not declare, or a role without a function (C-03).
fn check_declaration(spec: &Spec, roles: &[(&str, Role)]) -> Result<Role, Error> {
    let name = spec.string("role");
    let declared = spec.strings("declared.roles");
    let known = roles.iter().filter(|(role, _)| declared.contains(role));
    let Some(&(_, role)) = known.clone().find(|(role, _)| *role == name) else {
        let names: Vec<&str> = known.map(|&(role, _)| role).collect();
        let reason = format!("role {name}; this cell supports {}", names.join(", "));
        return Err(Error::Unsupported(reason));
    };
    let capabilities = spec.strings("declared.capabilities");
    let required = required_capabilities(spec);
    if let Some(missing) = required.iter().find(|name| !capabilities.contains(&name.as_str())) {
        let known = capabilities.join(", ");
        return Err(Error::Unsupported(format!("{missing}; this cell supports {known}")));
    }
    match unsupported_size(spec).or_else(|| spec.unsupported_setting()) {
        Some(reason) => Err(Error::Unsupported(reason)),
        None => Ok(role),
    }
}

fn required_capabilities(spec: &Spec) -> Vec<String> {
    let role = spec.string("role");
    let mut required = vec![
        format!("encoding.{}", spec.string("payload.encoding")),
        format!("loop.{}", spec.string("loop")),
    ];
    if is_sender(role) {
        required.push(format!("pacing.{}", spec.string("pacing")));
    }
    if !["topic", "pipeline"].contains(&spec.string("pattern")) {
        required.push(format!("reply.{}", spec.string("reply")));
    }
    if !spec.string("payload.literal").is_empty() {
        required.push("literal".into());
    }
    let overlapping = spec.string("loop") == "open" && spec.integer("outstanding_max") > 1;
    if ["client", "ping"].contains(&role) && overlapping {
        required.push("async_client".into());
    }
    required
}

/// Returns a reason if the payload is longer or shorter than declared.
fn unsupported_size(spec: &Spec) -> Option<String> {
    let bytes = spec.integer("payload.bytes");
    let (kind, unit) = match spec.string("payload.encoding") {
        "bytes" => ("payload", 1),
        "text" => ("payload", 2),
        "record" => ("record", 0),
        _ => ("payload", 0),
    };
    let most = spec.integer(&format!("declared.{kind}_bytes_max"));
    let least = unit * spec.integer("declared.payload_bytes_min");
    if bytes > most {
        return Some(format!("payload.bytes {bytes}; this cell supports at most {most}"));
    }
    let is_short = bytes < least && spec.string("payload.literal").is_empty();
    is_short.then(|| format!("payload.bytes {bytes}; this cell supports at least {least}"))
}
