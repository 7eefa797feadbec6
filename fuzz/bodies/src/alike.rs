//! What the bodies of all formats ask in the same words.

use std::io::Read;

use rovelog::core::Timestamp;
use rovelog::{LogReader, LogStream, Record, Select};

/// Hands out bytes in pieces of sizes taken from the bytes themselves.
pub(crate) struct Pieces<'a>(pub(crate) &'a [u8]);

impl Read for Pieces<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let size = self.0.first().map_or(0, |b| 1 + usize::from(*b)).min(self.0.len()).min(out.len());
        let (piece, rest) = self.0.split_at(size);
        out[..size].copy_from_slice(piece);
        self.0 = rest;
        Ok(size)
    }
}

/// Gives all records to `each`, and reads the window that ends at the last one, with what is latched before it. The
/// time of the last one.
pub(crate) fn read_records(log: &dyn LogReader, mut each: impl FnMut(&Record<'_>)) -> Option<i64> {
    let (mut records, mut last) = (0, None);
    for record in log.records(&Select::all()) {
        let record = record.expect("a sound record");
        each(&record);
        records += 1;
        last = record.time;
    }
    assert_eq!(records, log.info().records);
    let last = last?.nanos;
    let select = Select::all().between(Some(last / 2), Some(last)).with_latched();
    assert!(log.records(&select).all(|record| record.is_ok()));
    Some(last)
}

/// For [`read_records`], where every record must decode.
pub(crate) fn decode(record: &Record<'_>) {
    record.value().expect("a sound record decodes").to_json();
}

/// The slice and the stream of one log, where it opens: both do, or neither.
pub(crate) fn both<R, S, E>(log: Option<R>, stream: Result<S, E>) -> Option<(R, S)> {
    assert_eq!(log.is_some(), stream.is_ok(), "one of slice and stream opens");
    log.zip(stream.ok())
}

/// The stream gives the slice's records, which are `records`, with the same times as far as `time` tells them; and it
/// notices the same.
pub(crate) fn stream_is_slice<'a>(
    stream: &mut dyn LogStream,
    log: &dyn LogReader,
    mut records: impl Iterator<Item = Record<'a>>,
    time: fn(&Record<'_>) -> Option<Timestamp>,
) {
    while let Some(got) = stream.next_record().expect("memory can be read") {
        let want = records.next().expect("the slice has as many records");
        assert_eq!((got.offset, got.seq, time(&got)), (want.offset, want.seq, time(&want)));
        assert_eq!(got.payload, want.payload);
    }
    assert!(records.next().is_none(), "the slice has more records");
    assert_eq!(stream.diagnostics().list(), log.diagnostics().list());
}
