//! Cancellation of a request whose answer is no longer needed.
//!
//! A request reads a log in many functions. The flag that cancels the request belongs to the thread
//! that answers it, so that these functions need no additional parameter.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Error, Result};

thread_local! {
    /// Flag of the request that this thread answers, or `None` if the work cannot be canceled.
    static FLAG: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Calls `work`, which is canceled when `flag` becomes true: record batches that `work` reads on
/// this thread then end with an error. If `flag` is `None`, `work` is never canceled.
pub fn with_flag<T>(flag: Option<Arc<AtomicBool>>, work: impl FnOnce() -> T) -> T {
    let outer = FLAG.replace(flag);
    let result = work();
    FLAG.set(outer);
    result
}

/// Checks whether the request of this thread was canceled.
///
/// # Errors
/// Returns an error if the request was canceled.
pub fn check() -> Result<()> {
    let is_canceled = |flag: &Arc<AtomicBool>| flag.load(Ordering::Relaxed);
    if FLAG.with_borrow(|flag| flag.as_ref().is_some_and(is_canceled)) {
        return Err(Error::io("rovelog", io::ErrorKind::Interrupted.into()));
    }
    Ok(())
}
