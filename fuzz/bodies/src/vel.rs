//! Bodies for VEL.

use std::io::Read;

use rovelog::vel_format::declared::Types;
use rovelog::vel_format::velodyne::{Calibration, PointOptions};
use rovelog::vel_format::{Kind, Payload, VelReader, VelStream, writer};
use rovelog::{Bytes, LogReader, LogStream, ReadOptions, RecoverOptions, Select};

fn open(data: &[u8]) -> Option<VelReader> {
    VelReader::salvage(Bytes::copy_from_slice(data), &ReadOptions::default()).ok()
}

/// Reads everything there is to read.
pub fn vel_read(data: &[u8]) {
    let Some(log) = open(data) else { return };
    let mut records = 0;
    let mut last = None;
    for record in log.records(&Select::all()) {
        let record = record.expect("a sound record");
        record.value().expect("a sound record decodes").to_json();
        records += 1;
        last = record.time;
    }
    assert_eq!(records, log.info().records);
    if let Some(last) = last {
        let select = Select::all().between(Some(last.nanos / 2), Some(last.nanos)).with_latched();
        assert!(log.records(&select).all(|record| record.is_ok()));
        let _ = log.seek(last.nanos);
    }
    for kind in Kind::ALL {
        for (_, payload) in log.payloads(kind) {
            if let Payload::Laser(laser) = payload {
                laser.points().into_iter().flatten().for_each(|point| assert!(point.angle.is_finite()));
            }
        }
    }
    if let Ok(mut revolutions) = log.revolutions(None, None, PointOptions::default(), 0) {
        while revolutions.next().is_some() {}
    }
    drop((log.choices(), log.velodyne_calibration()));
    let text = String::from_utf8_lossy(data);
    drop((Types::parse(&text), Calibration::parse(&text)));
}

/// Every byte is in the header, the index, a message or a part that is accounted for: the log is written again as
/// it was; and what is recovered stays as it is.
pub fn vel_rewrite(data: &[u8]) {
    let Some(log) = open(data) else { return };
    let mut again = Vec::new();
    writer::rewrite(&log, &mut again).expect("memory takes any bytes");
    assert_eq!(again, data);
    let mut out = Vec::new();
    let report = log.recover(&mut out, &RecoverOptions::default()).expect("memory takes any bytes");
    assert_eq!(report.kept_bytes + report.lost_bytes(), data.len() as u64);
    let Some(recovered) = open(&out) else { panic!("what is recovered opens") };
    assert!(recovered.messages().len() >= log.messages().len());
    let mut slice = Vec::new();
    log.slice(&Select::all(), &mut slice).expect("memory takes any bytes");
    assert!(open(&slice).is_some());
}

/// Hands out bytes in pieces of sizes taken from the bytes themselves.
struct Pieces<'a>(&'a [u8]);

impl Read for Pieces<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let size = self.0.first().map_or(0, |b| 1 + usize::from(*b)).min(self.0.len()).min(out.len());
        let (piece, rest) = self.0.split_at(size);
        out[..size].copy_from_slice(piece);
        self.0 = rest;
        Ok(size)
    }
}

/// The stream gives what the slice gives, however its input is split.
pub fn vel_stream(data: &[u8]) {
    let log = VelReader::new(Bytes::copy_from_slice(data), &ReadOptions::default());
    let stream = VelStream::new(Pieces(data), &ReadOptions::default());
    let (log, mut stream) = match (log, stream) {
        (Ok(log), Ok(stream)) => (log, stream),
        (log, stream) => return assert!(log.is_err() && stream.is_err()),
    };
    let mut records = log.records_in_file_order();
    while let Some(got) = stream.next_record().expect("memory can be read") {
        let want = records.next().expect("the slice has as many records");
        assert_eq!((got.offset, got.seq, got.time), (want.offset, want.seq, want.time));
        assert_eq!(got.payload, want.payload);
    }
    assert!(records.next().is_none(), "the slice has more records");
    assert_eq!(stream.diagnostics().list(), log.diagnostics().list());
    assert_eq!(format!("{:?}", stream.info()), format!("{:?}", log.info()));
}
