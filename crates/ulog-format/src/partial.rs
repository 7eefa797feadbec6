//! Logs that are read in part, for example from a server.
//!
//! A ULog has no index. The definitions are at the start of the file, and nothing describes the
//! contents of the other parts.

use rovelog_core::internal::partial::{END, Ranges};
use rovelog_core::internal::scan::{Scan as _, Window};
use rovelog_core::{ReadOptions, Result};

use crate::locate::Search;
use crate::scan::{Scanner, Step};

/// Maximum number of bytes at the start of the file that are fetched for the definitions.
const MAX_DEFINITIONS_LEN: u64 = 3 * END;

/// Fetches the definitions of a log. They are at the start of the file and end where the data
/// section starts.
pub(crate) fn outline(file: &dyn Ranges) -> Result<()> {
    let (size, mut len) = (file.size(), END);
    // The size of the definitions is not stored, so the size of the fetched range is doubled until
    // it contains the start of the data section.
    while len < size.min(MAX_DEFINITIONS_LEN) && !reaches_data(&file.read(0..len)?) {
        len = (2 * len).min(MAX_DEFINITIONS_LEN);
    }
    file.fetch(std::slice::from_ref(&(0..len.min(size))))
}

/// Returns `true` if the data section starts within `head`, or if `head` is not a readable log.
fn reaches_data(head: &[u8]) -> bool {
    let window = Window { data: head, base: 0, eof: false };
    let Ok(started) = Scanner::start(window, &ReadOptions::default(), Search::Far) else { return false };
    let Ok(mut scanner) = started else { return true };
    while let Ok(step) = scanner.step(window) {
        if scanner.definitions.in_data || matches!(step, Step::End) {
            return true;
        }
    }
    false
}
