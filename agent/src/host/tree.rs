//! The files that meters read. Their root is `/` on a live host. In tests it is a captured or
//! constructed tree with successive states.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::clock;
use crate::members;
use crate::perf::PerfCounter;
use crate::tree_file::{Replay, TreeFile};

/// A root for reading. Paths are relative to it, such as `proc/stat` or `sys/class/powercap`.
#[derive(Clone)]
pub enum Tree {
    Live,
    Replay(Arc<Replay>),
}

impl Tree {
    /// Opens a file for repeated reading.
    pub fn open(&self, path: &str) -> io::Result<TreeFile> {
        match self {
            Tree::Live => Ok(TreeFile::Live(File::open(Path::new("/").join(path))?)),
            Tree::Replay(replay) => {
                File::open(replay.find(path)?)?;
                Ok(TreeFile::Replay(replay.clone(), path.to_string()))
            }
        }
    }

    /// Returns the text of a small file without trailing white space.
    pub fn text(&self, path: &str) -> io::Result<String> {
        let path = match self {
            Tree::Live => Path::new("/").join(path),
            Tree::Replay(replay) => replay.find(path)?,
        };
        Ok(String::from_utf8_lossy(&fs::read(path)?).trim_end().to_string())
    }

    /// Opens and reads a file once. Does not allocate on a live host.
    pub fn read_once<'a>(
        &self,
        path: std::fmt::Arguments,
        buffer: &'a mut [u8],
    ) -> io::Result<&'a [u8]> {
        let file = match self {
            Tree::Live => {
                let mut text = [0u8; 256];
                let mut room = &mut text[..];
                room.write_fmt(format_args!("/{path}"))?;
                let unused = room.len();
                let length = text.len() - unused;
                File::open(std::ffi::OsStr::from_bytes(&text[..length]))?
            }
            Tree::Replay(replay) => File::open(replay.find(&path.to_string())?)?,
        };
        let length = file.read_at(buffer, 0)?;
        Ok(&buffer[..length])
    }

    /// Returns the agent's CPU time in ns. A replay reads the file `clock/agent`.
    pub fn own_cpu_ns(&self) -> Option<i64> {
        match self {
            Tree::Live => clock::read_ns(libc::CLOCK_PROCESS_CPUTIME_ID),
            Tree::Replay(_) => self.text("clock/agent").ok()?.parse().ok(),
        }
    }

    /// Returns the time of CLOCK_MONOTONIC in ns. A replay reads the file `clock/monotonic`.
    pub fn monotonic_ns(&self) -> Option<i64> {
        match self {
            Tree::Live => Some(clock::monotonic_ns()),
            Tree::Replay(_) => self.text("clock/monotonic").ok()?.parse().ok(),
        }
    }

    /// Returns all descendants of a process. A replay reads the numbers in the file `members/PID`.
    pub fn descendants(&self, pid: i32) -> Vec<i32> {
        match self {
            Tree::Live => members::descendants(pid),
            Tree::Replay(_) => {
                let text = self.text(&format!("members/{pid}")).unwrap_or_default();
                text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect()
            }
        }
    }

    /// Returns every process that is visible to this user. A replay reads the folders `proc/PID`.
    pub fn processes(&self) -> Vec<i32> {
        match self {
            Tree::Live => members::all(),
            Tree::Replay(_) => {
                let names = self.list("proc").unwrap_or_default();
                names.iter().filter_map(|name| name.parse().ok()).collect()
            }
        }
    }

    /// Returns the agent's process id. A replay reads the file `own/pid`.
    pub fn own_pid(&self) -> i32 {
        match self {
            Tree::Live => std::process::id() as i32,
            Tree::Replay(_) => self.text("own/pid").ok().and_then(|t| t.parse().ok()).unwrap_or(0),
        }
    }

    /// Describes the processes that `processes` omits; empty if it omits none. A replay reads the
    /// file `own/unseen`.
    pub fn unseen_processes(&self) -> String {
        match self {
            Tree::Live => unseen_processes(),
            Tree::Replay(_) => self.text("own/unseen").unwrap_or_default(),
        }
    }

    /// Returns the text of a user's configuration file in `$XDG_CONFIG_HOME/wattwire`. A replay
    /// reads the file `config/NAME`.
    pub fn user_config(&self, name: &str) -> Option<String> {
        match self {
            Tree::Live => fs::read_to_string(user_folder()?.join(name)).ok(),
            Tree::Replay(_) => self.text(&format!("config/{name}")).ok(),
        }
    }

    /// Opens the counter of a PMU's system-wide event on a CPU. A replay reads the file
    /// `perf/<pmu>/<config in hex>/cpu<number>`.
    pub fn perf_counter(&self, pmu: u32, config: u64, cpu: u32) -> io::Result<PerfCounter> {
        match self {
            Tree::Live => PerfCounter::open(pmu, config, cpu),
            Tree::Replay(_) => {
                let file = self.open(&format!("perf/{pmu}/{config:#x}/cpu{cpu}"))?;
                Ok(PerfCounter::Replay(file))
            }
        }
    }

    /// Returns the sorted names in a folder.
    pub fn list(&self, path: &str) -> io::Result<BTreeSet<String>> {
        match self {
            Tree::Live => {
                let entries = fs::read_dir(Path::new("/").join(path))?.flatten();
                Ok(entries.filter_map(|entry| entry.file_name().into_string().ok()).collect())
            }
            Tree::Replay(replay) => replay.list(path),
        }
    }

    /// Returns the CPU time of a process in ns, including ended threads. A replay reads the file
    /// `clock/PID`.
    pub fn process_cpu_ns(&self, pid: i32) -> Option<i64> {
        match self {
            Tree::Live => clock::process_cpu_ns(pid),
            Tree::Replay(_) => self.text(&format!("clock/{pid}")).ok()?.parse().ok(),
        }
    }
}

/// The inode of the initial PID namespace (include/linux/proc_ns.h, PROC_PID_INIT_INO).
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

fn unseen_processes() -> String {
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    if namespace != Path::new(FIRST_PID_NAMESPACE) {
        return "those outside this container (PID namespace)".into();
    }
    match fs::metadata("/proc/1") {
        Ok(_) => String::new(),
        Err(_) => "those of other users (/proc is mounted with hidepid)".into(),
    }
}

/// Returns the folder of this user's configuration files (XDG base directory specification).
fn user_folder() -> Option<PathBuf> {
    let absolute = |name: &str| {
        let path = PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    let base = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(base.join("wattwire"))
}
