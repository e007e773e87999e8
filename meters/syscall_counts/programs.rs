//! The programs that the kernel runs at each system call, and the tables that they share with the
//! meter. On the common path a measured call costs two clock readings and two additions, without
//! hashing.

use std::io;

use crate::bpf::{Code, Helper, Label, Map};
use crate::bpf::{R0, R1, R2, R3, R4, R6, R7, R8, R9, STACK};

/// Maximum number of process trees. Each has a row of `Sum`s.
pub const SUBJECTS_MAX: u32 = 256;
/// Number of sums in a row, with the call's number as index.
pub const CALLS: usize = 512;
/// Index of a row's last sum, which counts calls without room: calls with a higher number, and
/// calls of threads without an entry.
pub const UNCOUNTED: usize = CALLS - 1;
/// Number of slots for threads.
pub const SLOTS: usize = 8192;
const THREADS_MAX: u32 = 8192;
const LAST_ERROR: i32 = -4095;

/// The open call of a thread: its start time (0 outside a call), its number and its subject.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Entered {
    pub t_ns: u64,
    pub call: u64,
    pub subject: u64,
    /// 0 in a free slot.
    pub thread: u64,
}

const T_NS: i16 = 0;
const CALL: i16 = 8;
const SUBJECT: i16 = 16;
const OWNER: i16 = 24;
const SLOT_BYTES: i32 = size_of::<Entered>() as i32;
/// Offset in the word after the slots. The word is 1 if any thread has used the overflow table.
const HAS_OVERFLOW: i16 = 0;

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Sum {
    pub calls: u64,
    pub ns: u64,
    pub errors: u64,
}

const SUM_BYTES: i32 = size_of::<Sum>() as i32;

pub struct Maps {
    /// Rows in `sums` by cgroup number.
    pub watched: Map,
    /// The threads' open calls, by the last bits of the thread's number.
    slots: Map,
    count: usize,
    /// The owner of each slot. Only one of two threads that claim a slot simultaneously succeeds.
    owners: Map,
    /// Open calls of threads whose slot has another owner.
    overflow: Map,
    pub sums: Map,
}

impl Maps {
    /// Creates the tables. The number of slots must be a power of 2.
    pub fn create(count: usize) -> io::Result<Maps> {
        let slots_bytes = count * size_of::<Entered>() + 8;
        Ok(Maps {
            watched: Map::create(8, 8, SUBJECTS_MAX)?,
            slots: Map::array(slots_bytes as u32, 1)?,
            count,
            owners: Map::create(4, 4, count as u32)?,
            overflow: Map::create(4, SLOT_BYTES as u32, THREADS_MAX)?,
            sums: Map::array((CALLS * size_of::<Sum>()) as u32, SUBJECTS_MAX)?,
        })
    }

    /// Calls `visit` with each open call.
    pub fn each_entered(&self, mut visit: impl FnMut(Entered)) {
        // The additional entry has room for the word after the slots.
        let mut slots = vec![Entered::default(); self.count + 1];
        if self.slots.get_all(0, &mut slots) {
            slots.truncate(self.count);
            slots.iter().filter(|entered| entered.t_ns != 0).for_each(|entered| visit(*entered));
        }
        self.overflow.each(|_: u32, entered: Entered| {
            if entered.t_ns != 0 {
                visit(entered);
            }
        });
    }
}

/// Stack offsets of a thread's number, the index of a row or slot, a cgroup's number, and an
/// `Entered`.
const THREAD: i16 = -4;
const INDEX: i16 = -8;
const CGROUP: i16 = -16;
const VALUE: i16 = -48;

fn look_up(code: &mut Code, map: &Map, key: i16) {
    code.map(R1, map);
    code.stack_address(R2, key);
    code.call(Helper::Lookup);
}

/// BPF_ANY and BPF_NOEXIST. With BPF_NOEXIST only the first of two simultaneous updates succeeds.
const ANY: i32 = 0;
const ONLY_NEW: i32 = 1;

fn update(code: &mut Code, map: &Map, key: i16, value: i16, flag: i32) {
    code.map(R1, map);
    code.stack_address(R2, key);
    code.stack_address(R3, value);
    code.set(R4, flag);
    code.call(Helper::Update);
}

