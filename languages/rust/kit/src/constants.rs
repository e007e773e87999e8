//! The contract's keys, roles, kinds, flags and layouts; written by tools/generate_constants.py.

use crate::json_type::Type;

pub const CONTRACT: i64 = 2;

/// The keys of a spec and the types of their values (C-02).
pub const KEYS: [(&str, Type); 37] = [
    ("contract", Type::Integer),
    ("run", Type::String),
    ("cell", Type::String),
    ("pattern", Type::String),
    ("role", Type::String),
    ("node", Type::Integer),
    ("index", Type::Integer),
    ("peers.nodes", Type::Integers),
    ("peers.count", Type::Integer),
    ("peers.endpoints", Type::Strings),
    ("loop", Type::String),
    ("period_ns", Type::Integer),
    ("phase_ns", Type::Integer),
    ("duration_ns", Type::Integer),
    ("count", Type::Integer),
    ("count_beyond", Type::Integer),
    ("warmup_ns", Type::Integer),
    ("overrun_ns", Type::Integer),
    ("timeout_ns", Type::Integer),
    ("outstanding_max", Type::Integer),
    ("quiet_ms", Type::Integer),
    ("linger_ms", Type::Integer),
    ("ready_timeout_ms", Type::Integer),
    ("pacing", Type::String),
    ("spin_ns", Type::Integer),
    ("payload.bytes", Type::Integer),
    ("payload.encoding", Type::String),
    ("payload.seed", Type::Integer),
    ("payload.literal", Type::String),
    ("reply", Type::String),
    ("reply.literal", Type::String),
    ("verify", Type::String),
    ("action.feedback", Type::Integer),
    ("record.capacity", Type::Integer),
    ("tls.authority", Type::String),
    ("tls.certificate", Type::String),
    ("tls.key", Type::String),
];

/// The roles in the order of their codes in a sample file's header (C-24).
pub const ROLES: [&str; 8] = [
    "publisher",
    "subscriber",
    "server",
    "client",
    "action_server",
    "action_client",
    "ping",
    "pong",
];

/// Return whether a role sends by the schedule.
pub fn is_sender(role: &str) -> bool {
    matches!(role, "publisher" | "client" | "action_client" | "ping")
}

/// The event that a record is about (C-25).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Message = 0,
    Call = 1,
    Goal = 2,
    Accept = 3,
    Feedback = 4,
    Result = 5,
    Relay = 6,
}

/// The bits of a record's flags (C-25).
pub mod flag {
    pub const WARM_UP: u8 = 1;
    pub const FAILED: u8 = 2;
    pub const TIMEOUT: u8 = 4;
    pub const CORRUPT: u8 = 8;
}

/// The words of a guarantee: delivery, ordering, overload (C-07).
pub const GUARANTEE_WORDS: [&[&str]; 3] = [
    &["best_effort", "at_most_once", "at_least_once", "exactly_once", "reliable"],
    &["none", "per_sender", "total"],
    &["drop_newest", "drop_oldest", "block", "unbounded"],
];

/// A time that is not known (C-25).
pub const UNKNOWN_NS: i64 = i64::MIN;
/// The node number of a peer that is not known.
pub const UNKNOWN_PEER: u16 = 65_535;
/// The counter of a probe (C-17).
pub const PROBE: u64 = 281_474_976_710_655;

pub const FILE_MAGIC: &[u8; 8] = b"WATTWIRE";
pub const FILE_VERSION: u16 = 1;
pub const FILE_CLOCK: u8 = 1;
pub const HEADER_BYTES: usize = 64;
pub const RECORD_BYTES: usize = 40;

/// Where the fields of a sample file's header are.
pub mod header_at {
    use std::ops::Range;

    pub const MAGIC: Range<usize> = 0..8;
    pub const VERSION: Range<usize> = 8..10;
    pub const HEADER_BYTES: Range<usize> = 10..12;
    pub const RECORD_BYTES: Range<usize> = 12..14;
    pub const ROLE: Range<usize> = 14..15;
    pub const CLOCK: Range<usize> = 15..16;
    pub const NODE: Range<usize> = 16..18;
    pub const COUNT: Range<usize> = 24..32;
    pub const OVERFLOW: Range<usize> = 32..40;
    pub const SEED: Range<usize> = 40..48;
}

/// Where the fields of a record are.
pub mod record_at {
    use std::ops::Range;

    pub const SEQ: Range<usize> = 0..8;
    pub const INTENDED_NS: Range<usize> = 8..16;
    pub const BEGIN_NS: Range<usize> = 16..24;
    pub const END_NS: Range<usize> = 24..32;
    pub const BYTES: Range<usize> = 32..36;
    pub const PEER: Range<usize> = 36..38;
    pub const KIND: Range<usize> = 38..39;
    pub const FLAGS: Range<usize> = 39..40;
}
