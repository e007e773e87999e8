//! Shared memory that nodes leave in /dev/shm. A file there is ours only if it was not there before
//! one of our processes was started, and that process was seen to map or open it, or to use the
//! file that it is named after: locks and semaphores are held for moments only.

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use crate::lock::locked;
use crate::members;

const FOLDER: &str = "/dev/shm";

/// Shorter names say too little about whose a file is.
const COMPANION_NAME_MIN: usize = 8;

/// A file of ours: the inode tells it from a later one of the same name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    pub run: String,
    pub name: String,
    pub inode: u64,
}

/// The inodes that are in /dev/shm now.
pub fn inodes() -> HashSet<u64> {
    files().map(|(_, inode)| inode).collect()
}

/// (name, inode) of what is in /dev/shm now.
fn files() -> impl Iterator<Item = (String, u64)> {
    let entries = fs::read_dir(FOLDER).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        Some((entry.file_name().into_string().ok()?, entry.metadata().ok()?.ino()))
    })
}

/// What this agent's processes were seen to use. Kept in a file too, for whoever cleans up after
/// an agent that was killed.
pub struct Journal {
    path: PathBuf,
    segments: Mutex<Vec<Segment>>,
}

impl Journal {
    pub fn new(folder: PathBuf) -> Journal {
        let path = folder.join(format!("{}.jsonl", std::process::id()));
        // A file of this name is of an earlier process with our number.
        let _ = fs::remove_file(&path);
        Journal { path, segments: Mutex::new(Vec::new()) }
    }

    /// Notes what these processes use, and what is named after it, that is not in `before`.
    pub fn observe(&self, run: &str, pids: &[i32], before: &HashSet<u64>) {
        let is_new = |file: &(String, u64)| !before.contains(&file.1);
        let mut found: Vec<(String, u64)> =
            pids.iter().flat_map(|pid| used_by(*pid)).filter(is_new).collect();
        if found.is_empty() {
            return;
        }
        let named_after_one =
            |name: &str| found.iter().any(|(owner, _)| is_named_after(name, owner));
        let companions: Vec<(String, u64)> =
            files().filter(is_new).filter(|(name, _)| named_after_one(name)).collect();
        found.extend(companions);
        let mut segments = locked(&self.segments);
        for (name, inode) in found {
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
        // Without the file only a killed agent's leftovers are harder to find.
        if let (Some(Ok(())), Ok(mut file)) =
            (folder, fs::OpenOptions::new().create(true).append(true).open(&self.path))
        {
            let _ = writeln!(file, "{line}");
        }
    }

    /// Removes what is ours, of one run or (empty) of all, and in nobody's use any more.
    pub fn remove_unused(&self, run: &str) -> Vec<PathBuf> {
        let mut segments = locked(&self.segments);
        let (of_run, mut kept): (Vec<Segment>, Vec<Segment>) =
            segments.drain(..).partition(|segment| run.is_empty() || segment.run == run);
        let removed = remove(&of_run);
        // What somebody still uses stays ours to remove.
        kept.extend(of_run.into_iter().filter(is_there));
        *segments = kept;
        removed
    }

    /// What `remove_unused` would remove.
    pub fn unused(&self, run: &str) -> Vec<PathBuf> {
        let segments = locked(&self.segments);
        let of_run = segments.iter().filter(|segment| run.is_empty() || segment.run == run);
        unused(&of_run.cloned().collect::<Vec<Segment>>())
    }

    pub fn end(&self) {
        self.remove_unused("");
        let _ = fs::remove_file(&self.path);
    }
}

/// Removes what the journals of agents that are gone name; `is_agent` says who is alive.
pub fn remove_left_over(folder: &Path, run: &str, is_agent: impl Fn(i32) -> bool) -> Vec<PathBuf> {
    let mut removed = Vec::new();
    for (path, segments) in left_journals(folder, run, is_agent) {
        removed.extend(remove(&segments));
        if run.is_empty() {
            let _ = fs::remove_file(&path);
        }
    }
    removed
}

/// What `remove_left_over` would remove.
pub fn left_over(folder: &Path, run: &str, is_agent: impl Fn(i32) -> bool) -> Vec<PathBuf> {
    let journals = left_journals(folder, run, is_agent);
    journals.iter().flat_map(|(_, segments)| unused(segments)).collect()
}

/// The journals of agents that are gone, with what they say of run `run` (empty: of all).
fn left_journals(
    folder: &Path,
    run: &str,
    is_agent: impl Fn(i32) -> bool,
) -> Vec<(PathBuf, Vec<Segment>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let agent = path.file_stem().and_then(|stem| stem.to_str()?.parse::<i32>().ok());
        if agent.is_none_or(&is_agent) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        let all = text.lines().filter_map(|line| serde_json::from_str::<Segment>(line).ok());
        let meant = all.filter(|segment| run.is_empty() || segment.run == run).collect();
        found.push((path, meant));
    }
    found
}

