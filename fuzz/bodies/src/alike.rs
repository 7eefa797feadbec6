//! Checks that the fuzz targets of all log formats use.

use std::io::Read;

use rovelog::core::{Around, Timestamp};
use rovelog::{LogReader, LogStream, Record, Select};

/// A reader that returns its bytes in pieces. The first byte of each piece determines the size of
/// the piece.
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

/// Reads all records and passes each of them to `each`. Returns the time of the last record.
///
/// Also reads the second half of the time range, together with the last record of each topic before
/// it, and checks that a byte of the file is in a field of a structure.
pub(crate) fn read_records(log: &dyn LogReader, mut each: impl FnMut(&Record<'_>)) -> Option<i64> {
    let (mut records, mut last) = (0, None);
    for record in log.records(&Select::all()) {
        let record = record.expect("a valid record");
        each(&record);
        records += 1;
        last = record.time;
    }
    assert_eq!(records, log.info().records);
    // Finding a structure in a bag decompresses its chunk, so only one byte is looked up. Its offset
    // differs between inputs.
    if let Some(at) = (records * 7 + 3).checked_rem(log.info().size) {
        let found = log.structure_at(Around { at, context: 2 });
        assert!(found.region.range.contains(&at) && found.field_at(at).is_some(), "{at}: {found:?}");
    }
    let last = last?.nanos;
    let select = Select::all().between(Some(last / 2), Some(last)).with_last_before();
    assert!(log.records(&select).all(|record| record.is_ok()));
    Some(last)
}

/// Decodes a record. Panics if decoding fails. In some formats, every record can be decoded. For
/// these formats, the fuzz targets pass this function to [`read_records`].
pub(crate) fn decode(record: &Record<'_>) {
    record.value().expect("a valid record decodes").to_json();
}

/// Returns the reader and the stream of one log, or `None` if neither could be opened. Panics if
/// only one of them could be opened.
pub(crate) fn both<R, S, E>(log: Option<R>, stream: Result<S, E>) -> Option<(R, S)> {
    assert_eq!(log.is_some(), stream.is_ok(), "either the reader or the stream refuses the log");
    log.zip(stream.ok())
}

/// Checks that a stream returns the same records and diagnostics as the reader. `time` selects the
/// times to compare. If it returns `None` for a record, the time of this record is not compared.
pub(crate) fn check_stream<'a>(
    stream: &mut dyn LogStream,
    log: &dyn LogReader,
    mut records: impl Iterator<Item = Record<'a>>,
    time: fn(&Record<'_>) -> Option<Timestamp>,
) {
    while let Some(got) = stream.next_record().expect("reading memory succeeds") {
        let want = records.next().expect("the reader has as many records");
        assert_eq!((got.offset, got.seq, time(&got)), (want.offset, want.seq, time(&want)));
        assert_eq!(got.payload, want.payload);
    }
    assert!(records.next().is_none(), "the reader has more records");
    assert_eq!(stream.diagnostics().list(), log.diagnostics().list());
}
