//! The memory of images that are being decoded, counted over all threads.

use std::sync::{Condvar, Mutex, PoisonError};

/// What all threads together may take for images that are not small.
const ALL_THREADS: u64 = 1 << 30;

/// Images that take less are not counted: ordinary photos need not wait for each other.
const SMALL: u64 = 16 << 20;

/// The bytes that are taken, and a signal whenever some are given back.
struct Account {
    taken: Mutex<u64>,
    given_back: Condvar,
}

static ACCOUNT: Account = Account { taken: Mutex::new(0), given_back: Condvar::new() };

/// Memory that counts until this is dropped.
pub(super) struct Taken(u64);

/// Waits until this many bytes fit beside those of the other threads; an image that fits with
/// none waits until it is alone.
pub(super) fn take(bytes: u64) -> Taken {
    if bytes < SMALL {
        return Taken(0);
    }
    let bytes = bytes.min(ALL_THREADS);
    let taken = ACCOUNT.taken.lock().unwrap_or_else(PoisonError::into_inner);
    let is_full = |taken: &mut u64| *taken + bytes > ALL_THREADS;
    let taken = ACCOUNT.given_back.wait_while(taken, is_full);
    *taken.unwrap_or_else(PoisonError::into_inner) += bytes;
    Taken(bytes)
}

impl Drop for Taken {
    fn drop(&mut self) {
        if self.0 > 0 {
            *ACCOUNT.taken.lock().unwrap_or_else(PoisonError::into_inner) -= self.0;
            ACCOUNT.given_back.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn threads_wait_for_each_other_above_the_limit() {
        let (now, most) = (AtomicU64::new(0), AtomicU64::new(0));
        let each = ALL_THREADS / 3 + 1;
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let _taken = take(each);
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::sleep(std::time::Duration::from_millis(5));
                    now.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        assert_eq!(most.into_inner(), 2);
        drop(take(u64::MAX));
    }
}
