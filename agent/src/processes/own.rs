//! Starting this program once more, as a guard or to try something; the names by which its
//! processes know each other, whatever file they were started from and through what.

use std::ffi::CStr;
use std::process::Command;

/// What a process of this program calls itself (/proc/PID/comm). At most 15 characters.
pub const AGENT: &CStr = c"wattwire-agent";
pub const GUARD: &CStr = c"wattwire-guard";

/// Takes a name for the calling thread, which has to be the process's first one.
pub fn call_itself(name: &CStr) {
    // SAFETY: a string that ends in zero and outlives the call.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// Names a program that runs this one: an emulator, where the kernel itself cannot start it.
const RUNNER: &str = "WATTWIRE_RUNNER";

/// This program, ready to be given its verb.
pub fn program() -> Command {
    match (std::env::var_os(RUNNER), std::env::current_exe()) {
        (Some(runner), Ok(own)) => {
            let mut command = Command::new(runner);
            command.arg(own);
            command
        }
        // Unlike the path, this is still the same program when the file was replaced meanwhile.
        _ => Command::new("/proc/self/exe"),
    }
}
