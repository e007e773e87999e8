//! Files of this host that a controller writes, lists, reads and removes. No operation follows a
//! symbolic link in the last part of its path, except reading.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use base64::engine::general_purpose::STANDARD as BASE64;
use base64::Engine;
use serde::Deserialize;
use serde_json::{json, Value};
use sha2::{Digest, Sha256};

use crate::cache::hex;
use crate::own::Identity;
use crate::protocol::{Answer, Problem};

const FETCH_BYTES_MAX: u64 = 32 << 20;
const WRITE_BYTES_MAX: usize = 64 << 20;
const LIST_ENTRIES_MAX: usize = 10_000;
const LIST_DEPTH_MAX: usize = 64;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Folder {
    pub path: PathBuf,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteFile {
    path: PathBuf,
    base64: String,
    #[serde(default = "default_mode")]
    mode: u32,
}

fn default_mode() -> u32 {
    0o644
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    path: PathBuf,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remove {
    pub path: PathBuf,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fetch {
    path: String,
    #[serde(default)]
    offset: u64,
    #[serde(default = "default_fetch_bytes")]
    bytes: u64,
}

fn default_fetch_bytes() -> u64 {
    4 << 20
}

/// Creates a folder and its missing parents.
pub fn folder(request: &Folder) -> Answer {
    check_absolute("folder", &request.path)?;
    fs::create_dir_all(&request.path)
        .map_err(|error| Problem::io("folder: making", &request.path, &error))?;
    Ok(Value::Null)
}

/// Writes a file under a temporary name and renames it.
pub fn write_file(request: &WriteFile) -> Answer {
    let path = &request.path;
    check_absolute("write_file", path)?;
    let Some(folder) = path.parent().filter(|_| path.file_name().is_some()) else {
        let message = format!("write_file: path: found {path:?}; allowed: the path of a file");
        return Err(Problem::usage(message));
    };
    if request.mode > 0o777 {
        let message = format!("write_file: mode: found {}; allowed: 0 to 511", request.mode);
        return Err(Problem::usage(message));
    }
    let content = BASE64
        .decode(&request.base64)
        .map_err(|error| Problem::usage(format!("write_file: base64: {error}")))?;
    if content.len() > WRITE_BYTES_MAX {
        return Err(Problem::usage(format!(
            "write_file: base64: found {} bytes of content; allowed: at most {WRITE_BYTES_MAX}",
            content.len()
        )));
    }
    let part = folder.join(temporary_name());
    let written = write_new(&part, &content, request.mode)
        .map_err(|error| Problem::io("write_file: writing", &part, &error))
        .and_then(|()| {
            fs::rename(&part, path)
                .map_err(|error| Problem::io("write_file: replacing", path, &error))
        });
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written.map(|()| Value::Null)
}

/// Returns a name that no other agent or request uses. Its length does not depend on the target's
/// name, which may have the greatest length that the file system allows.
fn temporary_name() -> String {
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    format!(".wattwire-{}-{serial}.part", Identity::own())
}

fn write_new(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    // A file of a killed agent with the same process id may exist.
    let _ = fs::remove_file(path);
    // Exclusive creation also fails on a symbolic link.
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content)?;
    // After the content, and regardless of the umask.
    file.set_permissions(fs::Permissions::from_mode(mode))
}

/// Lists the regular files below a folder with size and sha256, and the names of all other entries.
pub fn list(request: &List) -> Answer {
    check_absolute("list", &request.path)?;
    let mut listing = Listing::default();
    listing.add_folder(&request.path, Path::new(""), 0)?;
    listing.files.sort_by(|left, right| left.0.cmp(&right.0));
    listing.others.sort();
    let files: Vec<Value> = listing
        .files
        .into_iter()
        .map(|(path, size, sha256)| json!({"path": path, "size": size, "sha256": sha256}))
        .collect();
    Ok(json!({"files": files, "others": listing.others}))
}

#[derive(Default)]
struct Listing {
    /// Relative path, size and sha256.
    files: Vec<(String, u64, String)>,
    others: Vec<String>,
    entries: usize,
}

impl Listing {
    fn add_folder(&mut self, top: &Path, below: &Path, depth: usize) -> Result<(), Problem> {
        let folder = top.join(below);
        let io = |error: io::Error| Problem::io("list: reading folder", &folder, &error);
        if depth > LIST_DEPTH_MAX {
            let message = format!("{}: more than {LIST_DEPTH_MAX} levels", folder.display());
            return Err(Problem::failed(format!("list: {message}")));
        }
        for entry in fs::read_dir(&folder).map_err(io)? {
            let entry = entry.map_err(io)?;
            self.entries += 1;
            if self.entries > LIST_ENTRIES_MAX {
                let message = format!("more than {LIST_ENTRIES_MAX} entries");
                return Err(Problem::failed(format!("list: {}: {message}", top.display())));
            }
            let relative = below.join(entry.file_name());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => self.add_folder(top, &relative, depth + 1)?,
                Ok(kind) if kind.is_file() => self.add_file(top, &relative)?,
                _ => self.others.push(relative.display().to_string()),
            }
        }
        Ok(())
    }

    fn add_file(&mut self, top: &Path, relative: &Path) -> Result<(), Problem> {
        let path = top.join(relative);
        match (relative.to_str(), hash_regular(&path)) {
            // A file that a process removes during the listing is not part of it.
            (_, Err(error)) if error.kind() == io::ErrorKind::NotFound => {}
            (Some(name), Ok((size, sha256))) => self.files.push((name.into(), size, sha256)),
            (None, _) => self.others.push(relative.display().to_string()),
            (_, Err(error)) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.others.push(relative.display().to_string());
            }
            (_, Err(error)) => return Err(Problem::io("list: reading", &path, &error)),
        }
        Ok(())
    }
}

