//! Starts the kit's examples as nodes and exchanges lines with them.

use std::fs::File;
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{json, Value};

const CAPABILITIES: [&str; 9] = [
    "encoding.bytes",
    "encoding.text",
    "pacing.kit",
    "pacing.native",
    "loop.open",
    "loop.closed",
    "reply.echo",
    "reply.ack",
    "async_client",
];

/// Returns the first valid spec of the contract's vectors with these changes. It declares its role
/// and all capabilities of the examples.
pub fn spec(changes: &Value) -> Value {
    let vectors = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../contract/vectors");
    let text = std::fs::read(vectors.join("spec.json")).expect("the contract's vectors");
    let vectors: Value = serde_json::from_slice(&text).expect("JSON");
    let mut spec = vectors["valid"][0]["spec"].clone();
    for (key, value) in changes.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    spec["declared.roles"] = json!([spec["role"]]);
    spec["declared.capabilities"] = json!(CAPABILITIES);
    spec
}

pub struct Node {
    name: String,
    process: Child,
    lines: Lines<BufReader<File>>,
}

impl Node {
    /// Starts an example with this spec. `folder` receives the node's files.
    pub fn start(example: &str, spec: &Value, folder: &Path) -> Node {
        std::fs::create_dir_all(folder).unwrap();
        let path = folder.join("spec.json");
        std::fs::write(&path, spec.to_string()).unwrap();
        // Cargo puts examples in a sibling of the tests' folder.
        let program = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().to_owned();
        let mut command = Command::new(program.join("examples").join(example));
        command.arg("--spec").arg(&path).arg("--out").arg(folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let (lines, lines_of_node) = pipe();
        let fd = lines_of_node.as_raw_fd();
        // SAFETY: dup2 is async-signal-safe.
        unsafe {
            command.pre_exec(move || (libc::dup2(fd, 3) == 3).then_some(()).ok_or_else(last_error))
        };
        let process = command.spawn().expect("cargo test builds the examples");
        let name = format!("{example} {}", spec["role"]);
        Node { name, process, lines: BufReader::new(lines).lines() }
    }

    /// Returns the object of the next line with this keyword. Panics at an error of the node.
    pub fn wait(&mut self, keyword: &str) -> Value {
        loop {
            let line = self.lines.next().unwrap_or_else(|| panic!("no {keyword} of {}", self.name));
            let line = line.unwrap();
            assert!(!line.starts_with("ERROR"), "{}: {line}", self.name);
            if let Some(object) = line.strip_prefix(keyword) {
                return serde_json::from_str(object).unwrap();
            }
        }
    }

    pub fn tell(&mut self, line: &str) {
        writeln!(self.process.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Waits until the node ends without an error. Returns its standard output.
    pub fn output(mut self) -> String {
        let _input = self.process.stdin.take(); // its end would end the node (C-09)
        let output = self.process.wait_with_output().unwrap();
        assert!(output.status.success(), "{}: {}", self.name, output.status);
        String::from_utf8(output.stdout).unwrap()
    }
}

fn last_error() -> std::io::Error {
    std::io::Error::last_os_error()
}

fn pipe() -> (File, File) {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for two descriptors, whose ownership passes to the files.
    unsafe {
        assert_eq!(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC), 0);
        (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1]))
    }
}
