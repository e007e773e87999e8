//! The recorded files of a finished build, which are compared before each use.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::cache::hash_file;

/// The list: a line `SIZE MTIME_NS,CTIME_NS SHA256 PATH` for each file, and `- - TARGET PATH` for
/// each link.
const LIST: &str = ".wattwire-files";
/// Interpreters write their caches at the first run, after the build.
const CACHES: [&str; 1] = ["__pycache__"];

/// Records all files of a build with their hashes.
pub fn record(directory: &Path) -> io::Result<()> {
    let mut lines = String::new();
    walk(directory, directory, &mut lines)?;
    write(directory, &lines)
}

fn write(directory: &Path, lines: &str) -> io::Result<()> {
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
            lines.push_str(&line(&entry.metadata()?, &hash_file(&path)?, relative));
        }
    }
    Ok(())
}

fn line(status: &fs::Metadata, hash: &str, relative: &str) -> String {
    format!("{} {} {hash} {relative}\n", status.len(), times_ns(status))
}

/// Returns whether all recorded files are unchanged. Files that were added later do not matter.
///
/// A file with the recorded size and times counts as unchanged; otherwise its content decides, and
/// its new times are recorded. A build without its list has changed.
pub fn is_intact(directory: &Path) -> bool {
    let Ok(text) = fs::read_to_string(directory.join(LIST)) else { return false };
    let verified: Option<String> = text.lines().map(|line| verified(directory, line)).collect();
    if let Some(lines) = verified.as_ref().filter(|lines| **lines != text) {
        let _ = write(directory, lines);
    }
    verified.is_some()
}

/// Returns the line of a file that is unchanged, with its times now; None if it has changed.
fn verified(directory: &Path, recorded: &str) -> Option<String> {
    let fields: Vec<&str> = recorded.splitn(4, ' ').collect();
    let [size, times, hash, relative] = fields[..] else { return None };
    let path = directory.join(relative);
    if size == "-" {
        let target = fs::read_link(&path).ok()?;
        return (hash_text(&target.to_string_lossy()) == hash).then(|| format!("{recorded}\n"));
    }
    let status = fs::symlink_metadata(&path).ok()?;
    let is_same = status.is_file()
        && status.len().to_string() == size
        && (times_ns(&status) == times || hash_file(&path).is_ok_and(|actual| actual == hash));
    is_same.then(|| line(&status, hash, relative))
}

/// Returns the times of the last change of a file's content and of its inode. A program can set the
/// former, but not the latter.
fn times_ns(status: &fs::Metadata) -> String {
    let ns = |s: i64, ns: i64| i128::from(s) * 1_000_000_000 + i128::from(ns);
    let modified_ns = ns(status.mtime(), status.mtime_nsec());
    format!("{modified_ns},{}", ns(status.ctime(), status.ctime_nsec()))
}

fn hash_text(text: &str) -> String {
    use sha2::Digest;
    crate::cache::hex(&sha2::Sha256::digest(text))
}
