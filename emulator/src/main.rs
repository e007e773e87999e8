//! wattwire-link emulates the link between hosts on one machine: each host has a TAP device, and
//! frames pass a learning switch and the law of a link profile (docs/links.md).

mod capture;
mod emulation;
mod law;
mod live;
mod log;
mod logical;
mod profile;
mod random;
mod switch;
mod tap;
mod trace;

use std::path::Path;

use log::LogFile;
use profile::Profile;

const USAGE: &str = "\
usage: wattwire-link run PROFILE LOG   emulate until standard input ends
       wattwire-link law PROFILE LOG   apply the law to frames from standard input
       wattwire-link version           print the version";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["run", profile, log] => emulate(profile, log, live::run),
        ["law", profile, log] => emulate(profile, log, |profile, log| {
            logical::run(profile, log, std::io::stdin().lock())
        }),
        ["version"] => {
            println!("wattwire-link {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        _ => {
            eprintln!("{USAGE}");
            std::process::exit(2);
        }
    };
    if let Err(error) = result {
        eprintln!("wattwire-link: {error}");
        std::process::exit(1);
    }
}

fn emulate(
    profile: &str,
    log: &str,
    run: impl FnOnce(&Profile, LogFile) -> std::io::Result<()>,
) -> Result<(), String> {
    let text = std::fs::read_to_string(profile).map_err(|error| format!("{profile}: {error}"))?;
    let parsed = Profile::parse(&text).map_err(|error| format!("{profile}: {error}"))?;
    let file = LogFile::create(Path::new(log)).map_err(|error| format!("{log}: {error}"))?;
    run(&parsed, file).map_err(|error| error.to_string())
}
