//! The three ends of a file, cuts, and what stands behind an end mark.

use super::kinds::obd_data;
use super::log::{Index, Log, Message, OBD, refused};
use super::{Case, Made};

pub(super) const CASES: &[Case] = &[
    Case::vel("end-of-file", "the last message ends with the file: it is one", &["D5"], plain),
    Case::vel("end-mark", "a size of 0xFFFFFFFF ends the log", &["D15"], end_mark),
    Case::vel("end-mark+tail", "whole messages behind the end mark are left out", &["D15"], tail),
    Case::vel("end-mark+noise", "bytes behind the end mark that hold no message", &["D15"], noise),
    Case::vel("end-mark+0xff", "more bytes 0xFF than an end mark has", &["D15"], || {
        behind_end(&[0xFF; 4092])
    }),
    Case::vel(
        "end-mark+inside",
        "a size overwritten with an end mark: messages, a short one and two more end marks behind it",
        &["D15", "D10"],
        inside,
    ),
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
    log.note("messages_behind_end", log.at());
    log.terminate();
    let behind = log.message_bytes(&Message::new(OBD, 400.0, obd_data(4, 1500, 12.5)));
    log.bytes(&behind);
    log.bytes(&behind);
    log.finish()
}

fn behind_end(bytes: &[u8]) -> Made {
    let mut log = Log::new();
    log.drive(0.0, 3);
    log.terminate();
    log.note("tail", log.at());
    log.bytes(bytes);
    log.finish()
}

fn noise() -> Made {
    behind_end(&[0xC3; 80])
}

fn inside() -> Made {
    let mut log = Log::new();
    log.drive(0.0, 3);
    log.note("messages_behind_end", log.at());
    // A message whose size was overwritten.
    let mut broken = log.message_bytes(&Message::new(OBD, 350.0, obd_data(9, 1500, 12.5)));
    broken[..4].fill(0xFF);
    log.garbage(&broken);
    let behind = log.message_bytes(&Message::new(OBD, 400.0, obd_data(4, 1500, 12.5)));
    log.bytes(&behind);
    let short = log.message_bytes(&Message::new(OBD, 450.0, vec![7; 20]));
    let at = log.at();
    log.bytes(&short);
    log.lose("bad_payload", at, log.at());
    log.bytes(&behind);
    log.terminate();
    log.bytes(&behind);
    log.terminate();
    log.note("tail", log.at());
    log.bytes(&[0; 9]);
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
