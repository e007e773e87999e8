//! Locks that ignore poisoning.

use std::sync::{Mutex, MutexGuard};

/// Locks a mutex even if a thread panicked while it held the lock. The protected data are
/// consistent after every statement.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
