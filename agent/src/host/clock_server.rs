//! Answers exchanges of four timestamps over UDP, which relate this host's clock to another's.

use std::io::Write;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;

use crate::clock;
use crate::protocol::{Answer, Kind, Problem};

const MAGIC: &[u8; 8] = b"WWCLOCK1";
/// Request and reply have the same size, so that both take the same time on a slow link, and no
/// forged request makes this host send more than it received.
const DATAGRAM_BYTES: usize = 32;
const EXCHANGES_MAX: u64 = 1_000_000;
const SECONDS_MAX: f64 = 3600.0;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listen {
    address: IpAddr,
    #[serde(default = "default_exchanges")]
    exchanges: u64,
    #[serde(default = "default_seconds")]
    seconds: f64,
}

fn default_exchanges() -> u64 {
    1000
}

fn default_seconds() -> f64 {
    60.0
}

/// The responder of this agent, if it runs.
#[derive(Default)]
pub struct ClockServer {
    running: Option<Running>,
}

struct Running {
    /// Closing this stream ends the thread.
    closer: UnixStream,
    /// Returns the number of answered requests.
    thread: thread::JoinHandle<u64>,
}

impl ClockServer {
    /// Starts the responder, which ends after `exchanges` answers or `seconds`.
    pub fn listen(&mut self, request: &Listen) -> Answer {
        let Listen { address, exchanges, seconds } = *request;
        let is_positive = seconds > 0.0 && seconds <= SECONDS_MAX;
        if !(1..=EXCHANGES_MAX).contains(&exchanges) || !is_positive {
            return Err(Problem::usage(format!(
                "clock_listen: found {exchanges} exchanges, {seconds} seconds; allowed: 1 to \
                 {EXCHANGES_MAX} exchanges, above 0 and at most {SECONDS_MAX} seconds"
            )));
        }
        if self.running.as_ref().is_some_and(|running| !running.thread.is_finished()) {
            let message = "clock_listen: a responder is running; send clock_close first";
            return Err(Problem::new(Kind::Busy, message));
        }
        let failed = |error: std::io::Error| {
            let kind = match error.kind() {
                std::io::ErrorKind::AddrNotAvailable => Kind::Absent,
                std::io::ErrorKind::PermissionDenied => Kind::Permission,
                _ => Kind::Io,
            };
            Problem::new(kind, format!("clock_listen: {address}: {error}"))
        };
        let socket = UdpSocket::bind((address, 0)).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let port = socket.local_addr().map_err(failed)?.port();
        let (closer, closed) = UnixStream::pair().map_err(failed)?;
        let until = Instant::now() + Duration::from_secs_f64(seconds);
        let thread = thread::spawn(move || answer_until(until, exchanges, &socket, &closed));
        self.running = Some(Running { closer, thread });
        Ok(json!({"port": port}))
    }

    /// Ends the responder. Without a responder, this has no effect.
    pub fn close(&mut self) -> Answer {
        let Some(Running { mut closer, thread }) = self.running.take() else {
            return Ok(json!({"closed": false, "exchanges": 0}));
        };
        // The byte fails if the responder has already ended.
        let _ = closer.write_all(b"x");
        let exchanges = thread.join().unwrap_or(0);
        Ok(json!({"closed": true, "exchanges": exchanges}))
    }
}

fn answer_until(
    until: Instant,
    exchanges_max: u64,
    socket: &UdpSocket,
    closed: &UnixStream,
) -> u64 {
    let mut exchanges = 0;
    let entry = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut polled = [entry(socket.as_raw_fd()), entry(closed.as_raw_fd())];
    while exchanges < exchanges_max {
        let left = until.saturating_duration_since(Instant::now());
        let wait_ms = left.as_micros().div_ceil(1000).min(60_000) as i32;
        // SAFETY: `polled` has two entries.
        let ready = unsafe { libc::poll(polled.as_mut_ptr(), 2, wait_ms) };
        if polled[1].revents != 0 || left.is_zero() {
            break;
        }
        if ready > 0 && answer(socket) {
            exchanges += 1;
        }
    }
    exchanges
}