fn remove(segments: &[Segment]) -> Vec<PathBuf> {
    unused(segments).into_iter().filter(|path| fs::remove_file(path).is_ok()).collect()
}

/// The files of these segments that are still there and in nobody's use.
fn unused(segments: &[Segment]) -> Vec<PathBuf> {
    let there: Vec<&Segment> = segments.iter().filter(|segment| is_there(segment)).collect();
    if there.is_empty() {
        return Vec::new();
    }
    let in_use: HashSet<u64> =
        members::all().into_iter().flat_map(used_by).map(|(_, inode)| inode).collect();
    let unused = there.into_iter().filter(|segment| !in_use.contains(&segment.inode));
    unused.map(|segment| Path::new(FOLDER).join(&segment.name)).collect()
}

fn is_there(segment: &Segment) -> bool {
    let path = Path::new(FOLDER).join(&segment.name);
    fs::metadata(path).is_ok_and(|metadata| metadata.ino() == segment.inode)
}

/// Whether `name` holds the whole name `owner` as a word of its own, as a lock's name does.
fn is_named_after(name: &str, owner: &str) -> bool {
    let is_apart = |side: Option<char>| side.is_none_or(|c| !c.is_ascii_alphanumeric());
    owner.len() >= COMPANION_NAME_MIN
        && name != owner
        && name.match_indices(owner).any(|(at, _)| {
            is_apart(name[..at].chars().next_back())
                && is_apart(name[at + owner.len()..].chars().next())
        })
}

/// (name, inode) of each file of /dev/shm that a process maps or holds open.
fn used_by(pid: i32) -> Vec<(String, u64)> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let mut used: Vec<(String, u64)> = maps.lines().filter_map(mapped).collect();
    let folder = format!("/proc/{pid}/fd");
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(target) = fs::read_link(entry.path()) else { continue };
        let Ok(name) = target.strip_prefix(FOLDER) else { continue };
        // The link is followed to the open file, also after its name was taken by another.
        if let Ok(metadata) = fs::metadata(entry.path()) {
            used.push((name.display().to_string(), metadata.ino()));
        }
    }
    used.sort();
    used.dedup();
    used
}

/// From a line of /proc/PID/maps: `addresses rights offset device inode path`.
fn mapped(line: &str) -> Option<(String, u64)> {
    let (left, name) = line.split_once("/dev/shm/")?;
    let inode = left.split_ascii_whitespace().nth(4)?.parse().ok()?;
    (!name.ends_with(" (deleted)")).then(|| (name.to_string(), inode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapped_file_is_read_with_its_inode_and_a_deleted_one_is_not() {
        let line = "7f00-7f01 rw-s 00000000 00:19 4242                       /dev/shm/a b";
        assert_eq!(mapped(line), Some(("a b".into(), 4242)));
        assert_eq!(mapped(&format!("{line} (deleted)")), None);
        assert_eq!(mapped("7f00-7f01 r-xp 00000000 fe:00 77 /usr/lib/libc.so.6"), None);
    }

    #[test]
    fn a_companion_holds_the_whole_name_of_its_owner() {
        assert!(is_named_after("sem.segment_7000_mutex", "segment_7000"));
        assert!(is_named_after("segment_7000.lock", "segment_7000"));
        assert!(!is_named_after("segment_70001", "segment_7000"));
        assert!(!is_named_after("mysegment_7000", "segment_7000"));
        assert!(!is_named_after("segment_7000", "segment_7000"));
        assert!(!is_named_after("sem.a", "a"));
    }

    #[test]
    fn what_is_in_use_stays_until_it_is_not_and_what_was_there_before_is_never_ours() {
        let folder = std::env::temp_dir().join(format!("wattwire-journal-{}", std::process::id()));
        let journal = Journal::new(folder.clone());
        let own = std::process::id() as i32;
        let path = |name: &str| {
            Path::new(FOLDER).join(format!("wattwire-test-{name}-{}", std::process::id()))
        };
        let old = fs::File::create(path("old")).unwrap();
        let before = inodes();
        let new = fs::File::create(path("new")).unwrap();
        let lock = path("new").with_extension("lock");
        fs::write(&lock, "held for moments only").unwrap();
        journal.observe("run1", &[own], &before);
        assert_eq!(journal.remove_unused("run1"), [lock]);
        drop((old, new));
        assert_eq!(journal.remove_unused("other"), Vec::<PathBuf>::new());
        assert_eq!(journal.remove_unused("run1"), [path("new")]);
        assert!(path("old").exists());
        fs::remove_file(path("old")).unwrap();
        fs::remove_dir_all(folder).unwrap();
    }
}
