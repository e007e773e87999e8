//! Builds small eBPF programs with the system call bpf(2): an assembler for the few instructions
//! that a meter needs, maps, and attachment to tracepoints.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

const MAP_CREATE: u32 = 0;
const MAP_LOOKUP: u32 = 1;
const MAP_UPDATE: u32 = 2;
const MAP_NEXT_KEY: u32 = 4;
const PROGRAM_LOAD: u32 = 5;
const RAW_TRACEPOINT_OPEN: u32 = 17;
const HASH: u32 = 1;
const ARRAY: u32 = 2;
const RAW_TRACEPOINT: u32 = 17;

/// Kernel functions that a program may call.
#[derive(Clone, Copy)]
#[repr(i32)]
pub enum Helper {
    Lookup = 1,
    Update = 2,
    Delete = 3,
    Nanoseconds = 5,
    ThreadId = 14,
    CgroupId = 80,
}

/// Registers: `R0` has the result of a call, `R1` … `R5` its arguments; calls preserve
/// `R6` … `R9`.
pub const R0: u8 = 0;
pub const R1: u8 = 1;
pub const R2: u8 = 2;
pub const R3: u8 = 3;
pub const R4: u8 = 4;
pub const R6: u8 = 6;
pub const R7: u8 = 7;
pub const R8: u8 = 8;
pub const R9: u8 = 9;
/// The end of the stack. A program's data are at negative offsets from it.
pub const STACK: u8 = 10;

/// The target of a forward jump.
#[derive(Clone, Copy)]
pub struct Label(usize);

/// A program under construction. Every method appends instructions.
#[derive(Default)]
pub struct Code {
    words: Vec<u64>,
    /// Position of each label in instructions.
    targets: Vec<usize>,
    jumps: Vec<(usize, Label)>,
}

impl Code {
    fn push(&mut self, opcode: u8, to: u8, from: u8, offset: i16, immediate: i32) {
        let registers = u64::from(from << 4 | to) << 8;
        let (offset, immediate) = (u64::from(offset as u16), u64::from(immediate as u32));
        self.words.push(u64::from(opcode) | registers | offset << 16 | immediate << 32);
    }

    pub fn label(&mut self) -> Label {
        self.targets.push(0);
        Label(self.targets.len() - 1)
    }

    pub fn place(&mut self, label: Label) {
        self.targets[label.0] = self.words.len();
    }

    fn jump(&mut self, opcode: u8, register: u8, value: i32, label: Label) {
        self.jumps.push((self.words.len(), label));
        self.push(opcode, register, 0, 0, value);
    }

    pub fn jump_if_equal(&mut self, register: u8, value: i32, label: Label) {
        self.jump(0x15, register, value, label);
    }

    pub fn jump_if_not_equal(&mut self, register: u8, value: i32, label: Label) {
        self.jump(0x55, register, value, label);
    }

    pub fn jump_if_registers_equal(&mut self, register: u8, other: u8, label: Label) {
        self.jumps.push((self.words.len(), label));
        self.push(0x1d, register, other, 0, 0);
    }

    /// Compares as unsigned numbers; `value` is sign-extended to 64 bits.
    pub fn jump_if_below(&mut self, register: u8, value: i32, label: Label) {
        self.jump(0xa5, register, value, label);
    }

    pub fn set(&mut self, register: u8, value: i32) {
        self.push(0xb7, register, 0, 0, value);
    }

    pub fn copy(&mut self, to: u8, from: u8) {
        self.push(0xbf, to, from, 0, 0);
    }

    /// Sets `to` to the lower 4 bytes of `from`.
    pub fn copy_half(&mut self, to: u8, from: u8) {
        self.push(0xbc, to, from, 0, 0);
    }

    pub fn add(&mut self, to: u8, from: u8) {
        self.push(0x0f, to, from, 0, 0);
    }

    pub fn multiply(&mut self, to: u8, value: i32) {
        self.push(0x27, to, 0, 0, value);
    }

    /// Computes the bitwise AND with `value`.
    pub fn mask(&mut self, to: u8, value: i32) {
        self.push(0x57, to, 0, 0, value);
    }

    pub fn subtract(&mut self, to: u8, from: u8) {
        self.push(0x1f, to, from, 0, 0);
    }

    /// Sets `to` to the address `offset` bytes from the end of the stack.
    pub fn stack_address(&mut self, to: u8, offset: i16) {
        self.copy(to, STACK);
        self.push(0x07, to, 0, 0, i32::from(offset));
    }

    /// Reads 8 bytes at `base` + `offset`.
    pub fn load(&mut self, to: u8, base: u8, offset: i16) {
        self.push(0x79, to, base, offset, 0);
    }

