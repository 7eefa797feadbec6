//! Tests of logs of which only some byte ranges were fetched. Everything that the readers report
//! must be true for the whole file, and the ranges that they request must be sufficient.
#![cfg(all(feature = "ulog", feature = "rld", feature = "rosbag", feature = "vel"))]

use std::cell::RefCell;
use std::io::Cursor;
use std::ops::Range;

use rovelog::core::internal::partial::{END, Ranges, Unread};
use rovelog::core::internal::wire::{U16Le, U32Le};
use rovelog::rld_format::unit::Unit;
use rovelog::rld_format::wire::{BlockTimes, Header};
use rovelog::rld_format::{ChannelSpec, LogSpec, RldWriter};
use rovelog::vel_format::{NewMessage, WriteOptions, write_log};
use rovelog::{Align, AnyLog, Bytes, ErrorKind, ReadOptions, Record, Result, Select, State, from_bytes};

const SECOND: i64 = 1_000_000_000;

/// A remote file, which records the byte ranges that were fetched.
struct Parts<'a> {
    /// Contents of the file.
    file: &'a [u8],
    /// Byte ranges that were fetched so far.
    read: RefCell<Vec<Range<u64>>>,
    /// Number of calls in which ranges were fetched.
    fetches: RefCell<usize>,
}

impl<'a> Parts<'a> {
    fn of(file: &'a [u8]) -> Self {
        Self { file, read: RefCell::default(), fetches: RefCell::default() }
    }

    fn unread(&self) -> Unread {
        Unread::behind(self.size(), &self.read.borrow())
    }

    /// Opens the log. The bytes that were not fetched are replaced by zeros.
    fn open(&self) -> Result<AnyLog> {
        let unread = self.unread();
        let mut bytes = self.file.to_vec();
        for range in unread.ranges() {
            bytes[index(range)].fill(0);
        }
        let mut options = ReadOptions::default();
        options.unread = unread;
        from_bytes(bytes.into(), &options)
    }

    /// Fetches the requested ranges until the selected records can be read. Returns `None` if the
    /// log requests the whole file.
    fn select(&self, select: &Select) -> Option<AnyLog> {
        for _ in 0..64 {
            let log = self.open().unwrap();
            let needed = log.needed(select)?;
            if needed.is_empty() {
                return Some(log);
            }
            self.fetch(&needed).unwrap();
        }
        panic!("the log never has enough");
    }

    fn fetched(&self) -> u64 {
        self.size() - self.unread().bytes()
    }
}

fn index(range: &Range<u64>) -> Range<usize> {
    usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()
}

impl Ranges for Parts<'_> {
    fn size(&self) -> u64 {
        self.file.len() as u64
    }

    fn fetch(&self, ranges: &[Range<u64>]) -> Result<()> {
        assert!(ranges.iter().all(|range| range.end <= self.size()), "{ranges:?}");
        *self.fetches.borrow_mut() += 1;
        self.read.borrow_mut().extend_from_slice(ranges);
        Ok(())
    }

    fn read(&self, range: Range<u64>) -> Result<Vec<u8>> {
        let range = range.start..range.end.min(self.size());
        self.fetch(std::slice::from_ref(&range))?;
        Ok(self.file[index(&range)].to_vec())
    }
}

/// Returns the real logs that are larger than the two ranges that are always fetched first.
fn real() -> Vec<(String, Vec<u8>)> {
    let kinds = [("ulog", "ulg"), ("rld", "rld"), ("rosbag20", "bag"), ("vel", "vel")];
    let folders = kinds.iter().filter_map(|(folder, extension)| {
        Some(rovelog_testing::logs_in(&rovelog_testing::real(folder)?, extension))
    });
    let logs = folders.flatten().map(|log| (log.name.clone(), log.bytes.to_vec()));
    logs.filter(|(_, bytes)| bytes.len() as u64 > 2 * END).collect()
}

/// Returns an RLD log of two minutes at 8 kHz. Block 701 starts five seconds late, so there is a
/// gap before this block.
fn power() -> Vec<u8> {
    let channels = ["V1", "V2"].map(|name| ChannelSpec::analog(name, Unit::Volt, -8)).to_vec();
    let spec = LogSpec { channels, block_rows: 800, ..LogSpec::new(8000) };
    let mut log = RldWriter::new(Cursor::new(Vec::new()), spec.header().unwrap()).unwrap();
    let mut time = 1_700_000_000 * SECOND;
    for block in 0..1200_u32 {
        let row = |row: u32| [block * 800 + row, row].map(u32::to_le_bytes).concat();
        let rows: Vec<u8> = (0..800).flat_map(row).collect();
        log.block(&BlockTimes::new(time.into(), (time - 1_600_000_000 * SECOND).into()).unwrap(), &rows)
            .unwrap();
        time += 800 * 1_003_520_000 / 8000 + if block == 700 { 5 * SECOND } else { 0 };
    }
    log.finish_in_place().unwrap().0.into_inner()
}

