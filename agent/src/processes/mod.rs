//! Starts processes through a guard, tracks them as trees, and cleans up after them.

pub mod attach;
pub mod bounded;
pub mod census;
pub mod cgroup;
pub mod child;
pub mod clean;
pub mod command;
pub mod guard;
pub mod launch;
pub mod member;
pub mod members;
pub mod own;
pub mod process;
pub mod pump;
pub mod reaped;
pub mod shm;
pub mod shm_events;
