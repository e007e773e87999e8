//! Selects the cgroup mode (`rung`): delegated v2, v1 (cpuacct), a systemd user scope, or none.
//! Existing files do not prove that a mode works, so the agent moves a test process into a cgroup.

use std::ffi::{CString, OsStr};
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::members;
use crate::own::{self, Identity};
use crate::tree_file::parse_number;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rung {
    V2,
    V1,
    Scope,
    None,
}

impl Rung {
    pub fn name(self) -> &'static str {
        match self {
            Rung::V2 => "v2",
            Rung::V1 => "v1",
            Rung::Scope => "scope",
            Rung::None => "none",
        }
    }
}

/// The place where this agent creates cgroups.
pub struct Cgroups {
    pub rung: Rung,
    /// The agent's folder, `…/wattwire-<identity>` (see `own::Identity`).
    pub folder: Option<PathBuf>,
    /// Descriptions of the functions that a missing right disables.
    pub lost: Vec<String>,
}

/// Set in the environment of an agent that runs inside a delegated scope.
const SCOPED: &str = "WATTWIRE_SCOPED";
const FORCE: &str = "WATTWIRE_CGROUP";
const PREFIX: &str = "wattwire-";

impl Cgroups {
    pub fn find() -> Cgroups {
        let forced = std::env::var(FORCE).unwrap_or_default();
        let v2 = if std::env::var_os(SCOPED).is_some() { Rung::Scope } else { Rung::V2 };
        let candidates: &[Rung] = match forced.as_str() {
            "none" => &[],
            "v1" => &[Rung::V1],
            "v2" => &[v2],
            _ => &[v2, Rung::V1],
        };
        let mut refused = Vec::new();
        for rung in candidates {
            match try_rung(*rung) {
                Ok(folder) => {
                    return Cgroups { rung: *rung, folder: Some(folder), lost: Vec::new() }
                }
                Err(error) => refused.push(format!("{}: {error}", rung.name())),
            }
        }
        if !forced.is_empty() {
            refused.push(format!("{FORCE}={forced} allows no other mode"));
        }
        Cgroups { rung: Rung::None, folder: None, lost: losses(&refused) }
    }

    /// Creates the cgroup of a process. Returns None in mode `none`.
    pub fn make(&self, run: &str, process: &str) -> io::Result<Option<Cgroup>> {
        let Some(folder) = &self.folder else { return Ok(None) };
        let name: String = format!("{run}-{process}")
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '_' })
            .collect();
        fs::create_dir_all(folder)?;
        for attempt in 1.. {
            let path = match attempt {
                1 => folder.join(&name),
                _ => folder.join(format!("{name}.{attempt}")),
            };
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Some(Cgroup { usage: usage_file(self.rung, &path), path })),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            }
        }
        unreachable!("the loop ends only by a return")
    }

    pub fn remove(&self) {
        if let Some(folder) = &self.folder {
            remove_tree(folder);
        }
    }
}

fn losses(refused: &[String]) -> Vec<String> {
    vec![
        format!("the agent cannot create cgroups ({})", refused.join("; ")),
        "the CPU time of children that start and end between samples has a resolution of 10 ms \
         until the process ends; the guard then reports the exact value"
            .into(),
        "the agent identifies leftovers only by parent process and environment; it misses a \
         process that clears its environment and outlives its killed guard"
            .into(),
        "to enable cgroups, run under `systemd-run --user --scope -p Delegate=yes` or as root"
            .into(),
    ]
}

/// The cgroup of one process.
#[derive(Clone, Debug)]
pub struct Cgroup {
    pub path: PathBuf,
    /// The file with its CPU time: `cpu.stat` (v2) or `cpuacct.usage` (v1).
    pub usage: PathBuf,
}

impl Cgroup {
    pub fn pids(&self) -> Vec<i32> {
        let text = fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default();
        members::parse_pids(&text).collect()
    }

