//! Access to this host: its clocks, facts, load and free ports, and the files that meters read.

pub mod bpf;
pub mod clock;
pub mod cpu_latency;
pub mod cpu_times;
pub mod fingerprint;
pub mod load;
pub mod others;
pub mod perf;
pub mod ports;
pub mod tree;
pub mod tree_file;
