//! The recorded files of a finished build, which are compared before each use.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::cache::hash_file;

/// The list: a line `SIZE MTIME_NS SHA256 PATH` for each file, and `- - TARGET PATH` for each link.
const LIST: &str = ".wattwire-files";
/// Interpreters write their caches at the first run, after the build.
const CACHES: [&str; 1] = ["__pycache__"];

/// Records all files of a build with their hashes.
pub fn record(directory: &Path) -> io::Result<()> {
    let mut lines = String::new();
    walk(directory, directory, &mut lines)?;
    let partial = directory.join(format!("{LIST}.{}", std::process::id()));
    fs::write(&partial, lines)?;
    fs::rename(partial, directory.join(LIST))
}

fn walk(folder: &Path, top: &Path, lines: &mut String) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        let kind = entry.file_type()?;
        let Some(relative) = path.strip_prefix(top).ok().and_then(Path::to_str) else { continue };
        if relative.contains('\n') || name.to_str().is_some_and(|n| n.starts_with(LIST)) {
            continue;
        }
        if kind.is_dir() {
            if !CACHES.iter().any(|cache| name == *cache) {
                walk(&path, top, lines)?;
            }
        } else if kind.is_symlink() {
            let target = fs::read_link(&path)?;
            lines.push_str(&format!("- - {} {relative}\n", hash_text(&target.to_string_lossy())));
        } else if kind.is_file() {
            let status = entry.metadata()?;
            let (size, modified) = (status.len(), modified_ns(&status));
            lines.push_str(&format!("{size} {modified} {} {relative}\n", hash_file(&path)?));
        }
    }
    Ok(())
}

/// Returns whether all recorded files are unchanged. Files that were added later do not matter.
///
/// A file with the recorded size and time counts as unchanged; otherwise its content decides. A
/// build of an earlier version has no list, and gets one.
pub fn is_intact(directory: &Path) -> bool {
    match fs::read_to_string(directory.join(LIST)) {
        Ok(text) => text.lines().all(|line| line_is_intact(directory, line)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // A cache that is not writable stays without a list.
            let _ = record(directory);
            true
        }
        Err(_) => false,
    }
}

fn line_is_intact(directory: &Path, line: &str) -> bool {
    let fields: Vec<&str> = line.splitn(4, ' ').collect();
    let [size, modified, hash, relative] = fields[..] else { return false };
    let path = directory.join(relative);
    if size == "-" {
        return fs::read_link(&path).is_ok_and(|to| hash_text(&to.to_string_lossy()) == hash);
    }
    let Ok(status) = fs::symlink_metadata(&path) else { return false };
    status.is_file()
        && status.len().to_string() == size
        && (modified_ns(&status).to_string() == modified
            || hash_file(&path).is_ok_and(|actual| actual == hash))
}

fn modified_ns(status: &fs::Metadata) -> i128 {
    i128::from(status.mtime()) * 1_000_000_000 + i128::from(status.mtime_nsec())
}

fn hash_text(text: &str) -> String {
    use sha2::Digest;
    crate::cache::hex(&sha2::Sha256::digest(text))
}
