//! Shared memory that nodes leave in /dev/shm. A file belongs to this agent if it did not exist
//! before a process of the agent started and if that process mapped it, or, as a node of a cell,
//! opened it. A user's command may have files of others open, or write its results there. Locks and
//! semaphores are open only briefly, so a file that is named after such a file belongs to it too.

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::lock::locked;
use crate::members;
use crate::own::Identity;

const FOLDER: &str = "/dev/shm";

/// Shorter names do not identify an owner reliably.
const COMPANION_NAME_MIN: usize = 8;

/// Longest wait at the end for other processes, such as a peer of a node, to close a file. A
/// sender can keep the memory that it shared with a reader for two seconds after the reader's end.
const RELEASE_WAIT: Duration = Duration::from_secs(4);
const RELEASE_PERIOD: Duration = Duration::from_millis(50);

/// A file of this agent. The inode distinguishes it from a later file of the same name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    pub run: String,
    pub name: String,
    pub inode: u64,
}

/// Which of the files that a process uses belong to the agent.
#[derive(Clone, Copy, PartialEq)]
pub enum Owned {
    Mapped,
    MappedOrOpen,
}

/// Returns the inodes of the files in /dev/shm.
pub fn inodes() -> HashSet<u64> {
    files().map(|(_, inode)| inode).collect()
}

/// Returns (name, inode) of each file in /dev/shm.
fn files() -> impl Iterator<Item = (String, u64)> {
    let entries = fs::read_dir(FOLDER).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        Some((entry.file_name().into_string().ok()?, entry.metadata().ok()?.ino()))
    })
}

/// Records the shared memory that this agent's processes used. A copy on disk lets another agent
/// clean up if this agent is killed.
pub struct Journal {
    path: PathBuf,
    segments: Mutex<Vec<Segment>>,
}

impl Journal {
    pub fn new(folder: PathBuf) -> Journal {
        let path = folder.join(format!("{}.jsonl", Identity::own()));
        // An existing file of this name belongs to a process of an earlier boot.
        let _ = fs::remove_file(&path);
        Journal { path, segments: Mutex::new(Vec::new()) }
    }

    /// Records the files of these processes and the files named after them, except those in
    /// `before`.
    pub fn observe(&self, run: &str, pids: &[i32], before: &HashSet<u64>, owned: Owned) {
        let is_new = |file: &(String, u64)| !before.contains(&file.1);
        let of_process = |pid: &i32| match owned {
            Owned::Mapped => mapped_by(*pid),
            Owned::MappedOrOpen => used_by(*pid),
        };
        let mut new_files: Vec<(String, u64)> =
            pids.iter().flat_map(of_process).filter(is_new).collect();
        if new_files.is_empty() {
            return;
        }
        let is_companion =
            |name: &str| new_files.iter().any(|(owner, _)| is_named_after(name, owner));
        let companions: Vec<(String, u64)> =
            files().filter(is_new).filter(|(name, _)| is_companion(name)).collect();
        new_files.extend(companions);
        let mut segments = locked(&self.segments);
        for (name, inode) in new_files {
            let segment = Segment { run: run.into(), name, inode };
            if !segments.contains(&segment) {
                self.append(&segment);
                segments.push(segment);
            }
        }
    }

    fn append(&self, segment: &Segment) {
        let line = serde_json::to_string(segment).unwrap_or_default();
        let folder = self.path.parent().map(fs::create_dir_all);
        // The file only helps to clean up after a killed agent, so errors are ignored.
        if let (Some(Ok(())), Ok(mut file)) =
            (folder, fs::OpenOptions::new().create(true).append(true).open(&self.path))
        {
            let _ = writeln!(file, "{line}");
        }
    }

    /// Removes the recorded files of a run that no process uses. An empty `run` means all runs.
    pub fn remove_unused(&self, run: &str) -> Vec<PathBuf> {
        let mut segments = locked(&self.segments);
        let (of_run, mut remaining): (Vec<Segment>, Vec<Segment>) =
            segments.drain(..).partition(|segment| run.is_empty() || segment.run == run);
        let removed = remove(&of_run);
        // Files that are still in use stay recorded.
        remaining.extend(of_run.into_iter().filter(exists));
        *segments = remaining;
        removed
    }

    /// Lists the files that `remove_unused` would remove.
    pub fn unused(&self, run: &str) -> Vec<PathBuf> {
        let segments = locked(&self.segments);
        let of_run = segments.iter().filter(|segment| run.is_empty() || segment.run == run);
        unused(&of_run.cloned().collect::<Vec<Segment>>())
    }

