//! The size of a file system.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::json;

use crate::files::check_absolute;
use crate::protocol::{Answer, Problem};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disk {
    path: PathBuf,
}

/// Replies with the size of the file system of a path, and with the bytes that this user can write.
pub fn disk(request: &Disk) -> Answer {
    check_absolute("disk", &request.path)?;
    let existing = request.path.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    let sizes =
        sizes_bytes(existing).map_err(|error| Problem::io("disk: reading", existing, &error))?;
    Ok(json!({"free_bytes": sizes.0, "total_bytes": sizes.1}))
}

/// Returns (available to this user, total).
#[allow(clippy::unnecessary_cast)] // the fields are 32 bits wide on 32-bit machines
fn sizes_bytes(path: &Path) -> io::Result<(u64, u64)> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: an all-zero statvfs is valid.
    let mut sizes: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: `name` is zero-terminated, and both pointers outlive the call.
    if unsafe { libc::statvfs(name.as_ptr(), &mut sizes) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let block_bytes = sizes.f_frsize as u64;
    Ok((block_bytes * sizes.f_bavail as u64, block_bytes * sizes.f_blocks as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_folder_is_on_the_file_system_of_its_parent() {
        let total = |path: &str| {
            let answer = disk(&Disk { path: path.into() }).unwrap();
            assert!(answer["free_bytes"].as_u64() <= answer["total_bytes"].as_u64());
            answer["total_bytes"].as_u64().unwrap()
        };
        assert!(total("/") > 0);
        assert_eq!(total("/no-such-folder/attempt"), total("/"));
    }
}