    /// Returns the processes in this cgroup and in its nested cgroups.
    pub fn pids_below(&self) -> Vec<i32> {
        pids_below(&self.path)
    }

    /// Returns the CPU time in ns of all processes that ever ran in the cgroup.
    pub fn usage_ns(&self) -> Option<i64> {
        parse_usage_ns(&fs::read(&self.usage).ok()?)
    }

    pub fn remove(&self) {
        remove_tree(&self.path);
    }
}

fn pids_below(folder: &Path) -> Vec<i32> {
    let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    let mut pids: Vec<i32> = members::parse_pids(&text).collect();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            pids.extend(pids_below(&entry.path()));
        }
    }
    pids
}

/// Parses the CPU time in ns from `cpu.stat` (usage_usec) or `cpuacct.usage` (ns).
pub fn parse_usage_ns(bytes: &[u8]) -> Option<i64> {
    let (digits, unit_ns) = match bytes.strip_prefix(b"usage_usec ") {
        Some(microseconds) => (microseconds, 1000),
        None => (bytes, 1),
    };
    i64::try_from(parse_number(digits)?).ok()?.checked_mul(unit_ns)
}

fn usage_file(rung: Rung, path: &Path) -> PathBuf {
    path.join(if rung == Rung::V1 { "cpuacct.usage" } else { "cpu.stat" })
}

/// Removes a cgroup and its nested cgroups. Retries for 1 s, because the cgroup stays busy until
/// killed processes have exited.
pub fn remove_tree(folder: &Path) -> bool {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_tree(&entry.path());
        }
    }
    let until = Instant::now() + Duration::from_secs(1);
    while let Err(error) = fs::remove_dir(folder) {
        if error.raw_os_error() != Some(libc::EBUSY) || Instant::now() > until {
            return !folder.exists();
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    true
}

/// Returns the folder for the agent's cgroups, which is the cgroup of this process.
pub fn base(rung: Rung) -> io::Result<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let own = fs::read_to_string("/proc/self/cgroup")?;
    base_from(rung, &mounts, &own)
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "not mounted on this host"))
}

fn base_from(rung: Rung, mounts: &str, own: &str) -> Option<PathBuf> {
    let v1 = rung == Rung::V1;
    let mount = mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut kind = right.split(' ');
        let (kind, options) = (kind.next()?, kind.nth(1)?);
        let fits = match v1 {
            true => kind == "cgroup" && options.split(',').any(|option| option == "cpuacct"),
            false => kind == "cgroup2",
        };
        let mut fields = left.split(' ');
        let (root, point) = (fields.nth(3)?, fields.next()?);
        fits.then(|| (root.to_string(), point.to_string()))
    })?;
    let path = own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let fits = match v1 {
            true => controllers.split(',').any(|controller| controller == "cpuacct"),
            false => number == "0" && controllers.is_empty(),
        };
        fits.then(|| path.to_string())
    })?;
    // In a container the mount may show only a subtree, and paths are relative to its root.
    let below = path.strip_prefix(&mount.0).unwrap_or(&path);
    Some(Path::new(&mount.1).join(below.trim_start_matches('/')))
}

/// Creates the agent's folder and moves a short-lived child into a cgroup below it.
fn try_rung(rung: Rung) -> io::Result<PathBuf> {
    let base = base(rung)?;
    remove_orphans(&base);
    let folder = base.join(format!("{PREFIX}{}", Identity::own()));
    fs::create_dir_all(&folder)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", folder.display())))?;
    let probe = folder.join("probe");
    let outcome = fs::create_dir(&probe)
        .and_then(|()| join_once(&probe))
        .and_then(|()| fs::read(usage_file(rung, &probe)).map(|_| ()));
    let _ = fs::remove_dir(&probe);
    if let Err(error) = outcome {
        let _ = fs::remove_dir(&folder);
        return Err(error);
    }
    Ok(folder)
}