    /// Removes the recorded files. Those that other processes still use stay in the journal on
    /// disk, because processes of several agents may share a file; the last agent removes it.
    pub fn end(&self) {
        let until = Instant::now() + RELEASE_WAIT;
        self.remove_unused("");
        while !locked(&self.segments).is_empty() && Instant::now() < until {
            thread::sleep(RELEASE_PERIOD);
            self.remove_unused("");
        }
        if locked(&self.segments).is_empty() {
            let _ = fs::remove_file(&self.path);
        }
        if let Some(folder) = self.path.parent() {
            remove_left_over(folder, "");
        }
    }
}

/// Removes the files in the journals of agents that have exited, and the journals without files.
pub fn remove_left_over(folder: &Path, run: &str) -> Vec<PathBuf> {
    let mut removed = Vec::new();
    for (path, segments) in left_journals(folder, run) {
        removed.extend(remove(&segments));
        if run.is_empty() && !segments.iter().any(exists) {
            let _ = fs::remove_file(&path);
        }
    }
    removed
}

/// Lists the files that `remove_left_over` would remove.
pub fn left_over(folder: &Path, run: &str) -> Vec<PathBuf> {
    let journals = left_journals(folder, run);
    journals.iter().flat_map(|(_, segments)| unused(segments)).collect()
}

/// Returns the journals of agents that have exited, with their segments of run `run`. An empty
/// `run` means all runs.
fn left_journals(folder: &Path, run: &str) -> Vec<(PathBuf, Vec<Segment>)> {
    let mut journals = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let agent = path.file_stem().and_then(|stem| Identity::parse(stem.to_str()?));
        if !agent.is_some_and(Identity::has_ended) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        let all = text.lines().filter_map(|line| serde_json::from_str::<Segment>(line).ok());
        let of_run = all.filter(|segment| run.is_empty() || segment.run == run).collect();
        journals.push((path, of_run));
    }
    journals
}

fn remove(segments: &[Segment]) -> Vec<PathBuf> {
    unused(segments).into_iter().filter(|path| fs::remove_file(path).is_ok()).collect()
}

/// Returns the files of these segments that still exist and that no process uses.
fn unused(segments: &[Segment]) -> Vec<PathBuf> {
    let existing: Vec<&Segment> = segments.iter().filter(|segment| exists(segment)).collect();
    if existing.is_empty() {
        return Vec::new();
    }
    let in_use: HashSet<u64> =
        members::all().into_iter().flat_map(used_by).map(|(_, inode)| inode).collect();
    let unused = existing.into_iter().filter(|segment| !in_use.contains(&segment.inode));
    unused.map(|segment| Path::new(FOLDER).join(&segment.name)).collect()
}

/// Returns whether one of these processes maps a file in /dev/shm or has it open.
pub fn is_used(file: &Path, pids: &[i32]) -> bool {
    let Ok(metadata) = fs::metadata(file) else { return false };
    pids.iter().flat_map(|pid| used_by(*pid)).any(|(_, inode)| inode == metadata.ino())
}

fn exists(segment: &Segment) -> bool {
    let path = Path::new(FOLDER).join(&segment.name);
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.ino() == segment.inode)
}

/// Returns whether `name` contains `owner` as a separate word, as the name of a lock does.
fn is_named_after(name: &str, owner: &str) -> bool {
    let is_boundary = |side: Option<char>| side.is_none_or(|c| !c.is_ascii_alphanumeric());
    owner.len() >= COMPANION_NAME_MIN
        && name != owner
        && name.match_indices(owner).any(|(at, _)| {
            is_boundary(name[..at].chars().next_back())
                && is_boundary(name[at + owner.len()..].chars().next())
        })
}

/// Returns (name, inode) of each file in /dev/shm that a process maps.
fn mapped_by(pid: i32) -> Vec<(String, u64)> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    maps.lines().filter_map(mapped).collect()
}

/// Returns (name, inode) of each file in /dev/shm that a process maps or has open.
fn used_by(pid: i32) -> Vec<(String, u64)> {
    let mut used = mapped_by(pid);
    let folder = format!("/proc/{pid}/fd");
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(target) = fs::read_link(entry.path()) else { continue };
        let Ok(name) = target.strip_prefix(FOLDER) else { continue };
        // The link leads to the open file even if another file has its name now. A process that
        // lists the folder has the folder itself open.
        if let Ok(metadata) = fs::metadata(entry.path()) {
            if metadata.is_file() {
                used.push((name.display().to_string(), metadata.ino()));
            }
        }
    }
    used.sort();
    used.dedup();
    used
}

