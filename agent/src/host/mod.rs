//! Access to this host: its clocks, facts, load, programs, disks and network, and the files that
//! meters read.

pub mod addresses;
pub mod bpf;
pub mod clock;
pub mod clock_server;
pub mod cpu_latency;
pub mod cpu_times;
pub mod cpus;
pub mod disk;
pub mod exit_records;
pub mod fingerprint;
pub mod load;
pub mod others;
pub mod packet_sockets;
pub mod perf;
pub mod ports;
pub mod programs;
pub mod servers;
pub mod tree;
pub mod tree_file;
