//! Locks that outlast a panic.

use std::sync::{Mutex, MutexGuard};

/// Locks what a thread that panicked may have left locked: its data are whole between statements.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