/// Parses a line of /proc/PID/maps: `addresses rights offset device inode path`.
fn mapped(line: &str) -> Option<(String, u64)> {
    let (left, name) = line.split_once("/dev/shm/")?;
    let inode = left.split_ascii_whitespace().nth(4)?.parse().ok()?;
    (!name.ends_with(" (deleted)")).then(|| (name.to_string(), inode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapped_file_has_its_inode_and_a_deleted_file_is_ignored() {
        let line = "7f00-7f01 rw-s 00000000 00:19 4242                       /dev/shm/a b";
        assert_eq!(mapped(line), Some(("a b".into(), 4242)));
        assert_eq!(mapped(&format!("{line} (deleted)")), None);
        assert_eq!(mapped("7f00-7f01 r-xp 00000000 fe:00 77 /usr/lib/libc.so.6"), None);
    }

    #[test]
    fn the_name_of_a_companion_contains_its_owners_name_as_a_word() {
        assert!(is_named_after("sem.segment_7000_mutex", "segment_7000"));
        assert!(is_named_after("segment_7000.lock", "segment_7000"));
        assert!(!is_named_after("segment_70001", "segment_7000"));
        assert!(!is_named_after("mysegment_7000", "segment_7000"));
        assert!(!is_named_after("segment_7000", "segment_7000"));
        assert!(!is_named_after("sem.a", "a"));
    }

    #[test]
    fn remove_unused_keeps_files_in_use_and_files_that_existed_before() {
        let folder = std::env::temp_dir().join(format!("wattwire-journal-{}", std::process::id()));
        let journal = Journal::new(folder.clone());
        let own = std::process::id() as i32;
        let path = |name: &str| {
            Path::new(FOLDER).join(format!("wattwire-test-{name}-{}", std::process::id()))
        };
        let old = fs::File::create(path("old")).unwrap();
        let listed = fs::File::open(FOLDER).unwrap();
        let before = inodes();
        let new = fs::File::create(path("new")).unwrap();
        let lock = path("new").with_extension("lock");
        fs::write(&lock, "open only briefly").unwrap();
        journal.observe("run1", &[own], &before, Owned::MappedOrOpen);
        assert_eq!(journal.remove_unused("run1"), [lock]);
        drop((old, new, listed));
        assert_eq!(journal.remove_unused("other"), Vec::<PathBuf>::new());
        assert_eq!(journal.unused("run1"), [path("new")]);
        assert_eq!(journal.remove_unused("run1"), [path("new")]);
        assert!(path("old").exists());
        fs::remove_file(path("old")).unwrap();
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_file_that_a_peer_closes_soon_after_the_end_is_removed() {
        let name = format!("wattwire-peer-{}", std::process::id());
        let folder = std::env::temp_dir().join(&name);
        let journal = Journal::new(folder.clone());
        let before = inodes();
        let used = fs::File::create(Path::new(FOLDER).join(&name)).unwrap();
        journal.observe("run1", &[std::process::id() as i32], &before, Owned::MappedOrOpen);
        let peer = thread::spawn(move || {
            thread::sleep(RELEASE_WAIT / 4);
            drop(used);
        });
        journal.end();
        peer.join().unwrap();
        assert!(!Path::new(FOLDER).join(&name).exists());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_file_in_use_at_the_end_of_its_agent_is_removed_by_the_last_agent() {
        let name = format!("wattwire-shared-{}", std::process::id());
        let folder = std::env::temp_dir().join(&name);
        let _ = fs::remove_dir_all(&folder);
        let file = Path::new(FOLDER).join(&name);
        let before = inodes();
        let used = fs::File::create(&file).unwrap();
        let mut first = Journal::new(folder.clone());
        // An agent that has exited: no process has this start time.
        let own = Identity::own().to_string();
        first.path = folder.join(format!("{}-1-1.jsonl", own.split('-').next().unwrap()));
        first.observe("run1", &[std::process::id() as i32], &before, Owned::MappedOrOpen);
        first.end();
        assert!(file.exists() && first.path.exists());
        drop(used);
        Journal::new(folder.clone()).end();
        assert!(!file.exists() && !first.path.exists());
        fs::remove_dir_all(folder).unwrap();
    }
}
