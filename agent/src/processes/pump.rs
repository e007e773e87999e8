//! Reads a process's standard output, its standard error and its guard's status, in a separate
//! thread per process.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::ChildStdout;

use crate::clock;
use crate::guard::{Ended, Status};

/// Maximum size of a file that a node writes through the agent.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// Longer lines are split.
const LINE_BYTES_MAX: usize = 64 << 10;
/// Time for which the pipes may stay open after the guard has ended.
const DRAIN_NS: i64 = 1_000_000_000;

/// A file with a size limit. It counts the bytes beyond the limit and reports them in its last
/// line.
pub struct CappedFile {
    file: File,
    written: u64,
    omitted_bytes: u64,
    bytes_max: u64,
}

impl CappedFile {
    pub fn create(path: &Path) -> io::Result<CappedFile> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let file = File::create(path)?;
        Ok(CappedFile { file, written: 0, omitted_bytes: 0, bytes_max: FILE_BYTES_MAX })
    }

    pub fn write(&mut self, bytes: &[u8]) {
        let room = (self.bytes_max - self.written).min(bytes.len() as u64) as usize;
        // A full disk must not stop the node, so bytes that do not fit are only counted.
        let written = if self.file.write_all(&bytes[..room]).is_ok() { room } else { 0 };
        self.written += written as u64;
        self.omitted_bytes += (bytes.len() - written) as u64;
    }
}

impl Drop for CappedFile {
    fn drop(&mut self) {
        if self.omitted_bytes > 0 {
            let note = format!("\n[wattwire: {} more bytes were left out]\n", self.omitted_bytes);
            let _ = self.file.write_all(note.as_bytes());
        }
    }
}

/// Called for each line with its reception time in ns and its text without the line end.
pub type OnLine = Box<dyn FnMut(i64, &str) + Send>;

pub type OnBytes = Box<dyn FnMut(&[u8]) + Send>;

/// The destination of a process's output.
pub enum Sink {
    File(CappedFile),
    Lines(OnLine),
    /// Called with each part of the output, without a limit.
    Bytes(OnBytes),
}

/// A stream with its incomplete last line.
pub struct Stream {
    fd: Option<File>,
    partial: Vec<u8>,
    sink: Sink,
}

impl Stream {
    pub fn new(fd: OwnedFd, sink: Sink) -> Stream {
        Stream { fd: Some(fd.into()), partial: Vec::new(), sink }
    }

    fn poll_fd(&self) -> libc::pollfd {
        let fd = self.fd.as_ref().map_or(-1, |file| file.as_raw_fd());
        libc::pollfd { fd, events: libc::POLLIN, revents: 0 }
    }

    fn take(&mut self, buffer: &mut [u8]) {
        let Some(file) = &mut self.fd else { return };
        let length = match file.read(buffer) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return,
            Err(_) => 0,
        };
        let t_ns = clock::monotonic_ns();
        if length == 0 {
            self.fd = None;
        }
        match &mut self.sink {
            Sink::File(file) => file.write(&buffer[..length]),
            Sink::Bytes(on_bytes) => on_bytes(&buffer[..length]),
            Sink::Lines(on_line) => {
                self.partial.extend_from_slice(&buffer[..length]);
                let ended = self.fd.is_none() || self.partial.len() > LINE_BYTES_MAX;
                split_lines(&mut self.partial, ended, t_ns, on_line);
            }
        }
    }
}

fn split_lines(partial: &mut Vec<u8>, ended: bool, t_ns: i64, on_line: &mut OnLine) {
    let mut begin = 0;
    while let Some(length) = partial[begin..].iter().position(|byte| *byte == b'\n') {
        on_line(t_ns, &String::from_utf8_lossy(&partial[begin..begin + length]));
        begin += length + 1;
    }
    partial.drain(..begin);
    if ended && !partial.is_empty() {
        on_line(t_ns, &String::from_utf8_lossy(partial));
        partial.clear();
    }
}

/// Reads until the guard and the streams have ended. If the guard was killed, returns None and
/// calls `lost` as soon as its pipe closes.
pub fn until_ended(
    status: &mut BufReader<ChildStdout>,
    streams: &mut [Stream; 2],
    lost: impl Fn(),
) -> Option<Ended> {
    let mut buffer = vec![0u8; 64 << 10];
    let mut ended = None;
    let mut guard_ended_ns = None;
    loop {
        let status_fd = if guard_ended_ns.is_some() { -1 } else { status.get_ref().as_raw_fd() };
        let mut polled = [
            streams[0].poll_fd(),
            streams[1].poll_fd(),
            libc::pollfd { fd: status_fd, events: libc::POLLIN, revents: 0 },
        ];
        if polled.iter().all(|entry| entry.fd < 0) {
            return ended;
        }
        // SAFETY: `polled` has three entries.
        unsafe {
            libc::poll(polled.as_mut_ptr(), 3, if guard_ended_ns.is_some() { 50 } else { -1 })
        };
        for (stream, entry) in streams.iter_mut().zip(&polled) {
            if entry.revents != 0 {
                stream.take(&mut buffer);
            }
        }
        if polled[2].revents != 0 {
            let mut line = String::new();
            match status.read_line(&mut line) {
                Ok(length) if length > 0 => {
                    if let Ok(Status::Ended(end)) = serde_json::from_str(&line) {
                        ended = Some(end);
                    }
                }
                _ => {
                    guard_ended_ns = Some(clock::monotonic_ns());
                    if ended.is_none() {
                        lost();
                    }
                }
            }
        }
        if guard_ended_ns.is_some_and(|since| clock::monotonic_ns() > since + DRAIN_NS) {
            return ended;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn a_file_at_its_limit_reports_the_number_of_omitted_bytes() {
        let path = std::env::temp_dir().join(format!("wattwire-capped-{}", std::process::id()));
        let mut file = CappedFile::create(&path).unwrap();
        file.bytes_max = 5;
        file.write(b"abc");
        file.write(b"defg");
        drop(file);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(text, "abcde\n[wattwire: 2 more bytes were left out]\n");
    }

    #[test]
    fn lines_are_split_at_line_ends_and_the_end_completes_the_last_line() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let received = lines.clone();
        let mut on_line: OnLine =
            Box::new(move |_, line| received.lock().unwrap().push(line.to_string()));
        let mut partial = b"one\ntw".to_vec();
        split_lines(&mut partial, false, 1, &mut on_line);
        partial.extend_from_slice(b"o\n\nthree");
        split_lines(&mut partial, true, 2, &mut on_line);
        assert_eq!(*lines.lock().unwrap(), ["one", "two", "", "three"]);
    }
}
