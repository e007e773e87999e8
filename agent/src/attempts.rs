//! The folders below `<cache>/attempts` that this agent made. They do not outlast it, because a
//! controller that no longer answers cannot remove the files of its runs.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use crate::files::{self, Remove};

pub struct Attempts {
    folder: PathBuf,
    made: BTreeSet<PathBuf>,
}

impl Attempts {
    pub fn new(folder: PathBuf) -> Attempts {
        Attempts { folder, made: BTreeSet::new() }
    }

    /// Notes the folder of the attempt that contains `path`, unless `path` is elsewhere.
    pub fn note(&mut self, path: &Path) {
        let below = path.strip_prefix(&self.folder).ok();
        if let Some(Component::Normal(name)) = below.and_then(|below| below.components().next()) {
            self.made.insert(self.folder.join(name));
        }
    }

    /// Removes the noted folders that the controller has not removed.
    pub fn remove_all(&mut self) {
        for path in std::mem::take(&mut self.made) {
            if let Err(problem) = files::remove(&Remove { path }, &self.folder) {
                eprintln!("wattwire-agent: {}", problem.message);
            }
        }
    }
}
