//! Starting this program once more, as a guard or to try something.

use std::process::Command;

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
