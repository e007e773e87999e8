//! This host: its clock, its facts and load, free ports, and what meters read of it.

pub mod bpf;
pub mod clock;
pub mod cpu_times;
pub mod fingerprint;
pub mod load;
pub mod others;
pub mod perf;
pub mod ports;
pub mod tree;
pub mod tree_file;