    /// Writes 8 bytes to `base` + `offset`.
    pub fn store(&mut self, base: u8, offset: i16, from: u8) {
        self.push(0x7b, base, from, offset, 0);
    }

    /// Writes the lower 4 bytes to `base` + `offset`.
    pub fn store_half(&mut self, base: u8, offset: i16, from: u8) {
        self.push(0x63, base, from, offset, 0);
    }

    pub fn store_value(&mut self, base: u8, offset: i16, value: i32) {
        self.push(0x7a, base, 0, offset, value);
    }

    /// Adds atomically to 8 bytes in memory.
    pub fn add_atomic(&mut self, base: u8, offset: i16, from: u8) {
        self.push(0xdb, base, from, offset, 0);
    }

    pub fn call(&mut self, helper: Helper) {
        self.push(0x85, 0, 0, 0, helper as i32);
    }

    pub fn map(&mut self, to: u8, map: &Map) {
        self.push(0x18, to, 1, 0, map.0.as_raw_fd());
        self.push(0, 0, 0, 0, 0);
    }

    /// Sets `to` to the address of the value in an array with one entry.
    pub fn only_value(&mut self, to: u8, map: &Map) {
        self.push(0x18, to, 2, 0, map.0.as_raw_fd());
        self.push(0, 0, 0, 0, 0);
    }

    pub fn exit(&mut self) {
        self.set(R0, 0);
        self.push(0x95, 0, 0, 0, 0);
    }

    fn finished(mut self) -> Vec<u64> {
        for (index, label) in &self.jumps {
            let distance = (self.targets[label.0] - index - 1) as u16;
            self.words[*index] |= u64::from(distance) << 16;
        }
        self.words
    }
}

/// A table that programs and this process share, either a hash map or an array.
pub struct Map(OwnedFd);

impl Map {
    pub fn create(key_bytes: u32, value_bytes: u32, entries: u32) -> io::Result<Map> {
        Self::of_kind(HASH, key_bytes, value_bytes, entries)
    }

    /// Creates an array, whose keys are the 4-byte numbers below `entries` and whose values are
    /// initially 0.
    pub fn array(value_bytes: u32, entries: u32) -> io::Result<Map> {
        Self::of_kind(ARRAY, 4, value_bytes, entries)
    }

    fn of_kind(kind: u32, key_bytes: u32, value_bytes: u32, entries: u32) -> io::Result<Map> {
        let attributes: [u32; 5] = [kind, key_bytes, value_bytes, entries, 0];
        Ok(Map(descriptor(bpf(MAP_CREATE, &attributes)?)))
    }

    /// Sets an entry. `key` and `value` must have the sizes of the map.
    pub fn set<K: Copy, V: Copy>(&self, key: &K, value: &V) -> io::Result<()> {
        bpf(MAP_UPDATE, &self.element(key, (&raw const *value) as u64)).map(|_| ())
    }

    /// Reads an entry into `value`. Returns whether the entry exists.
    pub fn get<K: Copy, V: Copy>(&self, key: &K, value: &mut V) -> bool {
        bpf(MAP_LOOKUP, &self.element(key, (&raw mut *value) as u64)).is_ok()
    }

    /// Reads an entry of an array into `values`, which must have the size of the entry.
    pub fn get_all<V: Copy>(&self, index: u32, values: &mut [V]) -> bool {
        bpf(MAP_LOOKUP, &self.element(&index, values.as_mut_ptr() as u64)).is_ok()
    }

    /// Calls `visit` with every key and value. It may omit entries that are added or removed
    /// concurrently.
    pub fn each<K: Copy + Default, V: Copy + Default>(&self, mut visit: impl FnMut(K, V)) {
        let (mut key, mut next, mut value) = (K::default(), K::default(), V::default());
        let mut first = true;
        loop {
            let mut attributes = self.element(&key, (&raw mut next) as u64);
            if first {
                attributes[1] = 0;
            }
            if bpf(MAP_NEXT_KEY, &attributes).is_err() {
                return;
            }
            (key, first) = (next, false);
            if self.get(&key, &mut value) {
                visit(key, value);
            }
        }
    }

    fn element<K>(&self, key: &K, other: u64) -> [u64; 4] {
        [self.0.as_raw_fd() as u64, (&raw const *key) as u64, other, 0]
    }
}

/// A program that is attached to a tracepoint. It is detached when the value is dropped or this
/// process ends.
pub struct Attached {
    _program: OwnedFd,
    _link: OwnedFd,
}

