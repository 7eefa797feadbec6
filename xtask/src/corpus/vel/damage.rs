//! Damage: each with one sensible account, sound messages before and behind it.

use super::kinds::{image_data, obd_data};
use super::log::{IMAGE, Index, Log, Message, OBD, refused};
use super::{Case, Made};

pub(super) const CASES: &[Case] = &[
    Case::vel("damaged+garbage", "bytes that are no message", &["D24"], || garbage(&[0xC3; 77])),
    Case::vel("damaged+zeros", "a hole of zeros: no message of size 0", &["D25"], || garbage(&[0; 4096])),
    Case::vel("damaged+marker", "the marker of a message is 0", &["D24"], marker),
    Case::vel("damaged+size-too-small", "a size below that of a header", &["D24"], || size(5)),
    Case::vel("damaged+size-zero", "a size of 0", &["D24", "D25"], || size(0)),
    Case::vel("damaged+size-too-large", "a size that passes the end of the file", &["D24", "D38"], || {
        size(0x7FFF_FFF0)
    }),
    Case::vel("damaged+size-one-more", "a size that is one too large", &["D24"], || size(46)),
    Case::vel(
        "damaged+unconfirmed",
        "a message of an unknown type that leads nowhere",
        &["D24"],
        unconfirmed,
    ),
    Case::vel("damaged+decoy", "a payload that holds the bytes of a message", &["D24"], decoy),
    Case::vel("damaged+two-places", "damage twice, and a cut", &["D24", "D6"], two_places),
    Case::vel("damaged+to-the-end", "nothing sound comes after the damage", &["D24"], to_the_end),
    Case::vel(
        "damaged+first-message",
        "the first message is damaged: the next is found",
        &["D23", "D24"],
        first,
    ),
    Case::vel("joined-logs", "two logs in one file", &["D26"], joined),
    Case::vel("bad-magic", "the first byte is wrong", &["D27"], bad_magic),
    Case::vel("no-magic", "another file altogether", &["D27"], || {
        refused(b"BM this is no log, and no part of one".to_vec(), "not_this_format", "not a VEL log")
    }),
];

fn garbage(bytes: &[u8]) -> Made {
    let mut log = Log::new();
    log.drive(0.0, 4);
    log.garbage(bytes);
    log.drive(400.0, 4);
    log.finish()
}

/// The bytes of a message in the middle, changed.
fn broken(change: fn(&mut Vec<u8>)) -> Made {
    let mut log = Log::new();
    log.drive(0.0, 4);
    let mut bytes = log.message_bytes(&Message::new(OBD, 350.0, obd_data(7, 1500, 12.5)));
    change(&mut bytes);
    log.garbage(&bytes);
    log.drive(400.0, 4);
    log.finish()
}

fn marker() -> Made {
    broken(|bytes| bytes[4] = 0)
}

fn size(size: u32) -> Made {
    let mut log = Log::new();
    log.drive(0.0, 4);
    let message = Message::new(OBD, 350.0, obd_data(7, 1500, 12.5));
    let bytes = log.message_of_size(&message, size);
    log.garbage(&bytes);
    log.drive(400.0, 4);
    log.finish()
}

fn unconfirmed() -> Made {
    let mut log = Log::new();
    log.drive(0.0, 4);
    let mut bytes = log.message_bytes(&Message::new((0x0055_AA55, 1), 350.0, vec![3; 40]));
    bytes.extend([0xC3; 30]);
    log.garbage(&bytes);
    log.drive(400.0, 4);
    log.finish()
}

/// An image that holds a whole message; its own marker is damaged.
fn decoy() -> Made {
    let mut log = Log::new();
    log.drive(0.0, 4);
    let mut inner = log.message_bytes(&Message::new(OBD, 1.0, obd_data(99, 1500, 12.5)));
    inner.extend([0xC3; 60]);
    let mut bytes = log.message_bytes(&Message::new(IMAGE, 350.0, image_data(0, 1, 8, 8, &inner)));
    bytes[4] = 0;
    log.garbage(&bytes);
    log.drive(400.0, 4);
    log.finish()
}

fn two_places() -> Made {
    let mut log = Log::new();
    log.drive(0.0, 3);
    log.garbage(&[0xC3; 20]);
    log.drive(300.0, 3);
    log.garbage(&[0xC3; 21]);
    log.drive(600.0, 3);
    let from = log.at();
    log.bytes(&log.message_bytes(&Message::new(OBD, 900.0, obd_data(4, 1500, 12.5))));
    log.cut(9, from)
}

fn to_the_end() -> Made {
    let mut log = Log::new();
    log.drive(0.0, 3);
    log.garbage(&[0xC3; 200]);
    log.finish()
}

fn first() -> Made {
    let mut log = Log::new();
    log.index(Index::Changed(|_| vec![20], true));
    let mut bytes = log.message_bytes(&Message::new(OBD, 0.0, obd_data(7, 1500, 12.5)));
    bytes[4] = 0;
    log.garbage(&bytes);
    log.starts_here();
    log.drive(100.0, 4);
    log.finish()
}

fn joined() -> Made {
    let mut log = Log::new();
    log.drive(0.0, 3);
    log.note("joined", log.at());
    log.bytes(b"\xa4VEL\x01\x00\x01\x00\x01\x00\x00\x00\x14\x00\x00\x00\x00\x00\x00\x00");
    log.drive(50.0, 3);
    log.finish()
}

fn bad_magic() -> Made {
    let mut log = Log::new();
    log.drive(0.0, 3);
    let mut bytes = log.finish().bytes;
    bytes[0] = 0xA5;
    refused(bytes, "not_this_format", "not a VEL log")
}
