//! Tests of the plausibility checks. Each rule of section 5 of docs/formats/ulog.md is tested with
//! logs that just satisfy or violate it.
#![expect(clippy::single_range_in_vec_init, reason = "a list of ranges may have one")]

mod support;

use rovelog_core::{LogReader as _, RecoverOptions, Select};
use support::built::{
    Built, NOISE, RawMessage, format, keyed, losses, lost, row, rows, string, subscription, unknown,
};
use support::open;
use ulog_format::wire::SYNC_MAGIC;

/// Returns `true` if the reader finds `messages` after noise. If `noise_again` is true, noise
/// follows the messages. Otherwise the file ends after them.
fn after_noise(messages: &[RawMessage], noise_again: bool) -> bool {
    let mut log = Built::new();
    let noise = log.raw(&NOISE);
    let found = log.messages(messages);
    let whole = if noise_again { noise.start..log.raw(&NOISE).end } else { noise.start..found.end };
    let lost = lost(&log);
    // Either only the noise before the messages is lost, or all bytes up to the end of the file.
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
    // The content of a text does not confirm its length, because a text may have any length.
    assert!(!after_noise(&[string("ready")], false));
    assert!(!after_noise(&[row(4), string("ready")], false));
    assert!(after_noise(&[string("ready"), row(4)], false));
}

#[test]
fn unverifiable_messages_in_a_chain_are_ignored() {
    assert!(after_noise(&[row(4), unknown(5), row(5), unknown(0), row(6)], true));
    assert!(!after_noise(&[row(4), unknown(5), row(5)], true));
    assert!(!after_noise(&[row(4), unknown(5)], true));
    // At the end of the file, unverifiable messages are ignored too.
    assert!(after_noise(&[row(4), unknown(5)], false));
    assert!(!after_noise(&[string("ready"), unknown(5)], false));
    assert!(!after_noise(&[unknown(5), unknown(5)], false));
}

#[test]
fn a_chain_does_not_start_with_an_unverifiable_message() {
    let mut log = Built::new();
    let noise = log.raw(&NOISE);
    // The message id of this row is not subscribed, so the row is unverifiable.
    let unverifiable = log.messages(&[(b'D', vec![9, 0, 1, 2, 3])]);
    log.messages(&[row(4), row(5), row(6)]);
    assert_eq!(lost(&log), [noise.start..unverifiable.end]);
}

