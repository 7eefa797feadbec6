//! The three ends of a file, cuts, and what stands behind an end mark.

use super::kinds::obd_data;
use super::log::{Index, Log, Message, OBD, refused};
use super::{Case, Made};

pub(super) const CASES: &[Case] = &[
    Case::vel("end-of-file", "the last message ends with the file: it is one", &["D5"], plain),
    Case::vel("end-mark", "a size of 0xFFFFFFFF ends the log", &["D15"], end_mark),
    Case::vel("end-mark+tail", "whole messages behind the end mark are not read", &["D15"], tail),
    Case::vel("no-messages", "a header and an empty index", &["D12"], no_messages),
    Case::vel("no-messages+end-mark", "the same with an end mark", &["D15"], only_end_mark),
    Case::vel("cut-in-data", "the file ends inside a message's data", &["D6"], || cut(5)),
    Case::vel("cut-in-header", "the file ends inside a message's header", &["D6"], || cut(40)),
    Case::vel("cut-in-size", "the file ends inside a message's size", &["D6"], || cut(47)),
    Case::vel("cut-in-only-message", "the only message of the log is cut", &["D6"], cut_only),
    Case::vel("cut-in-file-header", "nothing of the log is there", &["D6"], || {
        refused(b"\xa4VEL\x01\x00".to_vec(), "truncated", "byte 6")
    }),
    Case::vel("cut-in-index", "nothing of the log is there", &["D6"], || {
        refused(b"\xa4VEL\x01\x00\x01\x00\x02\x00\x00\x00\x1c\x00".to_vec(), "truncated", "byte 14")
    }),
];

fn plain() -> Made {
    let mut log = Log::new();
    log.drive(0.0, 3);
    log.finish()
}

fn end_mark() -> Made {
    let mut log = Log::new();
    log.drive(0.0, 3);
    log.terminate();
    log.finish()
}

fn tail() -> Made {
    let mut log = Log::new();
    log.drive(0.0, 3);
    log.terminate();
    log.note("tail", log.at());
    let behind = log.message_bytes(&Message::new(OBD, 400.0, obd_data(4, 1500, 12.5)));
    log.bytes(&behind);
    log.bytes(&behind);
    log.finish()
}

fn no_messages() -> Made {
    let mut log = Log::new();
    log.index(Index::None);
    log.choice("size_rule", "exclusive", true);
    log.finish()
}

fn only_end_mark() -> Made {
    let mut log = Log::new();
    log.index(Index::None);
    log.choice("size_rule", "exclusive", true);
    log.terminate();
    log.finish()
}

/// The last of four messages of 49 bytes, without its last bytes.
fn cut(bytes: usize) -> Made {
    let mut log = Log::new();
    log.drive(0.0, 3);
    let from = log.at();
    log.bytes(&log.message_bytes(&Message::new(OBD, 400.0, obd_data(4, 1500, 12.5))));
    log.cut(bytes, from)
}

fn cut_only() -> Made {
    let mut log = Log::new();
    log.index(Index::None);
    log.choice("size_rule", "exclusive", true);
    log.bytes(&log.message_bytes(&Message::new(OBD, 400.0, obd_data(4, 1500, 12.5))));
    log.cut(5, 0)
}
