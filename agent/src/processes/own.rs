//! Starts this program again, as a guard or for a test. Defines the process names by which agents
//! and guards recognise each other, regardless of their executable file or runner.

use std::ffi::CStr;
use std::process::Command;

/// Process names of this program (/proc/PID/comm), at most 15 characters.
pub const AGENT: &CStr = c"wattwire-agent";
pub const GUARD: &CStr = c"wattwire-guard";

/// Sets the name of the calling thread, which must be the main thread of the process.
pub fn call_itself(name: &CStr) {
    // SAFETY: `name` is zero-terminated and outlives the call.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
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
