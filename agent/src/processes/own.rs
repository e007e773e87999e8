//! Starts this program again, as a guard or for a test. Defines the process names by which agents
//! and guards recognise each other, regardless of their executable file or runner, and the identity
//! by which an agent names its cgroups and files.

use std::ffi::CStr;
use std::fmt;
use std::fs;
use std::process::Command;

use crate::members::{self, Stat};

/// Process names of this program (/proc/PID/comm), at most 15 characters.
pub const AGENT: &CStr = c"wattwire-agent";
pub const GUARD: &CStr = c"wattwire-guard";

/// Sets the name of the calling thread, which must be the main thread of the process.
pub fn call_itself(name: &CStr) {
    // SAFETY: `name` is zero-terminated and outlives the call.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// An agent in the names of its cgroup and files. A process id alone names other processes later
/// and in other PID namespaces, which may share the cgroups and the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The inode of the PID namespace in which `pid` counts.
    namespace: u64,
    /// The start of the process since the boot of the kernel.
    start_ticks: i64,
    pid: i32,
}

impl Identity {
    pub fn own() -> Identity {
        let pid = std::process::id() as i32;
        Identity { namespace: pid_namespace(), start_ticks: start_ticks(pid).unwrap_or(0), pid }
    }

    /// Parses the text of `Display`.
    pub fn parse(text: &str) -> Option<Identity> {
        let mut fields = text.split('-');
        let namespace = fields.next()?.parse().ok()?;
        let start_ticks = fields.next()?.parse().ok()?;
        let pid = fields.next()?.parse().ok()?;
        fields.next().is_none().then_some(Identity { namespace, start_ticks, pid })
    }

    /// Returns whether the agent has ended. Of another PID namespace, this is never known.
    pub fn has_ended(self) -> bool {
        let is_alive =
            members::is_called(self.pid, AGENT) && start_ticks(self.pid) == Some(self.start_ticks);
        self.namespace == pid_namespace() && !is_alive
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}-{}", self.namespace, self.start_ticks, self.pid)
    }
}

/// Returns whether /proc lists the processes of this PID namespace. In that of another one, the
/// numbers of processes are those of other processes here.
pub fn proc_is_own() -> bool {
    let own = fs::read_link("/proc/self");
    own.is_ok_and(|link| link.to_str() == Some(&std::process::id().to_string()))
}

fn pid_namespace() -> u64 {
    let link = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let inode = link.to_str().and_then(|link| link.strip_prefix("pid:[")?.strip_suffix(']'));
    inode.and_then(|inode| inode.parse().ok()).unwrap_or(0)
}

/// Returns the start of a process on the boot clock of the kernel. /proc adds the offset of the
/// reader's time namespace, which other hosts of this machine may not have.
fn start_ticks(pid: i32) -> Option<i64> {
    let offsets = fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
    let line = offsets.lines().find_map(|line| line.strip_prefix("boottime"));
    let offset_s =
        line.and_then(|line| line.split_ascii_whitespace().next()?.parse().ok()).unwrap_or(0);
    // SAFETY: plain call.
    let ticks_per_s = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as i64;
    Some(Stat::read(pid)?.start_ticks as i64 - offset_s * ticks_per_s)
}

/// Names an emulator that runs this program if the kernel cannot execute it directly.
const RUNNER: &str = "WATTWIRE_RUNNER";

/// Returns a command for this program, without arguments.
pub fn program() -> Command {
    match (std::env::var_os(RUNNER), std::env::current_exe()) {
        (Some(runner), Ok(own)) => {
            let mut command = Command::new(runner);
            command.arg(own);
            command
        }
        // Unlike the path, this link still refers to this program after its file was replaced.
        _ => Command::new("/proc/self/exe"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_read_as_it_is_written_and_nothing_else_is_one() {
        let own = Identity::own();
        assert_eq!(Identity::parse(&own.to_string()), Some(own));
        for text in ["", "7", "1-2", "1-2-3-4", "1-2-x", "1-2-"] {
            assert_eq!(Identity::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_later_process_of_the_same_number_is_another_agent() {
        // This test is no agent, so no process of its namespace with its number is one.
        let own = Identity::own();
        assert!(own.has_ended());
        assert!(!Identity { namespace: own.namespace + 1, ..own }.has_ended());
    }
}
