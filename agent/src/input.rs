//! Reads the lines of a controller, and notices a controller that no longer writes.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

const LINE_BYTES_MAX: usize = 128 << 20;
const READ_BYTES: usize = 64 << 10;

#[derive(Debug, PartialEq)]
pub enum Next {
    Line(Vec<u8>),
    /// A line with more than `LINE_BYTES_MAX` bytes was discarded.
    TooLong,
    /// The controller has closed the pipe.
    End,
    /// The controller has written nothing for longer than its patience.
    Silence,
}

pub struct Input {
    file: File,
    buffer: Vec<u8>,
    /// The number of bytes of `buffer` that contain no line end.
    searched: usize,
    is_discarding: bool,
    has_ended: bool,
    last_read: Instant,
    line_bytes_max: usize,
}

impl Input {
    pub fn new(file: File) -> Input {
        Input {
            file,
            buffer: Vec::new(),
            searched: 0,
            is_discarding: false,
            has_ended: false,
            last_read: Instant::now(),
            line_bytes_max: LINE_BYTES_MAX,
        }
    }

    /// Waits for the next line. Every byte ends a silence, so that a long line on a slow connection
    /// is none. Without a patience, a silence has no end.
    pub fn next(&mut self, patience: Option<Duration>) -> Next {
        loop {
            if let Some(next) = self.take_line() {
                return next;
            }
            if self.has_ended {
                self.searched = 0;
                return match self.buffer.is_empty() {
                    true => Next::End,
                    false => Next::Line(std::mem::take(&mut self.buffer)),
                };
            }
            // Bytes that arrived while the agent was busy are read before the silence counts.
            let left = patience.map(|patience| patience.saturating_sub(self.last_read.elapsed()));
            if !self.is_readable_within(left) {
                if left == Some(Duration::ZERO) {
                    return Next::Silence;
                }
                continue;
            }
            self.read();
        }
    }

    /// Removes the first complete line from the buffer.
    fn take_line(&mut self) -> Option<Next> {
        let end = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n');
        let Some(end) = end.map(|end| self.searched + end) else {
            self.searched = self.buffer.len();
            if self.buffer.len() > self.line_bytes_max || self.is_discarding {
                self.is_discarding = true;
                self.buffer = Vec::new();
                self.searched = 0;
            }
            return None;
        };
        let mut line: Vec<u8> = self.buffer.drain(..=end).collect();
        line.pop();
        self.searched = 0;
        match std::mem::take(&mut self.is_discarding) || line.len() > self.line_bytes_max {
            true => Some(Next::TooLong),
            false => Some(Next::Line(line)),
        }
    }

    fn is_readable_within(&self, wait: Option<Duration>) -> bool {
        let mut polled =
            libc::pollfd { fd: self.file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let wait_ms = wait.map_or(-1, |wait| wait.as_micros().div_ceil(1000).min(60_000) as i32);
        // SAFETY: `polled` is one entry and outlives the call.
        unsafe { libc::poll(&mut polled, 1, wait_ms) > 0 }
    }

    fn read(&mut self) {
        let before = self.buffer.len();
        self.buffer.resize(before + READ_BYTES, 0);
        let length = match self.file.read(&mut self.buffer[before..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                self.buffer.truncate(before);
                return;
            }
            Err(_) => 0,
            Ok(length) => length,
        };
        self.buffer.truncate(before + length);
        self.has_ended = length == 0;
        self.last_read = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    fn pair() -> (UnixStream, Input) {
        let (writer, reader) = UnixStream::pair().unwrap();
        (writer, Input::new(File::from(OwnedFd::from(reader))))
    }

    fn line(text: &str) -> Next {
        Next::Line(text.as_bytes().to_vec())
    }

    #[test]
    fn lines_are_split_and_the_end_completes_the_last_line() {
        let (mut writer, mut input) = pair();
        writer.write_all(b"one\n\ntwo").unwrap();
        drop(writer);
        let read: Vec<Next> = (0..4).map(|_| input.next(None)).collect();
        assert_eq!(read, [line("one"), line(""), line("two"), Next::End]);
    }

    #[test]
    fn a_line_above_the_limit_is_discarded_and_the_next_one_is_read() {
        let (mut writer, mut input) = pair();
        input.line_bytes_max = READ_BYTES;
        let writing = std::thread::spawn(move || {
            writer.write_all(&vec![b'x'; 5 * READ_BYTES]).unwrap();
            writer.write_all(b"\nnext\n").unwrap();
        });
        assert_eq!(input.next(None), Next::TooLong);
        assert_eq!(input.next(None), line("next"));
        writing.join().unwrap();
    }

    #[test]
    fn a_writer_without_a_byte_for_the_patience_is_silent() {
        let (mut writer, mut input) = pair();
        assert_eq!(input.next(Some(Duration::from_millis(30))), Next::Silence);
        // What arrived before the silence was noticed is read first.
        writer.write_all(b"late\n").unwrap();
        assert_eq!(input.next(Some(Duration::from_millis(1))), line("late"));
        assert_eq!(input.next(Some(Duration::from_millis(30))), Next::Silence);
    }
}
