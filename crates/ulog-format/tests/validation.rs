//! Which bytes are believed after damage: each rule of section 5 of docs/formats/ulog.md, with a log
//! on either side of it.
#![expect(clippy::single_range_in_vec_init, reason = "a list of ranges may have one")]

mod support;

use rovelog_core::{LogReader as _, RecoverOptions, Select};
use support::built::{
    Built, Laid, NOISE, format, keyed, losses, lost, row, rows, string, subscription, unknown,
};
use support::open;
use ulog_format::wire::SYNC_MAGIC;

/// Returns whether the reader goes on with `messages` behind noise. Noise follows them again, or the
/// end of the file.
fn after_noise(messages: &[Laid], noise_again: bool) -> bool {
    let mut log = Built::new();
    let noise = log.raw(&NOISE);
    let found = log.messages(messages);
    let whole = if noise_again { noise.start..log.raw(&NOISE).end } else { noise.start..found.end };
    let lost = lost(&log);
    // Either they are found, and the noise alone is lost, or nothing is found up to the end.
    let begins = lost.first() == Some(&noise);
    assert!(begins || lost == [whole.clone()], "{lost:?} of {noise:?} and {found:?} up to {}", whole.end);
    begins
}

#[test]
fn three_fitting_messages_make_a_chain_and_two_do_not() {
    assert!(after_noise(&[row(4), row(5), row(6)], true));
    assert!(!after_noise(&[row(4), row(5)], true));
    assert!(!after_noise(&[row(4)], true));
}

#[test]
fn the_end_of_the_file_ends_a_chain_after_a_message_that_confirms_its_length() {
    assert!(after_noise(&[row(4)], false));
    assert!(after_noise(&[row(4), row(5)], false));
    // A text may have any length.
    assert!(!after_noise(&[string("ready")], false));
    assert!(!after_noise(&[row(4), string("ready")], false));
    assert!(after_noise(&[string("ready"), row(4)], false));
}

#[test]
fn unverifiable_messages_in_a_chain_are_ignored() {
    assert!(after_noise(&[row(4), unknown(5), row(5), unknown(0), row(6)], true));
    assert!(!after_noise(&[row(4), unknown(5), row(5)], true));
    assert!(!after_noise(&[row(4), unknown(5)], true));
    // At the end of the file they say nothing either.
    assert!(after_noise(&[row(4), unknown(5)], false));
    assert!(!after_noise(&[string("ready"), unknown(5)], false));
    assert!(!after_noise(&[unknown(5), unknown(5)], false));
}

#[test]
fn a_chain_does_not_begin_with_an_unverifiable_message() {
    let mut log = Built::new();
    let noise = log.raw(&NOISE);
    // A row of a subscription that is not there.
    let unverifiable = log.messages(&[(b'D', vec![9, 0, 1, 2, 3])]);
    log.messages(&[row(4), row(5), row(6)]);
    assert_eq!(lost(&log), [noise.start..unverifiable.end]);
}

#[test]
fn unverifiable_messages_128_in_a_row_are_as_good_as_a_chain() {
    let run = |len: usize| [vec![row(4)], vec![unknown(1); len]].concat();
    assert!(after_noise(&run(128), true));
    assert!(!after_noise(&run(127), true));
}

#[test]
fn an_unverifiable_message_before_noise_is_lost_with_it() {
    let mut log = Built::new();
    let start = log.messages(&[unknown(5)]).start;
    let end = log.raw(&NOISE).end;
    log.messages(&[row(4), row(5), row(6)]);
    assert_eq!(lost(&log), [start..end]);
    // With a long run behind it, it is passed, and only the noise is lost.
    for (len, passed) in [(129, true), (128, false)] {
        let mut log = Built::new();
        let run = log.messages(&vec![unknown(1); len]);
        let noise = log.raw(&NOISE);
        log.messages(&[row(4), row(5), row(6)]);
        let start = if passed { noise.start } else { run.start };
        assert_eq!(lost(&log), [start..noise.end], "{len}");
    }
}

#[test]
fn a_message_without_payload_may_end_the_file() {
    let mut log = Built::new();
    log.messages(&[unknown(0)]);
    assert_eq!(lost(&log), []);
}

/// Where a search begins: the message is not believed, the rows behind it are.
fn begins_behind(message: &Laid) {
    let mut log = Built::new();
    let noise = log.raw(&NOISE);
    let first = log.messages(std::slice::from_ref(message));
    log.messages(&[row(4), row(5), row(6)]);
    assert_eq!(lost(&log), [noise.start..first.end], "{message:?}");
}

