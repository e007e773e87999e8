//! Starts the process of a guard, and learns when its program begins.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::io;
use std::os::fd::RawFd;

use serde::{Deserialize, Serialize};

use crate::clock;
use crate::cpus;

/// The descriptor to which a node writes its lines (clause C-05).
const LINES: RawFd = 3;

/// The process that the guard starts. The guard inherits the file descriptors from the agent.
#[derive(Serialize, Deserialize)]
pub struct Order {
    pub argv: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub cwd: String,
    pub stdin: RawFd,
    pub stdout: RawFd,
    pub stderr: RawFd,
    /// If true, `stdout` becomes descriptor 3, and standard output is redirected to standard error.
    #[serde(default)]
    pub lines_on_three: bool,
    /// Folder of the process's cgroup, if it has one.
    pub cgroup: Option<String>,
    /// The CPUs of the process; those of the guard if the list is empty.
    #[serde(default)]
    pub cpus: Vec<u32>,
}

fn strings(texts: impl Iterator<Item = String>) -> io::Result<Vec<CString>> {
    texts
        .map(|text| {
            CString::new(text).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
        })
        .collect()
}

fn pointers(texts: &[CString]) -> Vec<*const libc::c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
}

/// Data that the child needs between fork and exec, allocated before the fork.
struct Prepared {
    argv: Vec<*const libc::c_char>,
    env: Vec<*const libc::c_char>,
    cwd: CString,
    cgroup_procs: Option<CString>,
    cpus: Option<libc::cpu_set_t>,
    /// The descriptors that become 0, 1 (or `LINES`) and 2.
    fds: [RawFd; 3],
    lines_on_three: bool,
    /// The pipe for records of REPORT_BYTES, which closes when the program begins.
    report: RawFd,
    guard: libc::pid_t,
}

pub struct Started {
    pub pid: i32,
    /// Time in ns just before the process executed its program. Joining a cgroup precedes it, which
    /// takes 10 to 30 ms.
    pub t_ns: i64,
}