/// Answers a request and returns whether it was one. Other datagrams get no answer.
fn answer(socket: &UdpSocket) -> bool {
    // One byte more shows that a datagram is too long.
    let mut datagram = [0u8; DATAGRAM_BYTES + 1];
    let Ok((length, sender)) = socket.recv_from(&mut datagram) else { return false };
    let received_ns = clock::monotonic_ns();
    if length != DATAGRAM_BYTES || !datagram.starts_with(MAGIC) {
        return false;
    }
    datagram[16..24].copy_from_slice(&received_ns.to_le_bytes());
    datagram[24..32].copy_from_slice(&clock::monotonic_ns().to_le_bytes());
    socket.send_to(&datagram[..DATAGRAM_BYTES], sender).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn listening(exchanges: u64, seconds: f64) -> (ClockServer, UdpSocket) {
        let mut server = ClockServer::default();
        let answer = server.listen(&Listen { address: ADDRESS, exchanges, seconds }).unwrap();
        let client = UdpSocket::bind((ADDRESS, 0)).unwrap();
        client.connect((ADDRESS, answer["port"].as_u64().unwrap() as u16)).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        (server, client)
    }

    fn request(number: u64) -> [u8; DATAGRAM_BYTES] {
        let mut datagram = [0; DATAGRAM_BYTES];
        datagram[..8].copy_from_slice(MAGIC);
        datagram[8..16].copy_from_slice(&number.to_le_bytes());
        datagram
    }

    fn exchange(client: &UdpSocket, number: u64) -> [i64; 4] {
        let begin_ns = clock::monotonic_ns();
        client.send(&request(number)).unwrap();
        let mut reply = [0u8; 64];
        let length = client.recv(&mut reply).unwrap();
        let end_ns = clock::monotonic_ns();
        assert_eq!(length, DATAGRAM_BYTES);
        assert_eq!(reply[..16], request(number)[..16]);
        let time = |at: usize| i64::from_le_bytes(reply[at..at + 8].try_into().unwrap());
        [begin_ns, time(16), time(24), end_ns]
    }

    #[test]
    fn the_four_times_of_an_exchange_are_in_order() {
        let (mut server, client) = listening(1000, 60.0);
        for number in 0..64 {
            let times = exchange(&client, number);
            assert!(times.is_sorted(), "{times:?}");
        }
        assert_eq!(server.close().unwrap(), json!({"closed": true, "exchanges": 64}));
        assert_eq!(server.close().unwrap(), json!({"closed": false, "exchanges": 0}));
        client.send(&request(65)).unwrap();
        assert!(client.recv(&mut [0; 64]).is_err(), "nothing listens after clock_close");
    }

    #[test]
    fn other_datagrams_get_no_answer() {
        let (mut server, client) = listening(1000, 60.0);
        client.send(&[]).unwrap();
        client.send(b"WWCLOCK1").unwrap();
        client.send(&[0; DATAGRAM_BYTES]).unwrap();
        client.send(&[&request(1)[..], b"x"].concat()).unwrap();
        // The next reply belongs to this request.
        exchange(&client, 2);
        assert_eq!(server.close().unwrap()["exchanges"], json!(1));
    }

    #[test]
    fn the_responder_ends_after_its_exchanges_or_its_time() {
        let (mut server, client) = listening(2, 60.0);
        exchange(&client, 0);
        let again = Listen { address: ADDRESS, exchanges: 1, seconds: 1.0 };
        assert_eq!(server.listen(&again).unwrap_err().kind, Kind::Busy);
        exchange(&client, 1);
        let (short, _) = listening(1000, 0.01);
        for ended in [&server, &short] {
            while !ended.running.as_ref().unwrap().thread.is_finished() {
                thread::sleep(Duration::from_millis(1));
            }
        }
        server.listen(&again).unwrap();
    }

    #[test]
    fn an_address_of_another_host_is_absent() {
        let address = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
        let request = Listen { address, exchanges: 1, seconds: 1.0 };
        let problem = ClockServer::default().listen(&request).unwrap_err();
        assert_eq!(problem.kind, Kind::Absent, "{}", problem.message);
        let request = Listen { address: ADDRESS, exchanges: 0, seconds: 1.0 };
        assert_eq!(ClockServer::default().listen(&request).unwrap_err().kind, Kind::Usage);
    }
}