/// Where a message is due, it is believed, and nothing is lost.
fn fits_where_due(message: &Laid) {
    let mut log = Built::new();
    log.messages(&[message.clone(), row(4), row(5)]);
    assert_eq!(lost(&log), [], "{message:?}");
}

/// A subscription of a format that is not there can only be passed, and after damage only if PX4
/// could have written its name.
#[test]
fn subscriptions_of_undefined_formats_are_unverifiable() {
    let with = |name| [row(4), subscription(9, name), row(5), row(6)];
    assert!(after_noise(&with("later"), true));
    assert!(!after_noise(&with("gr\u{f6}\u{df}e"), true));
    assert!(!after_noise(&with("a:b"), true));
    fits_where_due(&subscription(9, "later"));
    fits_where_due(&subscription(9, "gr\u{f6}\u{df}e"));
}

#[test]
fn after_damage_only_what_px4_writes_is_believed() {
    let float = 1.5_f32.to_le_bytes();
    let unusual = [
        // Control characters, and a text that is too long.
        string("ready\x01"),
        string(&"a".repeat(2049)),
        // Names with signs that are no letters, digits or `_`.
        format("gr\u{f6}\u{df}e:uint64_t timestamp;"),
        format("u:uint64_t timestamp;float l\u{e4}nge;"),
        keyed(b'I', "float gr\u{f6}\u{df}e", &float),
        keyed(b'P', "float gr\u{f6}\u{df}e", &float),
        // Parameters of other types.
        keyed(b'P', "double GAIN", &2.5_f64.to_le_bytes()),
    ];
    for message in unusual {
        begins_behind(&message);
        fits_where_due(&message);
    }
    let usual = [
        string("ready\n"),
        string(&"a".repeat(2048)),
        format("u:uint64_t timestamp;float width;"),
        keyed(b'I', "float width", &float),
        keyed(b'P', "float GAIN", &float),
    ];
    for message in usual {
        let mut log = Built::new();
        let noise = log.raw(&NOISE);
        log.messages(&[message.clone(), row(4), row(5)]);
        assert_eq!(lost(&log), [noise], "{message:?}");
    }
}

/// A format and a subscription in a chain count for the rows behind them: 16 bytes in full, 13
/// without the padding at the end.
#[test]
fn definitions_in_a_chain_hold_for_its_rows() {
    let defined = |len: usize| {
        let text = "p:uint64_t timestamp;uint8_t v;uint8_t[3] _padding0;";
        let data = (b'D', [&[5, 0][..], &vec![1; len]].concat());
        after_noise(&[format(text), subscription(5, "p"), data], true)
    };
    assert!(defined(12) && defined(9));
    assert!(!defined(10) && !defined(8) && !defined(13));
}

/// An id that is subscribed for a format that is not there means that format from then on, for what
/// is ahead of it too.
#[test]
fn an_undefined_subscription_takes_an_id_over() {
    let mut log = Built::new();
    let of_later = |len: usize| (b'D', [&[0, 0][..], &vec![1; len]].concat());
    log.messages(&[subscription(0, "later"), of_later(20), of_later(21), of_later(20)]);
    log.messages(&[subscription(1, "t"), (b'D', [&[1, 0][..], &4000_u64.to_le_bytes(), &[7]].concat())]);
    let log = log.open();
    let losses = losses(&log);
    assert!(losses.iter().all(|note| note.rule.name == "undecodable"), "{losses:?}");
    assert_eq!((log.info().records, losses.len()), (4, 3));
}

/// A block of an older log between two losses: its rows and texts can be left out, the definitions
/// that only it has cannot.
#[test]
fn rows_of_another_time_are_left_out_on_request() {
    let mut log = Built::new();
    log.messages(&rows(4..40));
    log.raw(&NOISE);
    let block = [
        vec![format("u:uint64_t timestamp;"), subscription(1, "u")],
        vec![format("t:uint64_t timestamp;uint8_t v;"), subscription(0, "t"), subscription(2, "t")],
        vec![string("of another time")],
        rows(900_000..900_020),
    ]
    .concat();
    log.messages(&block);
    log.raw(&NOISE);
    log.messages(&rows(40..80));
    let log = log.open();
    assert_eq!(log.info().records, 3 + 36 + 20 + 40);

    let mut out = Vec::new();
    let report = log.recover(&mut out, &RecoverOptions::default().dropping_stale()).expect("memory takes it");
    let stale = block[2..].iter().map(|(_, payload)| 3 + payload.len() as u64).sum::<u64>();
    assert_eq!((report.records, report.stale_records, report.stale_bytes), (79, 20, stale));
    let lost: Vec<_> = report.lost.iter().map(|range| range.end - range.start).collect();
    assert_eq!(lost, [NOISE.len() as u64; 2]);
    let again = open(&out.into());
    let counts = |letter: u8| again.messages().filter(|(_, message)| message.msg_type() == letter).count();
    assert_eq!([b'F', b'A', b'L', b'D'].map(counts), [2, 2, 0, 79]);
}

