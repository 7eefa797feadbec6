//! The three ends of a file, cuts, and bytes after an end mark.

use super::log::{Index, Log, Message, refused};
use crate::cases;

cases! {
    "end-of-file" [D5] "the last message ends with the file: it is one" => Log::new().drive(0.0, 3);
    "end-mark" [D15] "a size of 0xFFFFFFFF ends the log" => Log::new().drive(0.0, 3).terminate();
    "end-mark+tail" [D15] "whole messages behind the end mark are left out" =>
        Log::new().drive(0.0, 3).note("messages_behind_end").terminate().unseen(&fourth()).unseen(&fourth());
    "end-mark+noise" [D15] "bytes behind the end mark that hold no message" => behind_end(&[0xC3; 80]);
    "end-mark+0xff" [D15] "more bytes 0xFF than an end mark has" => behind_end(&[0xFF; 4092]);
    "end-mark+inside" [D15 D10]
        "a size overwritten with an end mark: messages, a short one and two more end marks behind it" => {
        let log = Log::new().drive(0.0, 3).note("messages_behind_end")
            .spoilt(&Message::obd(350.0, 9), |bytes| bytes[..4].fill(0xFF)).unseen(&fourth());
        let short = log.frame(&Message { data: vec![7; 20], ..Message::obd(450.0, 0) });
        log.lose("bad_payload", short).unseen(&fourth()).terminate().unseen(&fourth()).terminate().note("tail")
            .lay([0; 9])
    };
    "no-messages" [D12] "a header and an empty index" => empty();
    "no-messages+end-mark" [D15] "the same with an end mark" => empty().terminate();
    "cut-in-data" [D6] "the file ends inside a message's data" => Log::new().drive(0.0, 3).cut(&fourth(), 5);
    "cut-in-header" [D6] "the file ends inside a message's header" => Log::new().drive(0.0, 3).cut(&fourth(), 40);
    "cut-in-size" [D6] "the file ends inside a message's size" => Log::new().drive(0.0, 3).cut(&fourth(), 47);
    "cut-in-only-message" [D6] "the only message of the log is cut" => empty().cut(&fourth(), 5);
    "cut-in-file-header" [D6] "nothing of the log is there" => refused(b"\xa4VEL\x01\x00", "truncated", "byte 6");
    "cut-in-index" [D6] "nothing of the log is there" =>
        refused(b"\xa4VEL\x01\x00\x01\x00\x02\x00\x00\x00\x1c\x00", "truncated", "byte 14");
}

/// Returns a message of 49 bytes that follows three others.
fn fourth() -> Message {
    Message::obd(400.0, 4)
}

fn empty() -> Log {
    Log::new().index(Index::None).assumed("size_rule", "exclusive")
}

fn behind_end(bytes: &[u8]) -> Log {
    Log::new().drive(0.0, 3).terminate().note("tail").lay(bytes)
}
