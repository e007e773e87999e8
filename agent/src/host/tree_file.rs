//! A file of a tree, on a live host or in a replay.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// Successive states of a tree. State *k* is the overlay of folders `0` … `k`, without the paths in
/// `gone`.
pub struct Replay {
    pub folder: PathBuf,
    pub step: AtomicUsize,
    /// Paths that return EACCES. Permission bits would not restrict root.
    pub deny: Vec<String>,
    /// Paths that disappear with everything below them, per step.
    pub gone: Vec<Vec<String>>,
}

impl Replay {
    pub fn find(&self, path: &str) -> io::Result<PathBuf> {
        if self.deny.iter().any(|denied| below(path, denied)) {
            return Err(io::Error::from_raw_os_error(libc::EACCES));
        }
        for step in (0..=self.step.load(Ordering::Relaxed)).rev() {
            let gone = self.gone.get(step).into_iter().flatten();
            if gone.into_iter().any(|gone| below(path, gone)) {
                break;
            }
            let candidate = self.folder.join(step.to_string()).join(path);
            if candidate.exists() {
                return Ok(candidate);
            }
        }
        Err(io::Error::from_raw_os_error(libc::ENOENT))
    }

    pub fn list(&self, path: &str) -> io::Result<BTreeSet<String>> {
        self.find(path)?;
        let mut names = BTreeSet::new();
        for step in 0..=self.step.load(Ordering::Relaxed) {
            for name in names_in(&self.folder.join(step.to_string()).join(path)) {
                names.insert(name);
            }
        }
        // A folder also lists the files that are not readable.
        names.retain(|name| match self.find(&format!("{path}/{name}")) {
            Ok(_) => true,
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        });
        Ok(names)
    }
}

fn below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// An open file of a tree.
pub enum TreeFile {
    Live(File),
    Replay(Arc<Replay>, String),
}

impl TreeFile {
    /// Reads from the beginning of the file into `buffer` and returns the bytes. On a live host it
    /// makes a single system call and does not allocate. An error means that the device or process
    /// no longer exists.
    pub fn read<'a>(&self, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
        let length = match self {
            TreeFile::Live(file) => file.read_at(buffer, 0)?,
            TreeFile::Replay(replay, path) => File::open(replay.find(path)?)?.read_at(buffer, 0)?,
        };
        Ok(&buffer[..length])
    }

    /// Reads the file as an unsigned number. Returns None if the file no longer exists or has no
    /// number.
    pub fn number(&self) -> Option<u64> {
        let mut buffer = [0u8; 32];
        parse_number(self.read(&mut buffer).ok()?)
    }
}

/// Parses the leading decimal number of `bytes`. Skips white space before it.
pub fn parse_number(bytes: &[u8]) -> Option<u64> {
    let digits = bytes.trim_ascii_start();
    let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&digits[..length]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_may_have_white_space_around_it() {
        assert_eq!(parse_number(b" 42\n"), Some(42));
        assert_eq!(parse_number(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(parse_number(b"x1"), None);
    }

    #[test]
    fn a_path_is_below_a_folder_only_if_a_slash_follows() {
        assert!(below("sys/a/b", "sys/a") && below("sys/a", "sys/a"));
        assert!(!below("sys/ab", "sys/a"));
    }
}
