//! Memory and threads of a process tree, from `statm` and `stat` at each reading and from
//! `smaps_rollup` at edges.

use std::sync::Arc;

use crate::members::Stat;
use crate::meter::{
    parse_number, Absent, Meter, Opened, Place, Reach, Samples, SeriesId, Subject, Tree,
};

/// Room for the longest file of this meter: `cgroup.procs` with several hundred processes.
const BUFFER_BYTES: usize = 8192;

struct ProcMemory {
    tree: Tree,
    page_bytes: u64,
    followed: Vec<Followed>,
    buffer: Vec<u8>,
}

struct Followed {
    subject: Arc<Subject>,
    rss: SeriesId,
    pss: SeriesId,
    threads: SeriesId,
    pids: Vec<i32>,
}

pub fn open(tree: &Tree) -> Result<Opened, Absent> {
    let page_bytes = match tree {
        // SAFETY: plain system call.
        Tree::Live => unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(1) as u64,
        Tree::Replay(_) => 4096,
    };
    let buffer = vec![0; BUFFER_BYTES];
    Ok(Opened::new(ProcMemory { tree: tree.clone(), page_bytes, followed: Vec::new(), buffer }))
}

impl Meter for ProcMemory {
    fn declare(&mut self, _samples: &mut Samples) {}

    fn follow(&mut self, subject: &Arc<Subject>, samples: &mut Samples) {
        self.followed.push(Followed {
            subject: subject.clone(),
            rss: samples.declare("rss", Place::of(&subject.name)),
            pss: samples.declare("pss", Place::of(&subject.name)),
            threads: samples.declare("threads", Place::of(&subject.name)),
            pids: Vec::new(),
        });
    }

    fn read(&mut self, samples: &mut Samples) {
        let ProcMemory { tree, page_bytes, followed, buffer } = self;
        let live = followed.iter_mut().filter(|followed| followed.subject.ended.get().is_none());
        for followed in live {
            followed.find_members(tree, buffer);
            samples.begin();
            match followed.sum(|pid| rss_pages(tree, pid, buffer)) {
                Some(pages) => samples.put(followed.rss, (pages * *page_bytes) as f64),
                None => samples.lost(followed.rss),
            }
            samples.begin();
            match followed.sum(|pid| threads(tree, pid, buffer)) {
                Some(count) => samples.put(followed.threads, count as f64),
                None => samples.lost(followed.threads),
            }
            if samples.edge {
                samples.begin();
                match followed.sum(|pid| pss_bytes(tree, pid, buffer)) {
                    Some(bytes) => samples.put(followed.pss, bytes as f64),
                    None => samples.lost(followed.pss),
                }
            }
        }
    }
}

impl Followed {
    fn find_members(&mut self, tree: &Tree, buffer: &mut [u8]) {
        self.pids.clear();
        match &self.subject.cgroup {
            Some(cgroup) if self.subject.reach == Reach::Guarded => {
                let folder = cgroup.path.to_str().unwrap_or_default().trim_start_matches('/');
                let text = tree.read_once(format_args!("{folder}/cgroup.procs"), buffer);
                let lines = text.unwrap_or_default().split(|byte| *byte == b'\n');
                self.pids.extend(lines.filter_map(|line| Some(parse_number(line)? as i32)));
            }
            _ => self.pids.extend(self.subject.pids(tree)),
        }
    }

    /// Returns the sum over the live members, or None if no member could be read.
    fn sum(&self, mut read: impl FnMut(i32) -> Option<u64>) -> Option<u64> {
        let mut sum = None;
        for pid in &self.pids {
            if let Some(value) = read(*pid) {
                sum = Some(sum.unwrap_or(0) + value);
            }
        }
        sum
    }
}

fn rss_pages(tree: &Tree, pid: i32, buffer: &mut [u8]) -> Option<u64> {
    let text = tree.read_once(format_args!("proc/{pid}/statm"), buffer).ok()?;
    parse_number(text.split(|byte| *byte == b' ').nth(1)?)
}

fn threads(tree: &Tree, pid: i32, buffer: &mut [u8]) -> Option<u64> {
    let text = tree.read_once(format_args!("proc/{pid}/stat"), buffer).ok()?;
    Some(Stat::parse(std::str::from_utf8(text).ok()?)?.threads)
}

fn pss_bytes(tree: &Tree, pid: i32, buffer: &mut [u8]) -> Option<u64> {
    let text = tree.read_once(format_args!("proc/{pid}/smaps_rollup"), buffer).ok()?;
    let line = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"Pss:"))?;
    Some(parse_number(line)? * 1024)
}
