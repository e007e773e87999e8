//! What the kernel runs at each system call, and the tables that it shares with the meter.
//!
//! On the way of a call that counts stand two clock readings, no hashing, and two additions.

use std::io;

use crate::bpf::{Code, Helper, Label, Map};
use crate::bpf::{R0, R1, R2, R3, R4, R6, R7, R8, R9, STACK};

/// How many processes with their trees may be followed; each has a row of `Sum`s.
pub const SUBJECTS_MAX: u32 = 256;
/// A row's sums, by the call's number.
pub const CALLS: usize = 512;
/// The row's last sum stands for "no room": for a thread, or for a call of a higher number.
pub const UNCOUNTED: usize = CALLS - 1;
/// Places for threads as a rule.
pub const PLACES: usize = 8192;
const THREADS_MAX: u32 = 8192;
const LAST_ERROR: i32 = -4095;

/// What a thread is in: since when (0: in no call), which call, whose.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Entered {
    pub t_ns: u64,
    pub call: u64,
    pub subject: u64,
    /// 0: nobody's place.
    pub thread: u64,
}

const T_NS: i16 = 0;
const CALL: i16 = 8;
const SUBJECT: i16 = 16;
const OWNER: i16 = 24;
const PLACE_BYTES: i32 = size_of::<Entered>() as i32;
/// Behind the places: whether a thread has ever found its place taken.
const ANY_BESIDE: i16 = 0;

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Sum {
    pub calls: u64,
    pub ns: u64,
    pub errors: u64,
}

const SUM_BYTES: i32 = size_of::<Sum>() as i32;

pub struct Maps {
    /// A followed cgroup's row in `sums`.
    pub watched: Map,
    /// Where each thread notes its calls, by its number's last bits; how many there are.
    places: Map,
    count: usize,
    /// Whose a place is. Only this tells two threads apart that want it at the same time.
    taken: Map,
    /// The same for threads whose place is another's.
    beside: Map,
    pub sums: Map,
}

impl Maps {
    /// With so many places, a power of 2.
    pub fn create(count: usize) -> io::Result<Maps> {
        let places_bytes = count * size_of::<Entered>() + 8;
        Ok(Maps {
            watched: Map::create(8, 8, SUBJECTS_MAX)?,
            places: Map::array(places_bytes as u32, 1)?,
            count,
            taken: Map::create(4, 4, count as u32)?,
            beside: Map::create(4, PLACE_BYTES as u32, THREADS_MAX)?,
            sums: Map::array((CALLS * size_of::<Sum>()) as u32, SUBJECTS_MAX)?,
        })
    }

    /// Calls `visit` with what each thread was in that is in a call now.
    pub fn each_entered(&self, mut visit: impl FnMut(Entered)) {
        // One more for the word behind them.
        let mut places = vec![Entered::default(); self.count + 1];
        if self.places.get_all(0, &mut places) {
            places.truncate(self.count);
            places.iter().filter(|place| place.t_ns != 0).for_each(|place| visit(*place));
        }
        self.beside.each(|_: u32, place: Entered| {
            if place.t_ns != 0 {
                visit(place);
            }
        });
    }
}

/// Places on the programs' stack: a thread's number, a row's or a place's, a cgroup's, and an
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

/// BPF_ANY, and BPF_NOEXIST: of two that set an entry at the same time, one is refused.
const ANY: i32 = 0;
const ONLY_NEW: i32 = 1;

fn update(code: &mut Code, map: &Map, key: i16, value: i16, flag: i32) {
    code.map(R1, map);
    code.stack_address(R2, key);
    code.stack_address(R3, value);
    code.set(R4, flag);
    code.call(Helper::Update);
}

/// R7 = this thread's number, R8 = the address of its place; goes to `own` where it has it.
fn look_at_place(code: &mut Code, maps: &Maps, own: Label) {
    code.call(Helper::ThreadId);
    code.copy_half(R7, R0);
    code.copy(R8, R7);
    code.mask(R8, maps.count as i32 - 1);
    code.multiply(R8, PLACE_BYTES);
    code.only_value(R1, &maps.places);
    code.add(R8, R1);
    code.load(R1, R8, OWNER);
    code.jump_if_registers_equal(R1, R7, own);
}

/// R0 = this thread's entry in `beside` or 0. Most often nobody is there, and nothing is hashed.
fn look_beside(code: &mut Code, maps: &Maps, none: Label) {
    any_beside(code, maps);
    code.load(R1, R1, ANY_BESIDE);
    code.jump_if_equal(R1, 0, none);
    code.store_half(STACK, THREAD, R7);
    look_up(code, &maps.beside, THREAD);
    code.jump_if_equal(R0, 0, none);
}

