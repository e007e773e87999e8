//! A node without a middleware that counts its allocations, for a test of the kit.
//!
//! It handles the messages of its role and then prints the number of allocations since READY on
//! standard output.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell as Counter;

use wattwire_kit::{
    now_ns, run, sleep_until_ns, Buffer, Call, Error, Events, Guarantee, Kit, Library, Message,
    Ready, SendFailed, Slot,
};

struct Counting;

thread_local! {
    /// Allocations per thread. The node prints those of the role's thread and excludes the thread
    /// that reads standard input.
    static ALLOCATIONS: Counter<u64> = const { Counter::new(0) };
}

// SAFETY: forwards all calls to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        System.alloc(layout)
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        System.dealloc(block, layout)
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn main() {
    run(&[
        ("publisher", |kit| counted(kit, publish)),
        ("subscriber", |kit| counted(kit, subscribe)),
        ("relay", |kit| counted(kit, relay)),
        ("client", |kit| counted(kit, call)),
        ("server", |kit| counted(kit, serve)),
        ("action_client", |kit| counted(kit, drive)),
        ("action_server", |kit| counted(kit, perform)),
    ])
}

/// The state of a role before its window, and the number of its arrivals.
struct Window {
    kit: &'static Kit,
    arrivals: u64,
    planted: bool,
    request: Buffer,
}

impl Window {
    /// Makes one allocation if the test plants a fault.
    fn plant(&self) {
        if self.planted {
            std::hint::black_box(Box::new(0));
        }
    }

    /// Returns the next message of a peer. Only its sequence is correct, so the kit counts it as
    /// corrupt.
    fn arrival(&mut self, counter: u64) -> &[u8] {
        self.plant();
        let Buffer::Bytes(bytes) = &mut self.request else { unreachable!("payloads are bytes") };
        let peer = 2 << 48;
        bytes[..8].copy_from_slice(&(peer | counter).to_le_bytes());
        bytes
    }
}

fn counted(kit: &'static Kit, role: fn(Window) -> Result<(), Error>) -> Result<(), Error> {
    let window = Window {
        kit,
        arrivals: kit.integer("settings.arrivals") as u64,
        planted: kit.boolean("settings.planted"),
        request: kit.buffer(),
    };
    kit.ready(&Ready {
        matched: None,
        library: Library::default(),
        effective: Vec::new(),
        guarantee: Guarantee { delivery: "best_effort", ordering: "none", overload: "drop_newest" },
        discovery_ns: None,
    });
    let before = ALLOCATIONS.get();
    role(window)?;
    println!("{}", ALLOCATIONS.get() - before);
    Ok(())
}

fn sleep(timeout_ns: i64) {
    sleep_until_ns(now_ns() + timeout_ns);
}

fn publish(window: Window) -> Result<(), Error> {
    if window.kit.is_native() || window.kit.overlaps() {
        return drive(window);
    }
    window.kit.send_all(|_| {
        window.plant();
        true
    })
}

fn subscribe(mut window: Window) -> Result<(), Error> {
    let kit = window.kit;
    kit.wait_go();
    (0..window.arrivals).for_each(|counter| kit.received(window.arrival(counter)));
    kit.poll(sleep);
    Ok(())
}

fn relay(mut window: Window) -> Result<(), Error> {
    let kit = window.kit;
    kit.wait_go();
    for counter in 0..window.arrivals {
        let arrival = window.arrival(counter);
        if let Some(relay) = kit.relay(arrival) {
            kit.relayed(&relay, Ok::<_, SendFailed>(std::hint::black_box(arrival)));
        }
    }
    kit.poll(sleep);
    Ok(())
}

/// A client that echoes its own requests.
struct Echo(Window, Vec<u8>);

impl Call for Echo {
    fn call(&mut self, request: Message, _: i64) -> Result<Option<Message<'_>>, SendFailed> {
        self.0.plant();
        self.1.copy_from_slice(request.bytes());
        let reply = Message::from(&self.1);
        Ok(Some(reply).filter(|&reply| self.0.kit.is_reply(reply)))
    }
}

impl Events for Echo {
    fn begin(&mut self, slot: Slot, request: Message) -> Result<(), SendFailed> {
        let kit = self.0.kit;
        self.0.plant();
        if kit.string("role") == "action_client" {
            kit.accepted(slot);
            (0..kit.feedback_count()).for_each(|_| kit.feedback(request, Some(slot)));
        }
        kit.complete(slot, request);
        Ok(())
    }
    fn poll(&mut self, timeout_ns: i64) {
        sleep(timeout_ns);
    }
}

fn call(window: Window) -> Result<(), Error> {
    if window.kit.overlaps() {
        return drive(window);
    }
    let kit = window.kit;
    let bytes = window.request.message().bytes().to_vec();
    kit.call_all(&mut Echo(window, bytes))
}

fn serve(mut window: Window) -> Result<(), Error> {
    let kit = window.kit;
    kit.wait_go();
    for counter in 0..window.arrivals {
        if let Some(request) = kit.serve(window.arrival(counter)) {
            std::hint::black_box(request.reply());
            kit.served(&request);
        }
    }
    kit.poll(sleep);
    Ok(())
}

/// Runs the kit's event loop or, with native pacing, a separate loop with its own timer.
fn drive(window: Window) -> Result<(), Error> {
    let kit = window.kit;
    let mut echo = Echo(window, Vec::new());
    if !kit.is_native() {
        kit.drive(&mut echo);
        return Ok(());
    }
    let mut buffer = kit.buffer();
    kit.wait_timer_birth();
    while !kit.finished() {
        match kit.tick() {
            Some(slot) => {
                let message = kit.begin(slot, &mut buffer);
                let _ = echo.begin(slot, message);
            }
            None => sleep(kit.period_ns() / 20),
        }
    }
    kit.end_schedule(sleep);
    Ok(())
}

fn perform(mut window: Window) -> Result<(), Error> {
    let (kit, mut buffer) = (window.kit, window.kit.buffer());
    kit.wait_go();
    for counter in 0..window.arrivals {
        let Some(mut goal) = kit.goal(window.arrival(counter)) else { continue };
        kit.accept(&goal);
        for _ in 0..kit.feedback_count() {
            std::hint::black_box(kit.feedback_begin(&mut goal, &mut buffer));
            kit.feedback_sent(&goal);
        }
        std::hint::black_box(kit.result(window.arrival(counter)).message());
        kit.finish_goal(&goal);
    }
    kit.poll(sleep);
    Ok(())
}
