//! Attaches to processes and cgroups that this agent did not start. The agent only measures them
//! and never signals, moves or ends them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde_json::{json, Value};

use crate::cgroup::Cgroup;
use crate::members::Stat;
use crate::meter::{Reach, Subject, Tree};
use crate::process::check_name;
use crate::protocol::{Answer, Kind, Problem};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attach {
    process: String,
    pid: Option<i32>,
    cgroup: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Detach {
    process: String,
}

/// The attached subjects by name.
#[derive(Default)]
pub struct Attached {
    table: BTreeMap<String, Arc<Subject>>,
}

impl Attached {
    pub fn subjects(&self) -> Vec<Arc<Subject>> {
        self.table.values().cloned().collect()
    }

    pub fn find(&self, process: &str) -> Option<Arc<Subject>> {
        self.table.get(process).cloned()
    }

    /// Makes a running process or cgroup a subject, and calls `started` with the subject.
    pub fn attach(&mut self, request: &Attach, started: impl Fn(&Arc<Subject>)) -> Answer {
        check_name("attach", "process", &request.process)?;
        if self.table.contains_key(&request.process) {
            let message = format!("attach: {:?} is already attached", request.process);
            return Err(Problem::new(Kind::Busy, message));
        }
        let (pid, cgroup, reach) = match (request.pid, &request.cgroup) {
            (Some(pid), None) => (running(pid)?, None, Reach::Below),
            (None, Some(folder)) => (0, Some(readable(folder)?), Reach::Cgroup),
            _ => return Err(Problem::usage("attach: exactly one of pid and cgroup is required")),
        };
        let usage = cgroup.as_ref().filter(|cgroup| cgroup.usage_ns().is_some());
        let answer_usage = usage.map(|cgroup| cgroup.usage.clone());
        let subject = Arc::new(Subject {
            name: request.process.clone(),
            pid,
            guard_pid: 0,
            reach,
            cgroup,
            ended: OnceLock::new(),
        });
        started(&subject);
        let pids = subject.pids(&Tree::Live);
        self.table.insert(subject.name.clone(), subject);
        Ok(json!({"pids": pids, "usage": answer_usage}))
    }

    pub fn detach(&mut self, request: &Detach) -> Answer {
        match self.table.remove(&request.process) {
            Some(_) => Ok(Value::Null),
            None => Err(Problem::failed(format!("detach: {:?} is not attached", request.process))),
        }
    }
}

fn running(pid: i32) -> Result<i32, Problem> {
    match Stat::read(pid).filter(|stat| stat.state != 'Z') {
        Some(_) if pid > 0 => Ok(pid),
        _ => Err(Problem::new(Kind::Absent, format!("attach: process {pid} is not running"))),
    }
}

fn readable(folder: &Path) -> Result<Cgroup, Problem> {
    let members = folder.join("cgroup.procs");
    std::fs::read(&members)
        .map_err(|error| Problem::io("attach: cannot read the cgroup:", &members, &error))?;
    let v1 = folder.join("cpuacct.usage");
    let usage = if v1.exists() { v1 } else { folder.join("cpu.stat") };
    Ok(Cgroup { path: folder.to_path_buf(), usage })
}