/// In a damaged log, a subscription of a format that is not there goes, and no other.
#[test]
fn recovery_leaves_out_subscriptions_without_a_format() {
    let mut log = Built::new();
    let gone = log.messages(&[subscription(9, "later")]);
    log.messages(&[format("u:uint64_t timestamp;"), subscription(1, "u"), row(4)]);
    let noise = log.raw(&NOISE);
    log.messages(&[row(5), row(6), row(7)]);
    let log = log.open();
    let mut out = Vec::new();
    let report = log.recover(&mut out, &RecoverOptions::default()).expect("memory takes it");
    assert_eq!(report.lost, [gone, noise]);
}

/// Returns the diagnostic about the only lost range of a log.
fn only_loss(log: &Built) -> (&'static str, std::ops::Range<u64>, String) {
    let mut losses = losses(&log.open());
    assert_eq!(losses.len(), 1, "{losses:?}");
    let note = losses.remove(0);
    (note.rule.name, note.range, note.message)
}

#[test]
fn a_loss_says_what_is_lost() {
    let mut log = Built::new();
    let bad = log.messages(&[(b'S', vec![0; 8])]);
    log.messages(&rows(4..7));
    let says = "the payload of this 'S' message contradicts its type";
    assert_eq!(only_loss(&log), ("bad_message", bad, says.into()));

    let mut log = Built::new();
    log.messages(&[row(4)]);
    log.0.truncate(log.0.len() - 4);
    let cut = log.0.len() as u64 - 10..log.0.len() as u64;
    assert_eq!(
        only_loss(&log),
        ("cut", cut, "a 'D' message of 14 bytes is cut 4 bytes before its end".into())
    );

    let mut log = Built::new();
    let cut = log.raw(&[11, 0]);
    assert_eq!(only_loss(&log), ("cut", cut, "a message is cut within its header".into()));

    // Behind a text there is no row that may be corrupt.
    let mut log = Built::new();
    log.messages(&[string("ready")]);
    let noise = log.raw(&NOISE);
    log.messages(&rows(4..7));
    assert_eq!(only_loss(&log), ("gap", noise, "no valid message in these bytes".into()));
}

#[test]
fn the_row_right_before_a_lost_range_is_named() {
    let says = |row: u64| {
        format!("no valid message in these bytes; the row of t/0 at byte {row} right before may be corrupt")
    };
    let mut log = Built::new();
    let noise = log.raw(&NOISE);
    log.messages(&rows(4..7));
    assert_eq!(only_loss(&log), ("gap", noise.clone(), says(noise.start - 14)));

    // A bad message that ends the file is as whole as any other.
    let mut log = Built::new();
    let bad = log.messages(&[(b'S', vec![0; 8])]);
    assert_eq!(only_loss(&log), ("gap", bad.clone(), says(bad.start - 14)));

    // A row that has swallowed others: it fits, and no message follows it.
    let mut log = Built::new();
    log.messages(&[format("big:uint64_t timestamp;uint8_t[60] v;"), subscription(1, "big")]);
    let before = log.messages(&rows(4..8));
    let head = log.messages(&[(b'D', [&[1, 0][..], &8000_u64.to_le_bytes(), &[7; 60]].concat())]);
    let swallowed = head.start + 13;
    log.0.truncate(usize::try_from(swallowed).expect("small"));
    let end = log.messages(&rows(9..12)).end;
    let noise = log.raw(&[0xFF; 18 + 40]);
    log.messages(&rows(12..15));
    let log = log.open();
    let losses = losses(&log);
    let ranges: Vec<_> = losses.iter().map(|note| note.range.clone()).collect();
    assert_eq!(ranges, [head.start..swallowed, end..noise.end]);
    assert_eq!(losses[0].message, says(before.end - 14));
    // No pass over the log takes the row that is lost.
    let kept = log.records(&Select::all()).map(|record| record.expect("valid").payload.len());
    assert_eq!(kept.collect::<Vec<_>>(), [9; 3 + 4 + 3 + 3]);
}

/// The first bytes of a text can be those of a row: the type decides.
#[test]
fn a_text_with_the_bytes_of_a_row_is_a_text() {
    // Level '6' and the time are the id 0x36, the other bytes a timestamp of 4 and a field.
    let text = (b'L', [b"6", &1024_u64.to_le_bytes()[..], b"\0k"].concat());
    let mut log = Built::new();
    log.messages(&[subscription(0x36, "t"), text.clone(), text.clone(), text, row(4)]);
    let log = log.open();
    assert_eq!((log.info().records, log.texts().expect("ULog has texts").count()), (4, 3));
    assert_eq!(log.records(&Select::all()).count(), 4);
}

