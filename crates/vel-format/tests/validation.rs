//! Which bytes are believed: each rule of section 4 of docs/formats/vel.md, with a log on either side.
#![expect(clippy::single_range_in_vec_init, reason = "a list of ranges may have one")]

mod support;

use std::ops::Range;

use rovelog_core::{LogReader as _, Severity};
use support::open;
use vel_format::{NewMessage, WriteOptions, write_log};

/// A message whose content confirms its size.
fn speed(millis: f64) -> NewMessage<'static> {
    NewMessage::raw(0x0001_4043, 100, millis, vec![0; 28])
}

/// A message of a type that is not described.
fn unknown(id: u32) -> NewMessage<'static> {
    NewMessage::raw(id, 100, 900.0, vec![1; 12])
}

fn written(messages: &[NewMessage<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    write_log(messages, &WriteOptions::default(), &mut out).expect("memory takes it");
    out
}

fn lost(bytes: &[u8]) -> Vec<Range<u64>> {
    let log = open(&bytes.to_vec().into());
    let lost = log.diagnostics().list().iter().filter(|note| note.rule.severity == Severity::DataLost);
    lost.map(|note| note.range.clone()).collect()
}

/// The size of such a message says nothing: what follows it must. A message that the end of the file
/// cuts does only if its type is known, described or the same.
#[test]
fn a_message_of_an_unknown_type_is_believed_by_what_follows_it() {
    let two = [speed(1.0), speed(2.0)];
    let first = written(&two).len();
    let with = |more: &[NewMessage<'static>], cut: usize| {
        let mut bytes = written(&[&two[..], more].concat());
        bytes.truncate(bytes.len() - cut);
        let (start, end) = (first as u64, bytes.len() as u64);
        (lost(&bytes), start, end)
    };
    let second = written(&[&two[..], &[unknown(0xABC)]].concat()).len() as u64;
    for follower in [unknown(0xABC), speed(3.0)] {
        let (lost, _, end) = with(&[unknown(0xABC), follower], 4);
        assert_eq!(lost, [second..end]);
    }
    let (lost, start, end) = with(&[unknown(0xABC), unknown(0xDEF)], 4);
    assert_eq!(lost, [start..end]);
    let (lost, ..) = with(&[unknown(0xABC), unknown(0xDEF)], 0);
    assert_eq!(lost, []);
}

/// A second log in the file whose first message confirms its size, though noise follows it.
#[test]
fn a_joined_log_may_be_damaged_behind_its_first_message() {
    let mut bytes = written(&[speed(1.0), speed(2.0)]);
    let joined = bytes.len();
    bytes.extend(written(&[speed(3.0)]));
    let noise = bytes.len() as u64;
    bytes.extend([7; 40]);
    let end = bytes.len() as u64;
    let log = open(&bytes.into());
    let note = log.diagnostics().list().iter().find(|note| note.rule.name == "joined").expect("a note");
    assert_eq!(note.range.start, joined as u64);
    assert_eq!((log.info().records, &log.info().lost.ranges[..]), (3, &[noise..end][..]));
}
