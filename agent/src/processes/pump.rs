//! One thread per started thing: takes its lines, its errors and its guard's last word.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::ChildStdout;

use crate::clock;
use crate::guard::{Ended, Status};

/// What a file that a node writes through the agent may hold.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// A line longer than this is given on in pieces.
const LINE_BYTES_MAX: usize = 64 << 10;
/// How long the pipes may stay open once the guard has gone.
const DRAIN_NS: i64 = 1_000_000_000;

/// A file with a bound; what goes over it is counted, and the file's last line says so.
pub struct CappedFile {
    file: File,
    written: u64,
    left_out: u64,
    bytes_max: u64,
}

impl CappedFile {
    pub fn create(path: &Path) -> io::Result<CappedFile> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let file = File::create(path)?;
        Ok(CappedFile { file, written: 0, left_out: 0, bytes_max: FILE_BYTES_MAX })
    }

    pub fn write(&mut self, bytes: &[u8]) {
        let room = (self.bytes_max - self.written).min(bytes.len() as u64) as usize;
        // A full disk must not stop the node: what does not fit is counted like the rest.
        let kept = if self.file.write_all(&bytes[..room]).is_ok() { room } else { 0 };
        self.written += kept as u64;
        self.left_out += (bytes.len() - kept) as u64;
    }
}

impl Drop for CappedFile {
    fn drop(&mut self) {
        if self.left_out > 0 {
            let note = format!("\n[wattwire: {} more bytes were left out]\n", self.left_out);
            let _ = self.file.write_all(note.as_bytes());
        }
    }
}

/// Called with the time of reception (ns) and each line, without its end.
pub type GiveLine = Box<dyn FnMut(i64, &str) + Send>;

/// Where a stream of a started thing goes.
pub enum Sink {
    File(CappedFile),
    Lines(GiveLine),
}

/// One stream with what of it is not yet a whole line.
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
        let got = match file.read(buffer) {
            Ok(got) => got,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return,
            Err(_) => 0,
        };
        let t_ns = clock::monotonic_ns();
        if got == 0 {
            self.fd = None;
        }
        match &mut self.sink {
            Sink::File(file) => file.write(&buffer[..got]),
            Sink::Lines(give) => {
                self.partial.extend_from_slice(&buffer[..got]);
                let ended = self.fd.is_none() || self.partial.len() > LINE_BYTES_MAX;
                give_lines(&mut self.partial, ended, t_ns, give);
            }
        }
    }
}

fn give_lines(partial: &mut Vec<u8>, ended: bool, t_ns: i64, give: &mut GiveLine) {
    let mut begin = 0;
    while let Some(length) = partial[begin..].iter().position(|byte| *byte == b'\n') {
        give(t_ns, &String::from_utf8_lossy(&partial[begin..begin + length]));
        begin += length + 1;
    }
    partial.drain(..begin);
    if ended && !partial.is_empty() {
        give(t_ns, &String::from_utf8_lossy(partial));
        partial.clear();
    }
}

/// Moves everything until the guard is gone and the streams have ended. None: the guard was lost;
/// `lost` is called as soon as that is seen.
pub fn until_ended(
    status: &mut BufReader<ChildStdout>,
    streams: &mut [Stream; 2],
    lost: impl Fn(),
) -> Option<Ended> {
    let mut buffer = vec![0u8; 64 << 10];
    let mut ended = None;
    let mut guard_gone_ns = None;
    loop {
        let status_fd = if guard_gone_ns.is_some() { -1 } else { status.get_ref().as_raw_fd() };
        let mut polled = [
            streams[0].poll_fd(),
            streams[1].poll_fd(),
            libc::pollfd { fd: status_fd, events: libc::POLLIN, revents: 0 },
        ];
        if polled.iter().all(|entry| entry.fd < 0) {
            return ended;
        }
        // SAFETY: three entries.
        unsafe {
            libc::poll(polled.as_mut_ptr(), 3, if guard_gone_ns.is_some() { 50 } else { -1 })
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
                    if let Ok(Status::Ended(word)) = serde_json::from_str(&line) {
                        ended = Some(word);
                    }
                }
                _ => {
                    guard_gone_ns = Some(clock::monotonic_ns());
                    if ended.is_none() {
                        lost();
                    }
                }
            }
        }
        if guard_gone_ns.is_some_and(|since| clock::monotonic_ns() > since + DRAIN_NS) {
            return ended;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn a_file_over_its_bound_says_how_much_was_left_out() {
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
    fn lines_are_cut_at_their_ends_and_an_unfinished_one_comes_at_the_end() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = lines.clone();
        let mut give: GiveLine =
            Box::new(move |_, line| kept.lock().unwrap().push(line.to_string()));
        let mut partial = b"one\ntw".to_vec();
        give_lines(&mut partial, false, 1, &mut give);
        partial.extend_from_slice(b"o\n\nthree");
        give_lines(&mut partial, true, 2, &mut give);
        assert_eq!(*lines.lock().unwrap(), ["one", "two", "", "three"]);
    }
}
