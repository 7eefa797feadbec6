//! Logs of which parts are read. A ULog has no index: its start has the definitions, and nothing
//! tells what the other parts contain.

use rovelog_core::partial::{END, Ranges};
use rovelog_core::scan::{Scan as _, Window};
use rovelog_core::{ReadOptions, Result};

use crate::locate::Search;
use crate::scan::{Scanner, Step};

/// Maximum number of bytes that are fetched for the definitions.
const MOST: u64 = 3 * END;

/// Fetches the definitions: all bytes before the data section.
pub(crate) fn outline(file: &dyn Ranges) -> Result<()> {
    let (size, mut len) = (file.size(), END);
    while len < size.min(MOST) && !reaches_data(&file.read(0..len)?) {
        len = (2 * len).min(MOST);
    }
    file.fetch(std::slice::from_ref(&(0..len.min(size))))
}

/// Returns whether the data section starts within `head`, or more bytes would not help.
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