/// Sets R7 to this thread's number and R8 to the address of its slot. Jumps to `owned` if the
/// thread owns the slot.
fn load_slot(code: &mut Code, maps: &Maps, owned: Label) {
    code.call(Helper::ThreadId);
    code.copy_half(R7, R0);
    code.copy(R8, R7);
    code.mask(R8, maps.count as i32 - 1);
    code.multiply(R8, SLOT_BYTES);
    code.only_value(R1, &maps.slots);
    code.add(R8, R1);
    code.load(R1, R8, OWNER);
    code.jump_if_registers_equal(R1, R7, owned);
}

/// Sets R0 to this thread's entry in `overflow`. Jumps to `none` if there is no entry. Avoids the
/// look-up while the table is unused.
fn load_overflow(code: &mut Code, maps: &Maps, none: Label) {
    overflow_word(code, maps);
    code.load(R1, R1, HAS_OVERFLOW);
    code.jump_if_equal(R1, 0, none);
    code.store_half(STACK, THREAD, R7);
    look_up(code, &maps.overflow, THREAD);
    code.jump_if_equal(R0, 0, none);
}

/// Sets R1 to the address of the word after the slots.
fn overflow_word(code: &mut Code, maps: &Maps) {
    code.only_value(R1, &maps.slots);
    code.set(R2, maps.count as i32 * SLOT_BYTES);
    code.add(R1, R2);
}

/// Stores the call and its start time in the entry at R8, and exits.
fn store_call(code: &mut Code) {
    code.load(R1, R6, 8);
    code.store(R8, CALL, R1);
    code.call(Helper::Nanoseconds);
    code.store(R8, T_NS, R0);
    code.exit();
}

/// `sys_enter(registers, number)`: stores the call and its start time if the thread belongs to a
/// measured cgroup. A thread keeps its first entry, so later calls do not need its cgroup.
pub fn entering(maps: &Maps) -> Code {
    let mut code = Code::default();
    let (end, owned, new, occupied) = (code.label(), code.label(), code.label(), code.label());
    code.copy(R6, R1);
    load_slot(&mut code, maps, owned);
    load_overflow(&mut code, maps, new);
    code.copy(R8, R0);
    store_call(&mut code);

    code.place(new);
    code.call(Helper::CgroupId);
    code.store(STACK, CGROUP, R0);
    look_up(&mut code, &maps.watched, CGROUP);
    code.jump_if_equal(R0, 0, end);
    code.load(R9, R0, 0);
    code.store_half(STACK, THREAD, R7);
    code.copy(R1, R7);
    code.mask(R1, maps.count as i32 - 1);
    code.store_half(STACK, INDEX, R1);
    update(&mut code, &maps.owners, INDEX, THREAD, ONLY_NEW);
    code.jump_if_not_equal(R0, 0, occupied);
    code.store(R8, SUBJECT, R9);
    code.store(R8, OWNER, R7);
    code.place(owned);
    store_call(&mut code);

    code.place(occupied);
    overflow_word(&mut code, maps);
    code.store_value(R1, HAS_OVERFLOW, 1);
    code.load(R1, R6, 8);
    code.store(STACK, VALUE + CALL, R1);
    code.store(STACK, VALUE + SUBJECT, R9);
    code.store(STACK, VALUE + OWNER, R7);
    code.call(Helper::Nanoseconds);
    code.store(STACK, VALUE + T_NS, R0);
    update(&mut code, &maps.overflow, THREAD, VALUE, ANY);
    code.jump_if_equal(R0, 0, end);
    code.store_half(STACK, INDEX, R9);
    look_up(&mut code, &maps.sums, INDEX);
    code.jump_if_equal(R0, 0, end);
    code.set(R1, 1);
    code.add_atomic(R0, (UNCOUNTED * size_of::<Sum>()) as i16, R1);
    code.place(end);
    code.exit();
    code
}

