//! Fuzz target for RLD logs of several blocks and files, with damage.

use std::cell::RefCell;
use std::io::{self, Cursor, Seek, SeekFrom, Write};
use std::rc::Rc;

use arbitrary::{Arbitrary, Unstructured};
use rovelog::core::{Format as _, RecoverOptions};
use rovelog::rld_format::wire::BlockTimes;
use rovelog::rld_format::{LogSpec, Rld, RldReader, RldWriter, SplitWriter};
use rovelog::{Bytes, LogReader, ReadOptions, State};

use crate::alike::{decode, read_records};
use crate::campaign::damage_one;
use crate::rld::{ModelChannel, channel_specs};

/// A recording with a regular clock, which is split into several files.
#[derive(Arbitrary, Debug)]
struct Recording {
    version: u8,
    rate: u16,
    block_rows: u8,
    start: u32,
    channels: Vec<ModelChannel>,
    blocks: u8,
    /// Bytes of the rows. They are repeated if there are more rows.
    bytes: Vec<u8>,
    /// Size limit of a file.
    limit: u16,
    /// File to damage, and the damage.
    damage: Option<(u8, u8, u8)>,
    /// File that is also passed as the ambient file of the recording.
    ambient: Option<u8>,
}

/// A file in memory that several owners can use.
#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Cursor<Vec<u8>>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Shared {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.borrow_mut().seek(to)
    }
}

impl Recording {
    /// Returns the numbers of blocks and of rows in a block. They are small, so that an execution
    /// takes little time.
    fn size(&self) -> (u8, u8) {
        (self.blocks % 8, self.block_rows % 32)
    }

    /// Writes the files. Returns `None` if the content cannot be represented in the RLD format.
    fn write(&self) -> Option<Vec<Vec<u8>>> {
        let (blocks, block_rows) = self.size();
        let spec = LogSpec {
            version: u16::from(self.version),
            block_rows: block_rows.into(),
            start: self.start.into(),
            channels: channel_specs(&self.channels, self.version),
            ..LogSpec::new(self.rate)
        };
        let header = spec.header().ok()?;
        let row = RldWriter::new(Vec::new(), header.clone()).ok()?.layout().row;
        let rows: Vec<u8> = self.bytes.iter().copied().cycle().take(usize::from(block_rows) * row).collect();
        let mut files: Vec<Shared> = Vec::new();
        let mut log = SplitWriter::new(header, self.limit.into(), |_| {
            let file = Shared::default();
            files.push(file.clone());
            Ok(file)
        });
        for block in 0..blocks {
            let after = i128::from(block) * i128::from(block_rows) * 1_000_000_000 / i128::from(self.rate);
            let times = BlockTimes::new(i128::from(self.start) * 1_000_000_000 + after, after)?;
            log.block(&times, &rows).ok()?;
        }
        log.finish().ok()?;
        Some(files.into_iter().map(|file| file.0.take().into_inner()).collect())
    }
}

/// Writes a recording that is split into files, damages one of them, and opens them as one log.
/// Checks that all rows of an undamaged recording are found, and that the recovered log is valid.
pub fn rld_parts(data: &[u8]) {
    let Ok(recording) = Recording::arbitrary_take_rest(Unstructured::new(data)) else { return };
    let Some(mut files) = recording.write().filter(|files| !files.is_empty()) else { return };
    let count = files.len();
    let at = |number: u8| usize::from(number) % count;
    let mut companions: Vec<(String, Bytes)> = Vec::new();
    if let Some((file, operator, seed)) = recording.damage {
        files[at(file)] = damage_one(&files[at(file)], operator, seed);
    }
    let ambient = recording.ambient.map(|number| files[at(number)].clone());
    for (number, file) in files.iter().enumerate().skip(1) {
        companions.push((format!("x_p{number}.rld"), file.clone().into()));
    }
    companions.extend(ambient.map(|file| ("x-ambient.rld".to_owned(), file.into())));
    let Ok(log) = Rld::open_with(files[0].clone().into(), companions, &ReadOptions::default()) else {
        return assert!(recording.damage.is_some(), "the files of a recording are rejected");
    };
    check(&log);
    if recording.damage.is_none() && recording.ambient.is_none() {
        let (blocks, block_rows) = recording.size();
        let rows = u64::from(blocks) * u64::from(block_rows);
        assert_eq!((log.rows(), log.info().lost.bytes), (rows, 0), "{:?}", log.diagnostics().list());
    }
}

fn check(log: &RldReader) {
    read_records(log, decode);
    let mut out = Vec::new();
    let report = log.recover(&mut out, &RecoverOptions::default()).expect("writing to memory succeeds");
    // Only the last block of the recovered log can be short, so others are left out.
    if report.left_out.is_empty() {
        assert_eq!(report.kept_bytes + report.lost_bytes(), log.info().size);
        assert_eq!(report.records, log.rows() + log.info().lost.left_out_records);
    }
    let again = RldReader::new(out.into(), &ReadOptions::default()).expect("a recovered log opens");
    assert_eq!(again.info().state, State::Complete);
    assert_eq!(again.rows(), report.records);
}
