//! Writes standard output in a separate thread. A controller that does not read therefore never
//! blocks the sampler or a reply.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// Above this limit the agent stops reading the output of nodes, and their pipes fill. Replies
/// have no limit.
const QUEUED_BYTES_MAX: usize = 64 << 20;

#[derive(Clone)]
pub struct Output {
    queue: Sender<String>,
    queued_bytes: Arc<AtomicUsize>,
}

impl Output {
    /// Starts the writer thread. It ends after every `Output` is dropped and the queue is written.
    pub fn to_stdout() -> (Output, thread::JoinHandle<()>) {
        let (sender, receiver) = channel::<String>();
        let queued_bytes = Arc::new(AtomicUsize::new(0));
        let counted = queued_bytes.clone();
        let writer = thread::spawn(move || write_all(&receiver, &counted));
        (Output { queue: sender, queued_bytes }, writer)
    }

    pub fn send(&self, value: &Value) {
        let mut line = value.to_string();
        line.push('\n');
        self.queued_bytes.fetch_add(line.len(), Ordering::Relaxed);
        // Sending fails only after the writer thread has ended, when there is no recipient.
        let _ = self.queue.send(line);
    }

    /// Sends a line of a node; waits while the queue exceeds its limit.
    pub fn send_when_room(&self, value: &Value) {
        while self.queued_bytes.load(Ordering::Relaxed) > QUEUED_BYTES_MAX {
            thread::sleep(Duration::from_millis(5));
        }
        self.send(value);
    }
}

fn write_all(receiver: &Receiver<String>, queued_bytes: &AtomicUsize) {
    let mut stdout = std::io::stdout().lock();
    let mut broken = false;
    for line in receiver {
        queued_bytes.fetch_sub(line.len(), Ordering::Relaxed);
        broken = broken || stdout.write_all(line.as_bytes()).is_err() || stdout.flush().is_err();
    }
}
