//! What the kernel runs at each system call, and the tables that it shares with the meter.

use crate::bpf::{Code, Helper, Label, Map};
use crate::bpf::{R0, R1, R2, R3, R4, R6, R7, R8, STACK};

/// Stands for "no room" in place of a call's number.
pub const UNCOUNTED: u64 = u64::MAX;
const LAST_ERROR: i32 = -4095;

/// What a thread is in: since when (0: in no call), which call, whose.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Entered {
    pub t_ns: u64,
    pub call: u64,
    pub cgroup: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Key {
    pub cgroup: u64,
    pub call: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Sum {
    pub calls: u64,
    pub ns: u64,
    pub errors: u64,
}

pub struct Maps {
    pub watched: Map,
    pub entered: Map,
    pub sums: Map,
}

/// Places on the programs' stack: a thread's number, a `Key`, and an `Entered` or a `Sum`.
const THREAD: i16 = -4;
const KEY: i16 = -24;
const VALUE: i16 = -48;

fn look_up(code: &mut Code, map: &Map, key: i16) {
    code.map(R1, map);
    code.stack_address(R2, key);
    code.call(Helper::Lookup);
}

/// BPF_ANY, and BPF_NOEXIST for what another processor may have put there since it was looked up.
const ANY: i32 = 0;
const ONLY_NEW: i32 = 1;

fn update(code: &mut Code, map: &Map, key: i16, flag: i32) {
    code.map(R1, map);
    code.stack_address(R2, key);
    code.stack_address(R3, VALUE);
    code.set(R4, flag);
    code.call(Helper::Update);
}

fn number_of_thread(code: &mut Code) {
    code.call(Helper::ThreadId);
    code.store_half(STACK, THREAD, R0);
}

/// At the key on the stack: one more in "no room".
fn count_uncounted(code: &mut Code, maps: &Maps, end: Label) {
    code.store_value(STACK, KEY + 8, -1);
    look_up(code, &maps.sums, KEY);
    code.jump_if_equal(R0, 0, end);
    code.set(R1, 1);
    code.add_atomic(R0, 0, R1);
}

/// `sys_enter(registers, number)`: notes when a thread of a watched cgroup enters which call. A
/// thread that is known already stays where it was first seen, which saves asking for its cgroup.
pub fn entering(maps: &Maps) -> Code {
    let mut code = Code::default();
    let (end, known) = (code.label(), code.label());
    code.copy(R6, R1);
    number_of_thread(&mut code);
    look_up(&mut code, &maps.entered, THREAD);
    code.copy(R7, R0);
    code.jump_if_other(R0, 0, known);
    code.call(Helper::CgroupId);
    code.store(STACK, KEY, R0);
    code.store(STACK, VALUE + 16, R0);
    look_up(&mut code, &maps.watched, KEY);
    code.jump_if_equal(R0, 0, end);
    code.load(R8, R6, 8);
    code.store(STACK, VALUE + 8, R8);
    code.call(Helper::Nanoseconds);
    code.store(STACK, VALUE, R0);
    update(&mut code, &maps.entered, THREAD, ANY);
    code.jump_if_equal(R0, 0, end);
    count_uncounted(&mut code, maps, end);
    code.leave();
    code.place(known);
    code.load(R8, R6, 8);
    code.store(R7, 8, R8);
    code.call(Helper::Nanoseconds);
    code.store(R7, 0, R0);
    code.place(end);
    code.leave();
    code
}

/// `sys_exit(registers, result)`: adds up what the thread has noted on entering.
pub fn leaving(maps: &Maps) -> Code {
    let mut code = Code::default();
    let (end, add) = (code.label(), code.label());
    code.copy(R6, R1);
    number_of_thread(&mut code);
    look_up(&mut code, &maps.entered, THREAD);
    code.jump_if_equal(R0, 0, end);
    code.copy(R7, R0);
    code.load(R8, R7, 0);
    code.jump_if_equal(R8, 0, end);
    code.call(Helper::Nanoseconds);
    code.subtract(R0, R8);
    code.copy(R8, R0);
    code.store_value(R7, 0, 0);
    code.load(R1, R7, 16);
    code.store(STACK, KEY, R1);
    code.load(R1, R7, 8);
    code.store(STACK, KEY + 8, R1);
    look_up(&mut code, &maps.sums, KEY);
    code.jump_if_other(R0, 0, add);
    for word in 0..3 {
        code.store_value(STACK, VALUE + 8 * word, 0);
    }
    update(&mut code, &maps.sums, KEY, ONLY_NEW);
    look_up(&mut code, &maps.sums, KEY);
    code.jump_if_other(R0, 0, add);
    count_uncounted(&mut code, maps, end);
    code.leave();
    code.place(add);
    code.set(R1, 1);
    code.add_atomic(R0, 0, R1);
    code.add_atomic(R0, 8, R8);
    code.load(R2, R6, 8);
    code.jump_if_below(R2, LAST_ERROR, end);
    code.add_atomic(R0, 16, R1);
    code.place(end);
    code.leave();
    code
}

/// `sched_process_exit(task)`: forgets a thread that ends within a call, as every thread does.
pub fn ending(maps: &Maps) -> Code {
    let mut code = Code::default();
    number_of_thread(&mut code);
    code.map(R1, &maps.entered);
    code.stack_address(R2, THREAD);
    code.call(Helper::Delete);
    code.leave();
    code
}