/// Loads the program and attaches it to a raw tracepoint. Returns EPERM without the right to do so.
pub fn attach(code: Code, tracepoint: &std::ffi::CStr) -> io::Result<Attached> {
    #[repr(C)]
    struct Load {
        kind: u32,
        count: u32,
        instructions: u64,
        license: u64,
        log_level: u32,
        log_bytes: u32,
        log: u64,
    }
    let words = code.finished();
    let license = c"Apache-2.0";
    let mut load = Load {
        kind: RAW_TRACEPOINT,
        count: words.len() as u32,
        instructions: words.as_ptr() as u64,
        license: license.as_ptr() as u64,
        log_level: 0,
        log_bytes: 0,
        log: 0,
    };
    let loaded = bpf(PROGRAM_LOAD, &load).or_else(|error| {
        if error.raw_os_error() == Some(libc::EPERM) {
            return Err(error);
        }
        // Loads it again with a log, to get the kernel's reason for the rejection.
        let mut log = vec![0u8; 64 << 10];
        (load.log_level, load.log_bytes) = (1, log.len() as u32);
        load.log = log.as_mut_ptr() as u64;
        bpf(PROGRAM_LOAD, &load).map_err(|error| {
            let text = String::from_utf8_lossy(&log);
            let text = text.trim_end_matches('\0').trim_end();
            let last = text.lines().rev().take(2).collect::<Vec<_>>().join(" / ");
            io::Error::new(error.kind(), format!("{error} ({last})"))
        })
    });
    let program = descriptor(loaded?);
    let open: [u64; 2] = [tracepoint.as_ptr() as u64, program.as_raw_fd() as u64];
    let link = descriptor(bpf(RAW_TRACEPOINT_OPEN, &open)?);
    Ok(Attached { _program: program, _link: link })
}

fn bpf<T>(command: u32, attributes: &T) -> io::Result<RawFd> {
    // SAFETY: the attributes have the given size and outlive the call. The callers own the buffers
    // to which the attributes point, and keep them until this function returns.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            (&raw const *attributes).cast_mut(),
            std::mem::size_of::<T>() as u32,
        )
    };
    match result {
        0.. => Ok(result as RawFd),
        _ => Err(io::Error::last_os_error()),
    }
}

fn descriptor(fd: RawFd) -> OwnedFd {
    // SAFETY: the kernel has just created this descriptor (close-on-exec). Nothing else owns it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forward_jump_leads_to_its_label() {
        let mut code = Code::default();
        let end = code.label();
        code.jump_if_equal(R1, 7, end);
        code.set(R2, -1);
        code.place(end);
        code.exit();
        let words = code.finished();
        assert_eq!(words[0], 0x0000_0007_0001_0115);
        assert_eq!(words[1], 0xffff_ffff_0000_02b7);
        assert_eq!(words.len(), 4);
    }

    #[test]
    fn a_map_returns_its_values_and_visits_every_entry() {
        let Some(map) = or_print(Map::create(8, 8, 4)) else { return };
        for key in 1..=4u64 {
            map.set(&key, &(key * 10)).unwrap();
        }
        assert!(map.set(&5u64, &0u64).is_err(), "a fifth entry in a map with room for four");
        let mut value = 0u64;
        assert!(map.get(&3u64, &mut value) && value == 30);
        assert!(!map.get(&9u64, &mut value));
        let mut visited = Vec::new();
        map.each(|key: u64, value: u64| visited.push((key, value)));
        visited.sort_unstable();
        assert_eq!(visited, [(1, 10), (2, 20), (3, 30), (4, 40)]);
    }

    #[test]
    fn an_array_is_initially_zero_and_has_no_entries_beyond_its_end() {
        let Some(map) = or_print(Map::array(24, 2)) else { return };
        let mut values = [7u64; 3];
        assert!(map.get_all(1, &mut values) && values == [0; 3]);
        map.set(&1u32, &[1u64, 2, 3]).unwrap();
        assert!(map.get_all(1, &mut values) && values == [1, 2, 3]);
        assert!(!map.get_all(2, &mut values));
    }

    #[test]
    fn the_error_for_a_rejected_program_has_the_kernels_reason() {
        if or_print(Map::create(8, 8, 1)).is_none() {
            return;
        }
        let mut code = Code::default();
        code.load(R1, STACK, -8);
        code.load(R1, STACK, 8);
        code.exit();
        let Err(error) = attach(code, c"sys_enter") else {
            panic!("the kernel accepted the program")
        };
        let text = error.to_string();
        assert!(text.contains("stack") || text.contains("permitted"), "{text}");
    }

    fn or_print<T>(result: io::Result<T>) -> Option<T> {
        result.inspect_err(|error| eprintln!("bpf(2) is not available on this host: {error}")).ok()
    }
}
