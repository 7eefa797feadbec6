//! Fuzz targets that compare our readers with other Rust crates that read the same formats. Every
//! message that such a crate returns from an undamaged part of a log must be a message of ours, with
//! the same bytes. Messages of a ULog are identified by their offset, and those of bags by their
//! topic and time.
//!
//! These crates are called peers. A peer may stop, or panic, in the middle of a log. Then only what
//! it returned before is compared.

mod rosbag;
mod ulog;
mod ulog_sound;

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use rovelog::{LogReader, RecoverOptions, Select};

pub use rosbag::{rosbag_peers, rosbag_peers_rewrite};
pub use ulog::{ulog_peers, ulog_peers_rewrite, ulog_peers_write};

thread_local! {
    /// True while a peer runs on this thread.
    static IN_PEER: Cell<bool> = const { Cell::new(false) };
}

/// Calls a peer, which may panic. Returns its result, or `None` after a panic.
///
/// libFuzzer ends the process in the panic hook, so the hook is replaced by one that ignores panics
/// of peers.
fn call_peer<T>(peer: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let hook = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IN_PEER.get() {
                hook(info);
            }
        }));
    });
    IN_PEER.set(true);
    let result = panic::catch_unwind(AssertUnwindSafe(peer));
    IN_PEER.set(false);
    result.ok()
}

/// Recovers and slices a log. Calls `check` with each resulting log.
fn check_rewritten(log: &dyn LogReader, check: impl Fn(&[u8])) {
    let mut out = Vec::new();
    log.recover(&mut out, &RecoverOptions::default()).expect("writing to memory succeeds");
    check(&out);
    let middle = log.info().start.zip(log.info().end).map(|(start, end)| start.nanos.midpoint(end.nanos));
    for select in [Select::all(), Select::all().between(middle, None), Select::all().between(None, middle)] {
        out.clear();
        if log.slice(&select, &mut out).is_ok() {
            check(&out);
        }
    }
}

/// Returns the content of all logs of a format in the corpus.
#[cfg(test)]
fn corpus(format: &str) -> impl Iterator<Item = Vec<u8>> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus").join(format);
    let entries = std::fs::read_dir(folder).expect("the corpus is part of the repository");
    entries.map(|entry| std::fs::read(entry.expect("a readable folder").path()).expect("a readable file"))
}
