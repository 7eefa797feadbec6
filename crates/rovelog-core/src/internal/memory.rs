//! Checks that memory is available before work that needs much memory.
//!
//! If the standard library, Arrow or an encoder cannot allocate memory, the process ends. Only
//! `try_reserve` returns an error. Code that calls such libraries therefore checks first that the
//! memory for the next piece of work can be allocated. The check frees the memory again, so another
//! thread or process may take it before it is used.

use std::hint::black_box;
use std::io;

/// Next step for the user if memory is not sufficient.
pub(crate) const NEXT: &str =
    "give the program more memory, or first make a part of the log with rovelog slice";

/// Size in bytes of the small buffers and tables that each piece of work may need in addition.
const MARGIN: usize = 2 << 20;

/// Checks that at least `bytes` bytes of memory can be allocated.
///
/// # Errors
/// Returns an error if the memory cannot be allocated.
pub fn check(bytes: usize) -> io::Result<()> {
    let mut memory: Vec<u8> = Vec::new();
    memory.try_reserve_exact(bytes.saturating_add(MARGIN))?;
    // The compiler may remove an allocation that is not used.
    black_box(&memory);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_much_memory_is_an_error() {
        assert!(check(1 << 20).is_ok());
        let error = crate::Error::io("rovelog", check(usize::MAX / 4).unwrap_err());
        assert_eq!((error.kind, error.next.as_deref()), (crate::ErrorKind::Io, Some(NEXT)));
        assert_eq!(error.to_string(), "out of memory");
    }
}