/// Returns whether a cgroup of this name belongs to an agent that has ended.
pub fn is_of_ended_agent(name: &OsStr) -> bool {
    let identity = name.to_str().and_then(|name| Identity::parse(name.strip_prefix(PREFIX)?));
    identity.is_some_and(Identity::has_ended)
}

/// Removes empty folders of killed agents that had no guard to remove them.
fn remove_orphans(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        if is_of_ended_agent(&entry.file_name()) {
            let _ = fs::remove_dir(entry.path().join("probe"));
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn join_once(cgroup: &Path) -> io::Result<()> {
    let procs = CString::new(cgroup.join("cgroup.procs").to_string_lossy().into_owned())?;
    let mut child = own::program();
    child.arg("version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: the closure makes async-signal-safe calls only.
    unsafe {
        child.pre_exec(move || {
            let fd = libc::open(procs.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
            if fd < 0 || libc::write(fd, c"0".as_ptr().cast(), 1) != 1 {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        });
    }
    child.status().map(|_| ())
}

/// Restarts the agent in a delegated systemd user scope, in which cgroup v2 works, if no other
/// mode works. Returns if the scope is not needed or not available.
pub fn enter_scope_if_needed() {
    let forced = std::env::var_os(FORCE).is_some_and(|value| !value.is_empty());
    if forced || std::env::var_os(SCOPED).is_some() || !user_bus_is_there() {
        return;
    }
    if Cgroups::find().rung != Rung::None {
        return;
    }
    let scope = ["--user", "--scope", "--quiet", "--collect", "-p", "Delegate=yes", "--"];
    if !succeeds_within(Command::new("systemd-run").args(scope).arg("true"), 5) {
        return;
    }
    let Ok(own) = std::env::current_exe() else { return };
    let error =
        Command::new("systemd-run").args(scope).arg(own).arg("serve").env(SCOPED, "1").exec();
    eprintln!("wattwire-agent: systemd-run: {error}; continuing without a scope");
}

fn user_bus_is_there() -> bool {
    std::env::var_os("XDG_RUNTIME_DIR")
        .is_some_and(|folder| Path::new(&folder).join("bus").exists())
}

fn succeeds_within(command: &mut Command, seconds: u64) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = quiet.spawn() else { return false };
    let until = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < until {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) => std::thread::sleep(Duration::from_millis(5)),
            Err(_) => return false,
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
30 29 0:25 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
31 29 0:26 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw";
    const OWN: &str = "2:cpu,cpuacct:/jobs/7\n0::/user.slice/a.scope";

    #[test]
    fn the_base_of_each_rung_is_the_cgroup_of_this_process() {
        let v2 = base_from(Rung::V2, HYBRID, OWN).unwrap();
        assert_eq!(v2, Path::new("/sys/fs/cgroup/unified/user.slice/a.scope"));
        let v1 = base_from(Rung::V1, HYBRID, OWN).unwrap();
        assert_eq!(v1, Path::new("/sys/fs/cgroup/cpu,cpuacct/jobs/7"));
    }

    #[test]
    fn in_a_container_the_base_is_relative_to_the_mounted_subtree() {
        let mounts = "31 29 0:26 /box/1 /sys/fs/cgroup rw - cgroup2 cgroup rw";
        let base = base_from(Rung::V2, mounts, "0::/box/1").unwrap();
        assert_eq!(base, Path::new("/sys/fs/cgroup/"));
    }

    #[test]
    fn rung_v1_needs_the_cpuacct_controller() {
        assert_eq!(base_from(Rung::V1, "31 29 0:26 / /c rw - cgroup2 cgroup rw", "0::/"), None);
    }

    #[test]
    fn both_formats_of_the_usage_file_are_parsed_to_nanoseconds() {
        assert_eq!(parse_usage_ns(b"usage_usec 12\nuser_usec 1\n"), Some(12_000));
        assert_eq!(parse_usage_ns(b"1234567\n"), Some(1_234_567));
        assert_eq!(parse_usage_ns(b"nonsense"), None);
    }
}