/// Starts the node. An error names the step that failed.
pub fn start(order: &Order) -> io::Result<Started> {
    let argv = strings(order.argv.iter().cloned())?;
    let env = strings(order.env.iter().map(|(key, value)| format!("{key}={value}")))?;
    // execvpe searches the PATH of the calling process, so the guard takes over the node's PATH.
    match order.env.get("PATH") {
        Some(path) => std::env::set_var("PATH", path),
        None => std::env::remove_var("PATH"),
    }
    let mut pipe = [0; 2];
    // SAFETY: `pipe` has room for two descriptors.
    if unsafe { libc::pipe2(pipe.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // Avoids descriptor `LINES`, which the child overwrites.
    // SAFETY: plain system calls on a descriptor that the guard owns.
    let report = unsafe { libc::fcntl(pipe[1], libc::F_DUPFD_CLOEXEC, LINES + 1) };
    if report < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the guard owns the descriptor and uses only its duplicate.
    unsafe { libc::close(pipe[1]) };
    let cgroup_procs = order.cgroup.as_ref().map(|folder| format!("{folder}/cgroup.procs"));
    let prepared = Prepared {
        argv: pointers(&argv),
        env: pointers(&env),
        cwd: CString::new(order.cwd.clone())?,
        cgroup_procs: cgroup_procs.map(CString::new).transpose()?,
        cpus: (!order.cpus.is_empty()).then(|| cpus::set_of(order.cpus.iter().copied())),
        fds: [order.stdin, order.stdout, order.stderr],
        lines_on_three: order.lines_on_three,
        report,
        // SAFETY: plain system call.
        guard: unsafe { libc::getpid() },
    };
    // SAFETY: the guard has a single thread, and the child makes only async-signal-safe calls.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: see `become_node`.
        unsafe { become_node(&prepared) }
    }
    // SAFETY: closes only the guard's writing end; the child's closes on exec or exit.
    unsafe { libc::close(report) };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    let reports = [read_report(pipe[0]), read_report(pipe[0])];
    // SAFETY: the guard owns the descriptor and has read it to its end.
    unsafe { libc::close(pipe[0]) };
    let failed = match reports {
        [Some(Report { errno: 0, t_ns, .. }), None] => return Ok(Started { pid, t_ns }),
        [_, Some(failed)] | [Some(failed), None] => failed,
        // Somebody killed the child.
        [None, None] => Report { step: EXECUTE, errno: libc::ESRCH, t_ns: 0 },
    };
    // SAFETY: reaps the child, which has just exited.
    unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
    let error = io::Error::from_raw_os_error(failed.errno);
    Err(io::Error::new(error.kind(), explain(failed.step, order, &error)))
}

// The steps of the child.
const JOIN_CGROUP: i32 = 0;
const TAKE_CPUS: i32 = 1;
const ENTER_DIRECTORY: i32 = 2;
const EXECUTE: i32 = 3;

/// The child's report on a step, whose last is that it begins to execute its program (`errno` is
/// 0), or that a step has failed.
#[repr(C)]
#[derive(Default)]
struct Report {
    step: i32,
    errno: i32,
    t_ns: i64,
}

/// A pipe keeps writes of this size whole.
const REPORT_BYTES: usize = std::mem::size_of::<Report>();

fn explain(step: i32, order: &Order, error: &io::Error) -> String {
    match step {
        JOIN_CGROUP => {
            format!("joining cgroup {}: {error}", order.cgroup.as_deref().unwrap_or("(none)"))
        }
        TAKE_CPUS => format!(
            "cpus: found {:?}: {error}; allowed: CPUs of this host that are online and in the \
             agent's cpuset",
            order.cpus
        ),
        ENTER_DIRECTORY => format!("cwd {}: {error}", order.cwd),
        _ => {
            let path = order.env.get("PATH").map_or("(not set)", |path| path.as_str());
            let program = order.argv.first().map_or("(empty argv)", |program| program.as_str());
            format!("argv[0] {program}: {error}; PATH is {path}, cwd is {}", order.cwd)
        }
    }
}

/// Returns the next report of the child; None if its program has begun, or if it has ended.
fn read_report(fd: RawFd) -> Option<Report> {
    let mut report = Report::default();
    // SAFETY: the read is limited to the size of `report`, any bytes of which are valid.
    let length = unsafe { libc::read(fd, (&raw mut report).cast(), REPORT_BYTES) };
    (length == REPORT_BYTES as isize).then_some(report)
}

/// # Safety
/// Runs in the child between fork and exec. It makes only async-signal-safe calls and never
/// allocates.
unsafe fn become_node(prepared: &Prepared) -> ! {
    libc::setpgid(0, 0);
    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    if libc::getppid() != prepared.guard {
        // The guard died before the call to prctl.
        libc::_exit(127);
    }
    if let Some(path) = &prepared.cgroup_procs {
        let fd = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if fd < 0 || libc::write(fd, c"0".as_ptr().cast(), 1) != 1 {
            exit_with_error(prepared, JOIN_CGROUP);
        }
        libc::close(fd);
    }
    if let Some(cpus) = &prepared.cpus {
        // Before exec, so that a library sizes its pool of threads by these CPUs.
        if !take_cpus(cpus) {
            exit_with_error(prepared, TAKE_CPUS);
        }
    }
    if libc::chdir(prepared.cwd.as_ptr()) != 0 {
        exit_with_error(prepared, ENTER_DIRECTORY);
    }
    let [stdin, stdout, stderr] = prepared.fds;
    move_to(stdin, libc::STDIN_FILENO);
    move_to(stderr, libc::STDERR_FILENO);
    if prepared.lines_on_three {
        move_to(stdout, LINES);
        libc::dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO);
    } else {
        move_to(stdout, libc::STDOUT_FILENO);
    }
    let mut none: libc::sigset_t = std::mem::zeroed();
    libc::sigemptyset(&mut none);
    libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
    libc::signal(libc::SIGPIPE, libc::SIG_DFL);
    report(prepared, EXECUTE, 0);
    libc::execvpe(prepared.argv[0], prepared.argv.as_ptr(), prepared.env.as_ptr());
    exit_with_error(prepared, EXECUTE)
}