fn hash_regular(path: &Path) -> io::Result<(u64, String)> {
    let file = open_regular(path, libc::O_NOFOLLOW)?;
    // A file that a process extends all the time must not extend the listing.
    let mut bytes = (&file).take(file.metadata()?.len());
    let (mut digest, mut size) = (Sha256::new(), 0);
    let mut buffer = vec![0; 256 << 10];
    loop {
        match bytes.read(&mut buffer)? {
            0 => return Ok((size, hex(&digest.finalize()))),
            length => {
                digest.update(&buffer[..length]);
                size += length as u64;
            }
        }
    }
}

/// Opens a regular file. Does not wait for a writer if the path is a pipe.
fn open_regular(path: &Path, flags: i32) -> io::Result<File> {
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK | flags).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
    }
}

/// Removes a file, or a folder with everything below it, that is below `attempts`.
pub fn remove(request: &Remove, attempts: &Path) -> Answer {
    let path = checked_path_below(&request.path, attempts)?;
    let Some(path) = path else { return Ok(json!({"removed": false})) };
    let removed = match fs::symlink_metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(json!({"removed": false}))
        }
        Err(error) => Err(error),
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(&path),
        Ok(_) => fs::remove_file(&path),
    };
    removed.map_err(|error| Problem::io("remove:", &path, &error))?;
    Ok(json!({"removed": true}))
}

/// Returns `path` with a parent that contains no symbolic link, or None if the parent does not
/// exist. Fails if the path is not below `attempts`, also if a symbolic link leads out of it.
fn checked_path_below(path: &Path, attempts: &Path) -> Result<Option<PathBuf>, Problem> {
    let outside = || {
        Problem::usage(format!(
            "remove: path: found {path:?}; allowed: a path below {}, without `..` and without \
             symbolic links that lead out of it",
            attempts.display()
        ))
    };
    let mut below = path.strip_prefix(attempts).map_err(|_| outside())?.components();
    let is_normal = |part: Component| matches!(part, Component::Normal(_));
    if below.clone().next().is_none() || !below.all(is_normal) {
        return Err(outside());
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(outside());
    };
    let resolved = |folder: &Path| match folder.canonicalize() {
        Ok(resolved) => Ok(Some(resolved)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Problem::io("remove: resolving", folder, &error)),
    };
    let (Some(parent), Some(attempts)) = (resolved(parent)?, resolved(attempts)?) else {
        return Ok(None);
    };
    match parent.starts_with(&attempts) {
        true => Ok(Some(parent.join(name))),
        false => Err(outside()),
    }
}

