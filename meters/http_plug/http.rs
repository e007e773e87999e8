//! One request of HTTP/1.1 without a connection that lives longer.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::AsRawFd;
use std::time::Duration;

use crate::clock;
use crate::meter::{Fault, Wait};

/// A plug in a local network answers within a few ms, and one that saves power within 1 s.
const LATE_NS: i64 = 2_000_000_000;
const ANSWER_BYTES_MAX: usize = 64 << 10;
const EXCERPT_BYTES: usize = 60;

/// Appends the whole answer, with its head, to `answer`. It is late after 2 s. A fault does not
/// contain the host, because reports contain faults and no address.
pub fn get(host: &str, path: &str, wait: &Wait, answer: &mut Vec<u8>) -> Result<(), Fault> {
    let until_ns = clock::monotonic_ns() + LATE_NS;
    let failed = |error: io::Error| Fault::because(error.to_string());
    let late = |what: &str| {
        Fault::because(format!("{what} within {} s", LATE_NS / 1_000_000_000))
    };
    let found = host.to_socket_addrs().map_err(failed)?.next();
    let address = found.ok_or_else(|| Fault::because("the host has no address"))?;
    let limit = Duration::from_nanos(LATE_NS as u64);
    let mut socket = TcpStream::connect_timeout(&address, limit).map_err(|error| {
        match error.kind() {
            io::ErrorKind::TimedOut => late("no connection"),
            _ => failed(error),
        }
    })?;
    socket.set_nonblocking(true).map_err(failed)?;
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: wattwire\r\nConnection: close\r\n\r\n"
    );
    socket.write_all(request.as_bytes()).map_err(failed)?;
    let mut buffer = [0u8; 4096];
    loop {
        if is_whole(answer) {
            return Ok(());
        }
        if answer.len() > ANSWER_BYTES_MAX {
            let text = format!("an answer of more than {ANSWER_BYTES_MAX} bytes");
            return Err(Fault::because(text));
        }
        if !wait.ready(socket.as_raw_fd(), libc::POLLIN, until_ns)? {
            return Err(late(if answer.is_empty() { "no answer" } else { "only half an answer" }));
        }
        match socket.read(&mut buffer) {
            Ok(0) if answer.is_empty() => {
                return Err(Fault::because("closed without an answer"));
            }
            Ok(0) => return Ok(()),
            Ok(length) => answer.extend_from_slice(&buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(failed(error)),
        }
    }
}

/// Returns the body of an answer with the status 200. The error says what it is instead.
pub fn body(answer: &[u8]) -> Result<&[u8], String> {
    let (head, body) = parts(answer).ok_or_else(|| match answer.is_empty() {
        true => "an empty answer".to_string(),
        false => format!("half an answer: {}", excerpt(answer)),
    })?;
    let status = head.lines().next().unwrap_or_default();
    let mut words = status.split_ascii_whitespace();
    let is_http = words.next().is_some_and(|word| word.starts_with("HTTP/1."));
    match words.next() {
        _ if !is_http => return Err(format!("no answer of HTTP: {}", excerpt(answer))),
        Some("200") => {}
        Some("401") => {
            return Err(format!(
                "{status}: the plug wants a password, and wattwire sends none; switch it off at \
                 the plug while you measure"
            ))
        }
        _ => return Err(status.to_string()),
    }
    if header(head, "transfer-encoding").is_some() {
        return chunk(body);
    }
    let length = header(head, "content-length").and_then(|value| value.parse::<usize>().ok());
    if length.is_some_and(|length| body.len() < length) {
        return Err(format!("half an answer: {} of {} bytes", body.len(), length.unwrap_or(0)));
    }
    let is_page = body.trim_ascii_start().starts_with(b"<");
    match is_page {
        true => Err(format!("a page (HTML) instead of JSON: {}", excerpt(body))),
        false => Ok(&body[..length.unwrap_or(body.len())]),
    }
}

/// Returns the only chunk of a body. Plugs write their short answers in one.
fn chunk(body: &[u8]) -> Result<&[u8], String> {
    let end = body.windows(2).position(|bytes| bytes == b"\r\n").unwrap_or(0);
    let size = std::str::from_utf8(&body[..end]).unwrap_or_default();
    let size = usize::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16);
    let rest = &body[(end + 2).min(body.len())..];
    match size {
        Ok(size) if rest.len() >= size && rest[size..].starts_with(b"\r\n0\r\n") => {
            Ok(&rest[..size])
        }
        _ => Err(format!("half an answer, or one in several chunks: {}", excerpt(body))),
    }
}

fn is_whole(answer: &[u8]) -> bool {
    let Some((head, body)) = parts(answer) else { return false };
    match header(head, "content-length").and_then(|value| value.parse::<usize>().ok()) {
        Some(length) => body.len() >= length,
        None => header(head, "transfer-encoding").is_some() && body.ends_with(b"0\r\n\r\n"),
    }
}

/// Returns the head and the body of an answer; None before the head's end.
fn parts(answer: &[u8]) -> Option<(&str, &[u8])> {
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
    Some((std::str::from_utf8(&answer[..end]).unwrap_or_default(), &answer[end + 4..]))
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

pub fn excerpt(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(EXCERPT_BYTES)];
    format!("\"{}\"", shown.escape_ascii())
}