/// Returns an RLD log of six seconds in which each row has an extra word. A block of this log is
/// larger than the ranges that are always fetched first.
fn extra_words() -> Vec<u8> {
    let channels = vec![ChannelSpec::analog("V1", Unit::Volt, -8)];
    let spec = LogSpec { channels, block_rows: 64_000, ..LogSpec::new(64_000) };
    let mut header = spec.header().unwrap();
    rovelog::rld_format::set_counts(&mut header, 6 * 64_000).unwrap();
    let mut log = header.to_bytes();
    for block in 0..6_u32 {
        let nanos = 3_520_000 * i64::from(block);
        let times = [1_700_000_000 + i64::from(block), nanos, 100 + i64::from(block), nanos];
        log.extend(times.map(i64::to_le_bytes).concat());
        log.extend((0..64_000).flat_map(|row| [0, 64_000 * block + row].map(u32::to_le_bytes).concat()));
    }
    log
}

/// Returns a VEL log of ten minutes.
fn drive() -> Vec<u8> {
    let data = [7; 2000];
    let messages: Vec<_> = (0..3000)
        .map(|i| NewMessage::raw(0x1234_5678, 1, 5000.0 + 200.0 * f64::from(i), &data[..]))
        .collect();
    let mut out = Vec::new();
    write_log(&messages, &WriteOptions::default(), &mut out).unwrap();
    out
}

/// Returns a bag with several chunks from different years. Returns `None` if the real bags are not
/// present.
fn years() -> Option<Vec<u8>> {
    let folder = rovelog_testing::real("rosbag20")?;
    let names = ["real_joints_2011", "real_imu_navsat_bz2_2015", "real_audio_2019", "real_turtlesim_2014"];
    let logs = names.map(|name| rovelog::open(folder.join(format!("{name}.bag"))).unwrap());
    let mut out = Vec::new();
    rovelog::merge(&logs, Align::Utc, &mut out).unwrap();
    Some(out)
}

/// The topic, offset, time and payload of a record.
type Row = (String, u64, i64, Vec<u8>);

/// Returns the topic, offset, time and payload of a record. The number of the record is not
/// included, because it depends on earlier records.
fn properties(record: Result<Record<'_>>) -> Row {
    let record = record.unwrap();
    let time = record.time.map_or(i64::MIN, |time| time.nanos);
    (record.topic.name.clone(), record.offset, time, record.payload[..].to_vec())
}

#[test]
fn summaries_of_partial_logs_are_true() {
    let mut logs = real();
    logs.extend([("power".to_owned(), power()), ("drive".to_owned(), drive())]);
    logs.extend(years().map(|bytes| ("years".to_owned(), bytes)));
    for (name, file) in logs {
        let parts = Parts::of(&file);
        let Ok(true) = rovelog::outline(&parts, None) else { continue };
        assert!(parts.fetched() <= 1 << 20, "{name}: {} bytes", parts.fetched());
        assert!(*parts.fetches.borrow() <= 5, "{name}");
        let whole = from_bytes(Bytes::from(file.clone()), &ReadOptions::default()).unwrap();
        let log = match parts.open() {
            Ok(log) => log,
            // A bag that was not closed has no index.
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::PartlyRead, "{name}: {error}");
                continue;
            }
        };
        let (info, all) = (log.info(), whole.info());
        assert_eq!((&info.version, info.dialect, info.size), (&all.version, all.dialect, all.size), "{name}");
        assert_eq!(info.unread, parts.unread().bytes(), "{name}");
        if info.unread == 0 {
            assert_eq!(info.records, all.records, "{name}");
            continue;
        }
        assert!(info.state != State::Complete, "{name}: only parts were read");
        if info.lost.losses == 0 {
            assert_eq!(info.state, State::NotChecked, "{name}");
        }
        if info.at_least {
            assert!(info.records <= all.records && info.records > 0, "{name}");
        } else {
            assert_eq!(info.records, all.records, "{name}");
        }
        for topic in log.topics() {
            let same = whole.topic(&topic.name).unwrap_or_else(|| panic!("{name} has no {}", topic.name));
            assert!(topic.count <= same.count, "{name}: {}", topic.name);
        }
        let near = |a: Option<rovelog::Timestamp>, b: Option<rovelog::Timestamp>| {
            a.zip(b).is_none_or(|(a, b)| a.nanos.abs_diff(b.nanos) < 1_000_000)
        };
        let whole_span = all.span().unzip();
        assert!(near(info.start, whole_span.0) || near(info.start, all.start), "{name}: start");
        assert!(near(info.end, whole_span.1) || near(info.end, all.end), "{name}: end");
        // Reading records that were not fetched is an error. They must not be omitted silently.
        if info.records > 0 {
            let mut records = log.records(&Select::all());
            assert!(
                matches!(records.next(), Some(Err(error)) if error.kind == ErrorKind::PartlyRead),
                "{name}"
            );
            #[cfg(feature = "arrow")]
            assert!(log.batches(&Select::all()).any(|batch| batch.is_err()), "{name}: batches");
        }
    }
}