/// Lays `messages` behind bytes, and rows behind these; returns how many bytes of the messages are
/// lost with the bytes, where that is all that is lost.
fn lost_behind(bytes: &[u8], messages: &[Laid]) -> u64 {
    let mut log = Built::new();
    let head = log.raw(bytes);
    let found = log.messages(messages);
    log.messages(&rows(4..1504));
    let lost = lost(&log);
    let [range] = &lost[..] else { panic!("{lost:?}") };
    assert!(range.start == head.start && (head.end..=found.end).contains(&range.end), "{range:?}");
    range.end - head.end
}

/// At each 'L' of a run, a text of 19 532 bytes seems to start, and to find that it is none takes
/// 19 526 bytes of work. 64 are allowed for each byte that was searched, and 4096.
#[test]
fn work_behind_damage_is_limited_by_the_bytes_that_were_searched() {
    let text = || [string("ready")];
    // The first byte is where a message is due; the search starts behind it.
    let searched = |distance: usize| lost_behind(&vec![b'L'; distance + 1], &text()) == 0;
    for (distance, found) in
        [(241, false), (242, true), (245, false), (400, false), (9698, false), (9699, true), (9702, false)]
    {
        assert_eq!(searched(distance), found, "{distance}");
    }
    // The search starts behind the first byte of an unknown message too.
    let behind_unknown = |run: usize| [&[0, 0, b'x'][..], &vec![b'L'; run]].concat();
    assert_eq!([239, 240, 243].map(|run| lost_behind(&behind_unknown(run), &text())), [17, 0, 17]);

    // Without any work left, only rows and synchronization messages start a chain or are part of it.
    let lost_at = |messages: &[Laid]| lost_behind(&[b'L'; 401], messages);
    assert_eq!(lost_at(&[]), 0);
    assert_eq!(lost_at(&[(b'S', SYNC_MAGIC.to_vec())]), 0);
    assert_eq!(lost_at(&[(b'O', vec![1, 0])]), 5);
    assert_eq!(lost_at(&[(b'R', vec![9, 0])]), 5);
    assert_eq!(lost_at(&[row(2), string("ready")]), 14 + 17);
    assert_eq!(lost_at(&[row(2), (b'D', vec![9, 0, 1])]), 14 + 6);
}

/// The same inside of an unknown message, which could be a damaged header.
#[test]
fn work_inside_of_an_unknown_message_is_limited_too() {
    let found = |run: usize| {
        let mut inside = Built(Vec::new());
        inside.raw(&vec![b'L'; run]);
        let header = support::laid(&[]).len();
        inside.raw(&support::laid(&[&[string("ready")][..], &rows(4..7)].concat())[header..]);
        let mut log = Built::new();
        let unknown = log.messages(&[(b'x', inside.0)]);
        log.messages(&rows(7..1504));
        let lost = lost(&log);
        let [range] = &lost[..] else { panic!("{lost:?}") };
        assert_eq!(range.start, unknown.start);
        range.end - range.start - 3 - run as u64
    };
    assert_eq!([239, 240, 243].map(found), [17, 0, 17]);
}

/// The last byte of a message and the length of the next one can be the header of a row: nobody
/// wrote that row.
#[test]
fn a_search_does_not_begin_inside_the_message_before() {
    let before = (b'D', [&[0, 0][..], &4000_u64.to_le_bytes(), &[11]].concat());
    // Seen from the byte before: the header of a row of 11 bytes, its id, its fields, two rows.
    let mut unknown = vec![0; 10];
    let header = support::laid(&[]).len();
    unknown.extend_from_slice(&support::laid(&rows(5..7))[header..]);
    unknown.resize(0x4400, 0xFF);
    let unknown = (b'x', unknown);

    // Passed, because rows follow.
    let mut log = Built::new();
    log.messages(&[subscription(0x78, "t"), before.clone(), unknown.clone()]);
    log.messages(&rows(8..11));
    assert_eq!((lost(&log), log.open().info().records), (vec![], 3 + 1 + 3));

    // Lost, because noise follows. What is before it is believed where data is appended.
    let mut log = Built::flagged();
    let appended = log.messages(&[subscription(0x78, "t"), before]).end;
    log.append_at(&[appended]);
    log.messages(&[unknown]);
    let noise = log.raw(&NOISE);
    log.messages(&rows(8..11));
    assert_eq!((lost(&log), log.open().info().records), (vec![appended..noise.end], 3 + 1 + 3));
}