/// `sys_exit(registers, result)`: adds the thread's open call to the sums.
pub fn leaving(maps: &Maps) -> Code {
    let mut code = Code::default();
    let (end, owned, has_room) = (code.label(), code.label(), code.label());
    code.copy(R6, R1);
    load_slot(&mut code, maps, owned);
    load_overflow(&mut code, maps, end);
    code.copy(R8, R0);
    code.place(owned);
    code.load(R9, R8, T_NS);
    code.jump_if_equal(R9, 0, end);
    code.call(Helper::Nanoseconds);
    code.subtract(R0, R9);
    code.copy(R9, R0);
    code.store_value(R8, T_NS, 0);
    code.load(R1, R8, SUBJECT);
    code.store_half(STACK, INDEX, R1);
    look_up(&mut code, &maps.sums, INDEX);
    code.jump_if_equal(R0, 0, end);
    code.load(R1, R8, CALL);
    code.jump_if_below(R1, UNCOUNTED as i32, has_room);
    code.set(R1, UNCOUNTED as i32);
    code.place(has_room);
    code.multiply(R1, SUM_BYTES);
    code.add(R0, R1);
    code.set(R1, 1);
    code.add_atomic(R0, 0, R1);
    code.add_atomic(R0, 8, R9);
    code.load(R2, R6, 8);
    code.jump_if_below(R2, LAST_ERROR, end);
    code.add_atomic(R0, 16, R1);
    code.place(end);
    code.exit();
    code
}

/// `sched_process_exit(task)`: removes the thread's entry. Every thread ends during a call.
pub fn ending(maps: &Maps) -> Code {
    let mut code = Code::default();
    let owned = code.label();
    load_slot(&mut code, maps, owned);
    code.store_half(STACK, THREAD, R7);
    code.map(R1, &maps.overflow);
    code.stack_address(R2, THREAD);
    code.call(Helper::Delete);
    code.exit();
    code.place(owned);
    code.store_value(R8, T_NS, 0);
    code.store_value(R8, OWNER, 0);
    code.mask(R7, maps.count as i32 - 1);
    code.store_half(STACK, INDEX, R7);
    code.map(R1, &maps.owners);
    code.stack_address(R2, INDEX);
    code.call(Helper::Delete);
    code.exit();
    code
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::attach;
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    const THREADS: u64 = 8;
    const CALLS_PER_THREAD: u64 = 20_000;

    /// Returns the number of this process's cgroup (version 2).
    fn own_cgroup() -> Option<u64> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let root = mounts.lines().find(|line| line.contains(" - cgroup2 "))?.split(' ').nth(4)?;
        let cgroups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let path = cgroups.lines().find_map(|line| line.strip_prefix("0::"))?;
        fs::metadata(format!("{root}{path}")).ok().map(|metadata| metadata.ino())
    }

    /// Makes an otherwise unused call in `THREADS` concurrent threads, and returns its sum.
    fn counted(slots: usize) -> Option<Sum> {
        let call = libc::SYS_lookup_dcookie;
        let print = |error: &io::Error| eprintln!("bpf(2) is not available on this host: {error}");
        let maps = Maps::create(slots).inspect_err(print).ok()?;
        let _programs = [
            attach(entering(&maps), c"sys_enter").inspect_err(print).ok()?,
            attach(leaving(&maps), c"sys_exit").unwrap(),
            attach(ending(&maps), c"sched_process_exit").unwrap(),
        ];
        maps.watched.set(&own_cgroup()?, &1u64).unwrap();
        let make_calls = || {
            for _ in 0..CALLS_PER_THREAD {
                // SAFETY: the buffer is null and its length is 0.
                unsafe { libc::syscall(call, 0u64, std::ptr::null_mut::<u8>(), 0usize) };
            }
        };
        std::thread::scope(|scope| (0..THREADS).for_each(|_| drop(scope.spawn(make_calls))));
        let mut row = vec![Sum::default(); CALLS];
        assert!(maps.sums.get_all(1, &mut row));
        Some(row[call as usize])
    }

    #[test]
    fn every_call_is_counted_even_if_all_threads_share_a_slot() {
        for slots in [SLOTS, 1] {
            let Some(sum) = counted(slots) else { return };
            assert_eq!(sum.calls, THREADS * CALLS_PER_THREAD, "with {slots} slots");
            assert_eq!(sum.errors, sum.calls, "with {slots} slots");
            assert!(sum.ns > 0);
        }
    }
}
