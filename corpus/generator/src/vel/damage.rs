//! Cases of damage between intact messages. Each damage can be interpreted in one way only.

use super::prelude::*;

cases! {
    "damaged+garbage" [D24] "bytes that are no message" => garbage(&[0xC3; 77]);
    "damaged+zeros" [D25] "a hole of zeros: no message of size 0" => garbage(&[0; 4096]);
    "damaged+marker" [D24] "the marker of a message is 0" => broken(|bytes| bytes[4] = 0);
    "damaged+size-too-small" [D24] "a size below that of a header" => size(5);
    "damaged+size-zero" [D24 D25] "a size of 0" => size(0);
    "damaged+size-too-large" [D24 D38] "a size that passes the end of the file" => size(0x7FFF_FFF0);
    "damaged+size-one-more" [D24] "a size that is one too large" => size(46);
    "damaged+unconfirmed" [D24] "a message of an unknown type that leads nowhere" =>
        Log::new().drive(0.0, 4)
            .spoilt(&Message::new((0x0055_AA55, 1), 350.0, vec![3; 40]), |bytes| bytes.extend([0xC3; 30]))
            .drive(400.0, 4);
    "damaged+decoy" [D24] "a payload that holds the bytes of a message" => {
        // An image that contains a complete message. The marker of the image is damaged.
        let log = Log::new().drive(0.0, 4);
        let inner = [log.frame(&Message::obd(1.0, 99)), vec![0xC3; 60]].concat();
        let image = IMAGE.message(350.0, &values![0, true, 8, 8, &inner[..]]);
        log.spoilt(&image, |bytes| bytes[4] = 0).drive(400.0, 4)
    };
    "damaged+two-places" [D24 D6] "damage twice, and a cut" =>
        Log::new().drive(0.0, 3).lose("gap", [0xC3; 20]).drive(300.0, 3).lose("gap", [0xC3; 21]).drive(600.0, 3)
            .cut(&Message::obd(900.0, 4), 9);
    "damaged+to-the-end" [D24] "nothing sound comes after the damage" =>
        Log::new().drive(0.0, 3).lose("gap", [0xC3; 200]);
    "damaged+first-message" [D23 D24] "the first message is damaged: the next is found" =>
        Log::new().index(true, |entries| *entries = vec![20])
            .spoilt(&Message::obd(0.0, 7), |bytes| bytes[4] = 0).starts_here().drive(100.0, 4);
    "joined-logs" [D26] "two logs in one file" =>
        Log::new().drive(0.0, 3).note("joined")
            .lay(b"\xa4VEL\x01\x00\x01\x00\x01\x00\x00\x00\x14\x00\x00\x00\x00\x00\x00\x00").drive(50.0, 3);
    "bad-magic" [D27] "the first byte is wrong" =>
        not_vel(&Made::from(Log::new().drive(0.0, 3)).bytes.with(|bytes| bytes[0] = 0xA5));
    "no-magic" [D27] "another file altogether" => not_vel(b"BM this is no log, and no part of one");
}

fn garbage(bytes: &[u8]) -> Log {
    Log::new().drive(0.0, 4).lose("gap", bytes).drive(400.0, 4)
}

/// Adds a changed message in the middle.
fn broken(change: impl FnOnce(&mut Vec<u8>)) -> Log {
    Log::new().drive(0.0, 4).spoilt(&Message::obd(350.0, 7), change).drive(400.0, 4)
}

fn size(size: u32) -> Log {
    broken(|bytes| bytes[..4].copy_from_slice(&size.to_le_bytes()))
}

fn not_vel(bytes: &[u8]) -> Made {
    refused(bytes, ["vel", ""], "not_this_format", "not a VEL log")
}