#[test]
fn consecutive_128_unverifiable_messages_count_as_a_chain() {
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
    // If many unverifiable messages follow, the first one is skipped, and only the noise is lost.
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

/// Checks that a search after noise rejects `message` and continues with the rows after it.
fn begins_behind(message: &RawMessage) {
    let mut log = Built::new();
    let noise = log.raw(&NOISE);
    let first = log.messages(std::slice::from_ref(message));
    log.messages(&[row(4), row(5), row(6)]);
    assert_eq!(lost(&log), [noise.start..first.end], "{message:?}");
}

/// Checks that `message` is accepted where the previous message ends.
fn fits_where_due(message: &RawMessage) {
    let mut log = Built::new();
    log.messages(&[message.clone(), row(4), row(5)]);
    assert_eq!(lost(&log), [], "{message:?}");
}

/// A subscription to an undefined format is skipped. After damage, it is skipped only if the format
/// name consists of characters that PX4 uses.
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
fn after_damage_only_messages_in_the_style_of_px4_are_accepted() {
    let float = 1.5_f32.to_le_bytes();
    let unusual = [
        // These texts contain control characters or are too long.
        string("ready\x01"),
        string(&"a".repeat(2049)),
        // These names contain characters other than letters, digits and `_`.
        format("gr\u{f6}\u{df}e:uint64_t timestamp;"),
        format("u:uint64_t timestamp;float l\u{e4}nge;"),
        keyed(b'I', "float gr\u{f6}\u{df}e", &float),
        keyed(b'P', "float gr\u{f6}\u{df}e", &float),
        // This parameter has a type other than `int32_t` and `float`.
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

/// A format and a subscription found while looking ahead apply to the rows after them. A row has 16
/// bytes with the padding at its end, and 13 bytes without it.
#[test]
fn definitions_in_a_chain_apply_to_its_rows() {
    let defined = |len: usize| {
        let text = "p:uint64_t timestamp;uint8_t v;uint8_t[3] _padding0;";
        let data = (b'D', [&[5, 0][..], &vec![1; len]].concat());
        after_noise(&[format(text), subscription(5, "p"), data], true)
    };
    assert!(defined(12) && defined(9));
    assert!(!defined(10) && !defined(8) && !defined(13));
}

/// If an id is subscribed again to an undefined format, rows with this id are unverifiable from
/// then on. This must also apply during lookahead.
#[test]
fn a_subscription_to_an_undefined_format_replaces_an_id() {
    let mut log = Built::new();
    let of_later = |len: usize| (b'D', [&[0, 0][..], &vec![1; len]].concat());
    log.messages(&[subscription(0, "later"), of_later(20), of_later(21), of_later(20)]);
    log.messages(&[subscription(1, "t"), (b'D', [&[1, 0][..], &4000_u64.to_le_bytes(), &[7]].concat())]);
    let log = log.open();
    let losses = losses(&log);
    assert!(losses.iter().all(|note| note.rule.name == "undecodable"), "{losses:?}");
    assert_eq!((log.info().records, losses.len()), (4, 3));
}

/// There is a block of an older log between two losses. Its rows and texts can be dropped, but its
/// definitions must be kept if no other part of the log contains them.
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

/// Recovery of a damaged log removes subscriptions to undefined formats and keeps all others.
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
fn a_diagnostic_describes_the_loss() {
    let mut log = Built::new();
    let bad = log.messages(&[(b'S', vec![0; 8])]);
    log.messages(&rows(4..7));
    let says = "a 'S' message is lost, because its payload is not valid for this type";
    assert_eq!(only_loss(&log), ("bad_message", bad, says.into()));

    let mut log = Built::new();
    log.messages(&[row(4)]);
    log.0.truncate(log.0.len() - 4);
    let cut = log.0.len() as u64 - 10..log.0.len() as u64;
    assert_eq!(
        only_loss(&log),
        (
            "cut",
            cut,
            "a 'D' message of 14 bytes is lost, because it is truncated 4 bytes before its end".into()
        )
    );

    let mut log = Built::new();
    let cut = log.raw(&[11, 0]);
    assert_eq!(only_loss(&log), ("cut", cut, "a message is lost, because it ends inside its header".into()));

    // The message before the loss is a text, so the diagnostic does not name a row that may be
    // corrupt.
    let mut log = Built::new();
    log.messages(&[string("ready")]);
    let noise = log.raw(&NOISE);
    log.messages(&rows(4..7));
    assert_eq!(only_loss(&log), ("gap", noise, "these bytes contain no valid message and are lost".into()));
}

#[test]
fn the_row_directly_before_a_lost_range_is_named() {
    let says = |row: u64| {
        format!(
            "these bytes contain no valid message and are lost; the record of t/0 directly before, at byte \
             {row}, may be corrupt"
        )
    };
    let mut log = Built::new();
    let noise = log.raw(&NOISE);
    log.messages(&rows(4..7));
    assert_eq!(only_loss(&log), ("gap", noise.clone(), says(noise.start - 14)));

    // All bytes of this bad message are present at the end of the file, so it is not reported as
    // cut.
    let mut log = Built::new();
    let bad = log.messages(&[(b'S', vec![0; 8])]);
    assert_eq!(only_loss(&log), ("gap", bad.clone(), says(bad.start - 14)));

    // The payload of this row contains other rows. The row has the correct size, but no message
    // follows it.
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
    // The lost row is not among the records of the log.
    let kept = log.records(&Select::all()).map(|record| record.expect("valid").payload.len());
    assert_eq!(kept.collect::<Vec<_>>(), [9; 3 + 4 + 3 + 3]);
}

/// The first bytes of a text can look like a row, but the message type shows that it is a text.
#[test]
fn a_text_with_the_bytes_of_a_row_is_a_text() {
    // The payload of the text could also be a row: id 0x36 from the level '6', timestamp 4, and one
    // more field.
    let text = (b'L', [b"6", &1024_u64.to_le_bytes()[..], b"\0k"].concat());
    let mut log = Built::new();
    log.messages(&[subscription(0x36, "t"), text.clone(), text.clone(), text, row(4)]);
    let log = log.open();
    assert_eq!((log.info().records, log.texts().expect("ULog has texts").count()), (4, 3));
    assert_eq!(log.records(&Select::all()).count(), 4);
}

/// Creates a log with `bytes`, `messages` and rows. Only `bytes` and the start of `messages` may be
/// lost. Returns the number of bytes in `messages` that are lost.
fn lost_behind(bytes: &[u8], messages: &[RawMessage]) -> u64 {
    let mut log = Built::new();
    let head = log.raw(bytes);
    let found = log.messages(messages);
    log.messages(&rows(4..1504));
    let lost = lost(&log);
    let [range] = &lost[..] else { panic!("{lost:?}") };
    assert!(range.start == head.start && (head.end..=found.end).contains(&range.end), "{range:?}");
    range.end - head.end
}

/// The noise consists of letters 'L', at each of which a text of 19 532 bytes seems to start.
/// Rejecting such a text takes 19 526 bytes of work. The limit is 64 bytes of work for each
/// searched byte, plus 4096.
#[test]
fn work_after_damage_is_limited_by_the_number_of_searched_bytes() {
    let text = || [string("ready")];
    // At the first byte, a message is expected. The search starts at the second byte.
    let searched = |distance: usize| lost_behind(&vec![b'L'; distance + 1], &text()) == 0;
    for (distance, found) in
        [(241, false), (242, true), (245, false), (400, false), (9698, false), (9699, true), (9702, false)]
    {
        assert_eq!(searched(distance), found, "{distance}");
    }
    // If an unknown message contains the noise, the search also starts at the second byte.
    let behind_unknown = |run: usize| [&[0, 0, b'x'][..], &vec![b'L'; run]].concat();
    assert_eq!([239, 240, 243].map(|run| lost_behind(&behind_unknown(run), &text())), [17, 0, 17]);

    // When the work limit is reached, only messages that are cheap to check can be found.
    let lost_at = |messages: &[RawMessage]| lost_behind(&[b'L'; 401], messages);
    assert_eq!(lost_at(&[]), 0);
    assert_eq!(lost_at(&[(b'S', SYNC_MAGIC.to_vec())]), 0);
    assert_eq!(lost_at(&[(b'O', vec![1, 0])]), 5);
    assert_eq!(lost_at(&[(b'R', vec![9, 0])]), 5);
    assert_eq!(lost_at(&[row(2), string("ready")]), 14 + 17);
    assert_eq!(lost_at(&[row(2), (b'D', vec![9, 0, 1])]), 14 + 6);
}

/// The work limit also applies to the search inside an unknown message, whose header could be
/// damaged.
#[test]
fn work_inside_an_unknown_message_is_limited() {
    let found = |run: usize| {
        let mut inside = Built(Vec::new());
        inside.raw(&vec![b'L'; run]);
        let header = support::log_of(&[]).len();
        inside.raw(&support::log_of(&[&[string("ready")][..], &rows(4..7)].concat())[header..]);
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

/// The last byte of a message and the first bytes of the next message can together look like the
/// header of a row. The reader must not find such a row.
#[test]
fn a_search_does_not_start_inside_the_previous_message() {
    let before = (b'D', [&[0, 0][..], &4000_u64.to_le_bytes(), &[11]].concat());
    // From the last byte of the previous message on, the bytes look like the header of a row of 11
    // bytes, followed by its id, its fields, and two more rows.
    let mut unknown = vec![0; 10];
    let header = support::log_of(&[]).len();
    unknown.extend_from_slice(&support::log_of(&rows(5..7))[header..]);
    unknown.resize(0x4400, 0xFF);
    let unknown = (b'x', unknown);

    // The unknown message is skipped, because rows follow.
    let mut log = Built::new();
    log.messages(&[subscription(0x78, "t"), before.clone(), unknown.clone()]);
    log.messages(&rows(8..11));
    assert_eq!((lost(&log), log.open().info().records), (vec![], 3 + 1 + 3));

    // The unknown message is lost, because noise follows. The message before it is accepted if data
    // is appended at its end.
    let mut log = Built::flagged();
    let appended = log.messages(&[subscription(0x78, "t"), before]).end;
    log.append_at(&[appended]);
    log.messages(&[unknown]);
    let noise = log.raw(&NOISE);
    log.messages(&rows(8..11));
    assert_eq!((lost(&log), log.open().info().records), (vec![appended..noise.end], 3 + 1 + 3));
}