#[test]
fn windows_are_read_from_the_requested_ranges() {
    let mut logs = real();
    logs.extend([("power".to_owned(), power()), ("drive".to_owned(), drive())]);
    logs.push(("extra words".to_owned(), extra_words()));
    logs.extend(years().map(|bytes| ("years".to_owned(), bytes)));
    let mut windows = 0;
    for (name, file) in logs {
        let whole = from_bytes(Bytes::from(file.clone()), &ReadOptions::default()).unwrap();
        let Some((start, end)) = whole.info().span() else { continue };
        let is_rld = whole.format().id == "rld";
        for part in 0..5 {
            let parts = Parts::of(&file);
            let Ok(true) = rovelog::outline(&parts, None) else { continue };
            if parts.unread().is_empty() || parts.open().is_err() {
                continue;
            }
            let from = start.nanos + (end.nanos - start.nanos) / 5 * part;
            let select = Select::all().between(Some(from), Some(from + SECOND));
            let Some(log) = parts.select(&select) else {
                assert!(matches!(whole.format().id, "ulog" | "rosbag"), "{name}");
                continue;
            };
            windows += 1;
            let mut wanted: Vec<_> = whole.records(&select).map(properties).collect();
            let mut found: Vec<_> = log.records(&select).map(properties).collect();
            if is_rld {
                // If only some blocks were fetched, the times are fitted to fewer blocks. So a row
                // at an end of the window may be in only one of the two results.
                let both = |rows: &[Row], others: &[Row]| {
                    let (first, last) = (others[0].1, others[others.len() - 1].1);
                    rows.iter().filter(|row| (first..=last).contains(&row.1)).cloned().collect::<Vec<_>>()
                };
                let (some, others) = (both(&found, &wanted), both(&wanted, &found));
                assert!(found.len() - some.len() <= 1 && wanted.len() - others.len() <= 1, "{name}");
                (found, wanted) = (some, others);
                for (found, wanted) in found.iter_mut().zip(&wanted) {
                    // Block times are at most half a millisecond late. This limits the difference
                    // between the two fits.
                    assert!(found.2.abs_diff(wanted.2) < 100_000, "{name}: {} {}", found.2, wanted.2);
                    found.2 = wanted.2;
                }
            }
            assert_eq!(found.len(), wanted.len(), "{name}");
            for (found, wanted) in found.iter().zip(&wanted) {
                assert!(found == wanted, "{name}: the record at byte {}", wanted.1);
            }
        }
    }
    assert!(windows >= 10, "{windows}");
}

#[test]
fn headers_with_long_comments_are_fetched_completely() {
    let mut file = power();
    let mut header = Header::from_bytes(&file, None).unwrap();
    let end = usize::try_from(header.size()).unwrap();
    header.comment = vec![b'x'; 300_000];
    header.lead_in.comment_length = U32Le::new(300_000);
    // The header stores only 16 bits of its length.
    header.lead_in.header_length = U16Le::new(u16::try_from(header.size() % (1 << 16)).unwrap());
    file.splice(..end, header.to_bytes());
    let parts = Parts::of(&file);
    assert!(rovelog::outline(&parts, None).unwrap());
    assert!(parts.fetched() < parts.size() / 2, "{}", parts.fetched());
    let (whole, part) =
        (from_bytes(Bytes::from(file.clone()), &ReadOptions::default()).unwrap(), parts.open().unwrap());
    assert_eq!(part.info().records, whole.info().records);
    assert_eq!(part.info().span(), whole.info().span());
}

#[test]
fn a_window_of_a_large_log_is_a_small_part_of_it() {
    for (file, share) in [(power(), 6), (drive(), 8)] {
        let parts = Parts::of(&file);
        rovelog::outline(&parts, None).unwrap();
        let before = parts.fetched();
        let (start, _) = parts.open().unwrap().info().span().unwrap();
        let select = Select::all().between(Some(start.nanos + 50 * SECOND), Some(start.nanos + 52 * SECOND));
        let log = parts.select(&select).unwrap();
        assert!(log.records(&select).count() > 5);
        let moved = parts.fetched() - before;
        assert!(moved * share < file.len() as u64, "{moved} of {}", file.len());
    }
}
