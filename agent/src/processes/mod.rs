//! Processes: how they are started through a guard, followed, measured as trees, and cleaned up.

pub mod attach;
pub mod census;
pub mod cgroup;
pub mod clean;
pub mod guard;
pub mod launch;
pub mod members;
pub mod own;
pub mod process;
pub mod pump;
pub mod shm;