/// Restricts this process to these CPUs. The kernel leaves out CPUs of the set that the process may
/// not use, so the set is read again; a difference is the error EINVAL.
///
/// # Safety
/// As `become_node`.
unsafe fn take_cpus(cpus: &libc::cpu_set_t) -> bool {
    let size = std::mem::size_of::<libc::cpu_set_t>();
    if libc::sched_setaffinity(0, size, cpus) != 0 {
        return false;
    }
    let mut taken: libc::cpu_set_t = std::mem::zeroed();
    if libc::sched_getaffinity(0, size, &mut taken) != 0 {
        return false;
    }
    let is_same = libc::CPU_EQUAL(cpus, &taken);
    if !is_same {
        *libc::__errno_location() = libc::EINVAL;
    }
    is_same
}

/// # Safety
/// As `become_node`.
unsafe fn move_to(fd: RawFd, target: RawFd) {
    if fd != target {
        libc::dup2(fd, target);
        libc::close(fd);
    }
}

/// # Safety
/// As `become_node`.
unsafe fn exit_with_error(prepared: &Prepared, step: i32) -> ! {
    report(prepared, step, *libc::__errno_location());
    libc::_exit(127)
}

/// # Safety
/// As `become_node`.
unsafe fn report(prepared: &Prepared, step: i32, errno: i32) {
    let report = Report { step, errno, t_ns: clock::monotonic_ns() };
    libc::write(prepared.report, (&raw const report).cast(), REPORT_BYTES);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::{AsRawFd, IntoRawFd};
    use std::path::Path;
    use std::time::Duration;
    use std::{fs, thread};

    const JOINING: Duration = Duration::from_millis(80);

    fn order(folder: &Path, program: &str) -> Order {
        let null = || fs::File::options().read(true).write(true).open("/dev/null").unwrap();
        let [stdin, stdout, stderr] = [null(), null(), null()].map(IntoRawFd::into_raw_fd);
        Order {
            argv: vec![program.into()],
            env: BTreeMap::from([("PATH".into(), std::env::var("PATH").unwrap())]),
            cwd: "/".into(),
            stdin,
            stdout,
            stderr,
            lines_on_three: false,
            cgroup: Some(folder.display().to_string()),
            cpus: Vec::new(),
        }
    }

    /// Starts `program` with a cgroup whose file takes the child only after `JOINING`. Returns the
    /// result and the time (ns) at which the child could join.
    fn start_slowly(name: &str, program: &str) -> (io::Result<Started>, i64) {
        let folder =
            std::env::temp_dir().join(format!("wattwire-child-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let procs = folder.join("cgroup.procs");
        let path = CString::new(procs.to_str().unwrap()).unwrap();
        // SAFETY: plain system call on a string that outlives it.
        assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
        // The child's `open` waits for a reader of the pipe.
        let reader = thread::spawn(move || {
            thread::sleep(JOINING);
            let joinable_ns = clock::monotonic_ns();
            let file = fs::File::open(procs).unwrap();
            assert!(file.as_raw_fd() > 2);
            (joinable_ns, file)
        });
        let started = start(&order(&folder, program));
        let (joinable_ns, _file) = reader.join().unwrap();
        fs::remove_dir_all(&folder).unwrap();
        (started, joinable_ns)
    }

    #[test]
    fn the_start_is_the_time_of_exec_and_not_that_of_the_fork() {
        let (started, joinable_ns) = start_slowly("exec", "true");
        let started = started.unwrap();
        assert!(started.t_ns >= joinable_ns);
        assert!(started.t_ns <= clock::monotonic_ns());
        // SAFETY: reaps the child of this test.
        assert_eq!(unsafe { libc::waitpid(started.pid, std::ptr::null_mut(), 0) }, started.pid);
    }

    #[test]
    fn a_program_that_cannot_begin_is_an_error_after_its_report() {
        let (started, _) = start_slowly("missing", "no-such-program-here");
        let error = started.err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().starts_with("argv[0] no-such-program-here: "));
    }
}
