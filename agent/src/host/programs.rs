//! Finds programs on this host.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::json;

use crate::protocol::{Answer, Problem};

const NAMES_MAX: usize = 1000;
/// Folders of programs for administrators, which an ordinary user's PATH may lack.
const SYSTEM_FOLDERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Which {
    names: Vec<String>,
}

/// Replies with the path of each program, or null.
pub fn which(request: &Which) -> Answer {
    if request.names.len() > NAMES_MAX {
        let count = request.names.len();
        let message = format!("which: names: found {count} names; allowed: at most {NAMES_MAX}");
        return Err(Problem::usage(message));
    }
    let search_path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&search_path)
        // A relative folder depends on the agent's working directory, which means nothing here.
        .filter(|folder| folder.is_absolute())
        .chain(SYSTEM_FOLDERS.map(PathBuf::from))
        .collect();
    let paths: BTreeMap<&str, Option<PathBuf>> =
        request.names.iter().map(|name| (name.as_str(), find(name, &folders))).collect();
    Ok(json!({"paths": paths}))
}

fn find(name: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    if name.contains('/') {
        let path = PathBuf::from(name);
        return (path.is_absolute() && is_program(&path)).then_some(path);
    }
    folders.iter().map(|folder| folder.join(name)).find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    let Ok(name) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: `name` is zero-terminated and outlives the call.
    path.is_file() && unsafe { libc::access(name.as_ptr(), libc::X_OK) } == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_first_executable_file_is_found() {
        let folder = std::env::temp_dir().join(format!("wattwire-which-{}", std::process::id()));
        let (first, second) = (folder.join("first"), folder.join("second"));
        for parent in [&first, &second] {
            std::fs::create_dir_all(parent).unwrap();
            std::fs::write(parent.join("tool"), "").unwrap();
        }
        std::fs::create_dir(second.join("folder")).unwrap();
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(second.join("tool"), executable).unwrap();
        let folders = [first, second.clone()];
        assert_eq!(find("tool", &folders), Some(second.join("tool")));
        assert_eq!(find("folder", &folders), None);
        assert_eq!(find("", &folders), None);
        assert_eq!(find("no/tool", &folders), None);
        let path = second.join("tool").display().to_string();
        assert_eq!(find(&path, &folders), Some(second.join("tool")));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_error_for_too_many_names_gives_the_limit() {
        let problem = which(&Which { names: vec!["sh".into(); 1001] }).unwrap_err();
        assert!(problem.message.contains("found 1001 names; allowed: at most 1000"));
    }
}
