//! Cases of data that was appended after the end of the log, often in the middle of a message.

use super::prelude::*;

cases! {
    "appended" [D28] "one appended section after a clean end" =>
        announced().append_here().part(false, "char[14] hardfault_plain", "pc: 0x080a1b2c")
            .text(b'0', time(5), "hard fault").rows(5..8);
    "appended-three-sections" [D28] "all three offsets used, the last cut like the log itself" =>
        announced().each(0..3_u16, |log, section| {
            let log = log.lose("cut", &plain_row(5 + section)[..6 + usize::from(section)]).append_here()
                .text(b'2', time(5 + section), "appended");
            // Each section starts before the time of the last row in the previous section.
            log.when(section == 1, |log| log.note("timestamps_fall")).rows(6 + section..9 + section)
        });
    "appended+cut-in-payload-before" [D28 D31]
        "the log ended inside a row: nothing is joined, subscriptions hold on" =>
        announced().lose("cut", &plain_row(5)[..11]).append_here().text(b'3', time(6), "crash").rows(6..11);
    "appended+cut-in-header-before" [D28 D31] "the log ended after two bytes of a header" =>
        announced().lose("cut", &plain_row(5)[..2]).append_here().rows(6..11);
    "appended+one-text" [D28]
        "all that is appended is one text, behind a cut row: it ends where the log ends" =>
        announced().lose("cut", &plain_row(5)[..11]).append_here().text(b'3', time(6), "crash");
    "appended-bit-without-offset" [D29] "the bit is set but no offset is" =>
        announced().note_at(16, "appended_flag_mismatch").rows(5..8);
    "appended-offset-without-bit" [D29] "an offset where messages begin is used though the bit is not set" =>
        plain().note_at(16, "appended_flag_mismatch").rows(0..5).lose("cut", &plain_row(5)[..11]).append_here()
            .rows(6..11);
    "appended-offset-past-the-end" [D29] "an offset behind the end of the file is ignored" =>
        announced().note_at(16, "appended_offset_ignored").rows(5..8).appended_offset(0, 1 << 40);
    "appended-offset-inside-a-row" [D29] "an offset into a sound message is ignored" => {
        let log = announced().note_at(16, "appended_offset_ignored");
        let inside = log.at() + 7;
        log.appended_offset(0, inside).rows(5..10)
    };
    "appended-offset-inside-a-row+behind-unknown" [D29]
        "an offset into a sound message behind an unknown one: neither is lost" => {
        let log = announced().note_at(16, "appended_offset_ignored").unknown(b'X', b"unknown");
        let inside = log.at() + 7;
        log.appended_offset(0, inside).rows(5..10)
    };
    "appended-offsets-descending" [D28] "the offset of the second section is the first: both are used" => {
        let first = announced().append_here().rows(5..8);
        let (start, offset) = (announced().at(), first.at());
        first.append_here().rows(8..11).appended_offset(0, offset).appended_offset(1, start)
    };
    "appended-offsets-not-ascending" [D29]
        "the second offset lies before the first, in a sound message: only the first is used" => {
        let log = announced().note_at(16, "appended_offset_ignored");
        let inside = log.at() - 7;
        log.lose("cut", &plain_row(5)[..11]).append_here().appended_offset(1, inside).rows(6..11)
    };
}

/// Returns a log with the plain topic and a few rows, whose flag bits announce appended data.
fn announced() -> Log {
    Log::new().appended_bit().topic(PLAIN).rows(0..5)
}