/// R1 = the address of the word behind the places.
fn any_beside(code: &mut Code, maps: &Maps) {
    code.only_value(R1, &maps.places);
    code.set(R2, maps.count as i32 * PLACE_BYTES);
    code.add(R1, R2);
}

/// Goes on at R8, whatever the table: notes the call and when it began, and ends.
fn note(code: &mut Code) {
    code.load(R1, R6, 8);
    code.store(R8, CALL, R1);
    code.call(Helper::Nanoseconds);
    code.store(R8, T_NS, R0);
    code.exit();
}

/// `sys_enter(registers, number)`: notes when a thread of a watched cgroup enters which call. A
/// thread that is known already stays where it was first seen, which saves asking for its cgroup.
pub fn entering(maps: &Maps) -> Code {
    let mut code = Code::default();
    let (end, own, new, taken) = (code.label(), code.label(), code.label(), code.label());
    code.copy(R6, R1);
    look_at_place(&mut code, maps, own);
    look_beside(&mut code, maps, new);
    code.copy(R8, R0);
    note(&mut code);

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
    update(&mut code, &maps.taken, INDEX, THREAD, ONLY_NEW);
    code.jump_if_not_equal(R0, 0, taken);
    code.store(R8, SUBJECT, R9);
    code.store(R8, OWNER, R7);
    code.place(own);
    note(&mut code);

    code.place(taken);
    any_beside(&mut code, maps);
    code.store_value(R1, ANY_BESIDE, 1);
    code.load(R1, R6, 8);
    code.store(STACK, VALUE + CALL, R1);
    code.store(STACK, VALUE + SUBJECT, R9);
    code.store(STACK, VALUE + OWNER, R7);
    code.call(Helper::Nanoseconds);
    code.store(STACK, VALUE + T_NS, R0);
    update(&mut code, &maps.beside, THREAD, VALUE, ANY);
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

/// `sys_exit(registers, result)`: adds up what the thread has noted on entering.
pub fn leaving(maps: &Maps) -> Code {
    let mut code = Code::default();
    let (end, own, has_room) = (code.label(), code.label(), code.label());
    code.copy(R6, R1);
    look_at_place(&mut code, maps, own);
    look_beside(&mut code, maps, end);
    code.copy(R8, R0);
    code.place(own);
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

/// `sched_process_exit(task)`: forgets a thread that ends within a call, as every thread does.
pub fn ending(maps: &Maps) -> Code {
    let mut code = Code::default();
    let own = code.label();
    look_at_place(&mut code, maps, own);
    code.store_half(STACK, THREAD, R7);
    code.map(R1, &maps.beside);
    code.stack_address(R2, THREAD);
    code.call(Helper::Delete);
    code.exit();
    code.place(own);
    code.store_value(R8, T_NS, 0);
    code.store_value(R8, OWNER, 0);
    code.mask(R7, maps.count as i32 - 1);
    code.store_half(STACK, INDEX, R7);
    code.map(R1, &maps.taken);
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
    const EACH: u64 = 20_000;

    /// The number of the cgroup (version 2) that this process is in.
    fn own_cgroup() -> Option<u64> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let root = mounts.lines().find(|line| line.contains(" - cgroup2 "))?.split(' ').nth(4)?;
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
        fs::metadata(format!("{root}{path}")).ok().map(|found| found.ino())
    }

    /// The row's sum for a call that nobody else makes, after `THREADS` at once made it.
    fn counted(places: usize) -> Option<Sum> {
        let call = libc::SYS_lookup_dcookie;
        let said = |error: &io::Error| eprintln!("bpf(2) is not to be had here: {error}");
        let maps = Maps::create(places).inspect_err(said).ok()?;
        let _programs = [
            attach(entering(&maps), c"sys_enter").inspect_err(said).ok()?,
            attach(leaving(&maps), c"sys_exit").unwrap(),
            attach(ending(&maps), c"sched_process_exit").unwrap(),
        ];
        maps.watched.set(&own_cgroup()?, &1u64).unwrap();
        let made = || {
            for _ in 0..EACH {
                // SAFETY: a null buffer of no length.
                unsafe { libc::syscall(call, 0u64, std::ptr::null_mut::<u8>(), 0usize) };
            }
        };
        std::thread::scope(|scope| (0..THREADS).for_each(|_| drop(scope.spawn(made))));
        let mut row = vec![Sum::default(); CALLS];
        assert!(maps.sums.get_all(1, &mut row));
        Some(row[call as usize])
    }

    #[test]
    fn every_call_counts_whether_each_thread_has_a_place_or_all_want_the_same() {
        for places in [PLACES, 1] {
            let Some(sum) = counted(places) else { return };
            assert_eq!(sum.calls, THREADS * EACH, "with {places} places");
            assert_eq!(sum.errors, sum.calls, "with {places} places");
            assert!(sum.ns > 0);
        }
    }
}