pub fn check_absolute(op: &str, path: &Path) -> Result<(), Problem> {
    match path.is_absolute() {
        true => Ok(()),
        false => {
            let message = format!("{op}: path: found {path:?}; allowed: an absolute path");
            Err(Problem::usage(message))
        }
    }
}

/// Replies with a chunk of a file: its bytes, their sha256, and the size of the file.
pub fn fetch(request: &Fetch) -> Answer {
    let io = |error| Problem::io("fetch", &request.path, &error);
    let file = open_regular(request.path.as_ref(), 0).map_err(io)?;
    let size = file.metadata().map_err(io)?.len();
    let bytes = request.bytes.min(FETCH_BYTES_MAX).min(size.saturating_sub(request.offset));
    let mut chunk = vec![0; bytes as usize];
    file.read_exact_at(&mut chunk, request.offset).map_err(io)?;
    let sha256 = hex(&Sha256::digest(&chunk));
    Ok(json!({"base64": BASE64.encode(&chunk), "size": size, "sha256": sha256}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Kind;
    use std::os::unix::fs::symlink;

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let name = format!("wattwire-files-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().canonicalize().unwrap().join(name);
            fs::create_dir_all(&folder).unwrap();
            Scratch(folder)
        }

        fn write(&self, name: &str, text: &str, mode: u32) -> Answer {
            let path = self.0.join(name);
            write_file(&WriteFile { path, base64: BASE64.encode(text), mode })
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).unwrap().flatten();
            let mut names: Vec<String> =
                entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn write_file_replaces_a_file_and_sets_its_mode() {
        let scratch = Scratch::new("write");
        scratch.write("spec", "first", 0o644).unwrap();
        scratch.write("spec", "second", 0o600).unwrap();
        assert_eq!(fs::read_to_string(scratch.0.join("spec")).unwrap(), "second");
        let mode = fs::metadata(scratch.0.join("spec")).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
        assert_eq!(scratch.names(), ["spec"]);
    }

    #[test]
    fn write_file_replaces_a_symbolic_link_and_keeps_its_target() {
        let scratch = Scratch::new("link");
        scratch.write("target", "kept", 0o644).unwrap();
        symlink(scratch.0.join("target"), scratch.0.join("link")).unwrap();
        scratch.write("link", "new", 0o644).unwrap();
        assert_eq!(fs::read_to_string(scratch.0.join("target")).unwrap(), "kept");
        assert_eq!(fs::read_to_string(scratch.0.join("link")).unwrap(), "new");
    }

    #[test]
    fn a_failed_write_leaves_no_temporary_file() {
        let scratch = Scratch::new("failed");
        fs::create_dir(scratch.0.join("folder")).unwrap();
        scratch.write("folder", "text", 0o644).unwrap_err();
        assert_eq!(scratch.names(), ["folder"]);
        let problem = scratch.write("missing/file", "text", 0o644).unwrap_err();
        assert_eq!(problem.kind, Kind::Absent);
        let problem = scratch.write("file", "text", 0o1000).unwrap_err();
        assert!(problem.message.contains("allowed: 0 to 511"), "{}", problem.message);
        assert_eq!(scratch.names(), ["folder"]);
    }

    #[test]
    fn a_name_of_the_greatest_length_can_be_written() {
        let scratch = Scratch::new("long");
        scratch.write(&"n".repeat(255), "text", 0o644).unwrap();
    }

    #[test]
    fn list_hashes_regular_files_and_follows_no_link() {
        let scratch = Scratch::new("list");
        fs::create_dir_all(scratch.0.join("a/b")).unwrap();
        scratch.write("a/b/abc", "abc", 0o644).unwrap();
        scratch.write("empty", "", 0o644).unwrap();
        symlink("/etc/passwd", scratch.0.join("a/link")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(scratch.0.join("socket")).unwrap();
        let listing = list(&List { path: scratch.0.clone() }).unwrap();
        assert_eq!(listing["others"], json!(["a/link", "socket"]));
        let files = listing["files"].as_array().unwrap();
        assert_eq!(files.len(), 2);
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(files[0], json!({"path": "a/b/abc", "size": 3, "sha256": abc}));
        assert_eq!(files[1]["path"], json!("empty"));
    }

    #[test]
    fn list_refuses_more_entries_than_its_limit() {
        let scratch = Scratch::new("many");
        for number in 0..=LIST_ENTRIES_MAX {
            File::create(scratch.0.join(number.to_string())).unwrap();
        }
        let problem = list(&List { path: scratch.0.clone() }).unwrap_err();
        assert!(problem.message.contains("more than 10000 entries"), "{}", problem.message);
    }

    fn remove_below(attempts: &Path, path: PathBuf) -> Answer {
        remove(&Remove { path }, attempts)
    }

    #[test]
    fn remove_removes_below_attempts_and_nowhere_else() {
        let scratch = Scratch::new("remove");
        let attempts = scratch.0.join("attempts");
        fs::create_dir_all(attempts.join("run/logs")).unwrap();
        scratch.write("attempts/run/logs/log", "text", 0o644).unwrap();
        scratch.write("kept", "text", 0o644).unwrap();
        let refused = [
            scratch.0.join("kept"),
            attempts.clone(),
            attempts.join("."),
            attempts.join("../kept"),
            scratch.0.join("attempts-of-others"),
            PathBuf::from("attempts/run"),
        ];
        for path in refused {
            let problem = remove_below(&attempts, path.clone()).unwrap_err();
            assert_eq!(problem.kind, Kind::Usage, "{path:?}: {}", problem.message);
        }
        let path = attempts.join("run");
        assert_eq!(remove_below(&attempts, path.clone()).unwrap(), json!({"removed": true}));
        assert_eq!(remove_below(&attempts, path.clone()).unwrap(), json!({"removed": false}));
        assert_eq!(remove_below(&attempts, path.join("x")).unwrap(), json!({"removed": false}));
        assert_eq!(scratch.names(), ["attempts", "kept"]);
    }

    #[test]
    fn remove_removes_a_link_and_never_its_target() {
        let scratch = Scratch::new("remove-link");
        let attempts = scratch.0.join("attempts");
        fs::create_dir_all(attempts.join("run")).unwrap();
        fs::create_dir_all(scratch.0.join("outside")).unwrap();
        scratch.write("outside/kept", "text", 0o644).unwrap();
        symlink(scratch.0.join("outside"), attempts.join("run/link")).unwrap();
        let problem = remove_below(&attempts, attempts.join("run/link/kept")).unwrap_err();
        assert!(problem.message.contains("symbolic links"), "{}", problem.message);
        assert_eq!(
            remove_below(&attempts, attempts.join("run")).unwrap(),
            json!({"removed": true})
        );
        assert!(scratch.0.join("outside/kept").exists() && !attempts.join("run").exists());
    }

    #[test]
    fn fetch_does_not_wait_for_the_writer_of_a_pipe() {
        let scratch = Scratch::new("pipe");
        let path = scratch.0.join("pipe");
        let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: `name` is zero-terminated and outlives the call.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let request = Fetch { path: path.display().to_string(), offset: 0, bytes: 1 };
        let problem = fetch(&request).unwrap_err();
        assert!(problem.message.contains("not a regular file"), "{}", problem.message);
    }
}
