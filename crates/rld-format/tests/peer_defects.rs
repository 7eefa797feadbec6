//! Defects of the Python package `rocketlogger` 2.1.3. The name of each test states the right
//! behavior, and its comment states what the package does instead. All tests run with the corpus or
//! with generated logs. Real logs are used if present.

mod support;

use rld_format::analysis::{Source, currents};
use rld_format::clock::{TimeAxis, TimeBase, TimeOptions};
use rld_format::unit::{Scale, Unit};
use rld_format::wire::BlockTimes;
use rld_format::{ChannelSpec, LogSpec, RldReader, RldWriter};
use rld_format::{encode_row, set_counts};
use rovelog_core::{LogReader, State};
use rovelog_testing::Log;
use serde_json::Value as Json;
use support::{LOGS, open};

/// Opens the corpus case with this name.
fn case(name: &str) -> RldReader {
    open(&LOGS.case(name).bytes)
}

/// Returns the real log with this name. Returns `None` if it is not present.
fn field(name: &str) -> Option<Log> {
    LOGS.real_log(name)
}

/// Returns the raw values that the recipe of a corpus case specifies.
fn laid(name: &str) -> Vec<Vec<i64>> {
    let expected = LOGS.expected(name);
    let number = |value: &Json| value.as_str().and_then(|text| text.parse().ok()).expect("an integer");
    let row = |row: &Json| row.as_array().expect("a row").iter().map(number).collect();
    expected["rld"]["raw"].as_array().expect("rows").iter().map(row).collect()
}

/// Returns the raw values of a log's analog channels.
fn raw(log: &RldReader) -> Vec<Vec<i64>> {
    let binary = log.channels().iter().filter(|channel| channel.is_binary).count();
    let row = |row| {
        let row = log.row(row).expect("a row");
        (binary..log.channels().len()).map(|channel| row.raw(channel).expect("a value")).collect()
    };
    (0..log.rows()).map(row).collect()
}

/// Returns a log with one voltage channel at 64 kSPS. It has `rows` rows in total, and blocks of
/// one second.
fn fast(rows: u64, first: i128) -> Vec<u8> {
    let mut spec = LogSpec::new(64_000);
    spec.block_rows = 64_000;
    spec.channels = vec![ChannelSpec::analog("V1", Unit::Volt, -8)];
    let mut header = spec.header().expect("a header");
    set_counts(&mut header, rows).expect("counts");
    let mut writer = RldWriter::new(Vec::new(), header).expect("a writer");
    let layout = writer.layout().clone();
    for block in 0..rows.div_ceil(64_000) {
        let mut bytes = Vec::new();
        for row in block * 64_000..rows.min((block + 1) * 64_000) {
            encode_row(&layout, &[], &[i64::try_from(row).expect("small")], &mut bytes).expect("a row");
        }
        let at = first + i128::from(block) * 1_003_520_000;
        let block_times = BlockTimes::new(at, at).expect("block times");
        writer.block(&block_times, &bytes).expect("memory takes it");
    }
    writer.finish().expect("memory takes it").0
}

/// The Python package `rocketlogger` fails with "RocketLogger file magic mismatch", because it
/// knows only one magic number.
#[test]
fn version_1_is_read() {
    let log = case("v1");
    assert_eq!((log.header().lead_in.file_version.get(), log.info().state), (1, State::Complete));
    assert_eq!(raw(&log), laid("v1"));
    if let Some(log) = field("test_unsupported") {
        assert_eq!(open(&log.bytes).rows(), 131_000);
    }
}

/// The Python package `rocketlogger` refuses a file whose last block is not full. With
/// `recovery=True`, it drops the rows of that block.
#[test]
fn rows_of_a_short_last_block_are_kept() {
    let log = case("last-block-short");
    assert_eq!((log.rows(), log.info().state, log.diagnostics().total()), (12, State::Complete, 0));
    assert_eq!(raw(&log), laid("last-block-short"));
    if let Some(log) = field("v4_partial") {
        assert_eq!(open(&log.bytes).rows(), 2250);
    }
}

/// The Python package `rocketlogger` keeps only whole blocks: 4000 of these 4999 rows. Without
/// `recovery=True`, it fails.
#[test]
fn every_complete_row_before_a_cut_is_kept() {
    let log = case("cut-in-row");
    assert_eq!((log.rows(), log.info().state), (14, State::Truncated));
    assert_eq!(raw(&log), laid("cut-in-row"));
    if let Some(log) = field("test_truncated") {
        let log = open(&log.bytes);
        assert_eq!((log.rows(), log.info().state, log.info().lost.bytes), (4999, State::Truncated, 0));
    }
}

/// At 64 kSPS, the Python package `rocketlogger` keeps only 64 000 of 127 999 rows, because four
/// bytes are missing.
#[test]
fn a_second_of_rows_is_not_dropped_for_four_bytes() {
    let mut bytes = fast(128_000, 1_700_000_000_000_000_000);
    bytes.truncate(bytes.len() - 4);
    let log = open(&bytes.into());
    assert_eq!((log.rows(), log.info().state), (127_999, State::Truncated));
    assert_eq!(log.row(127_998).and_then(|row| row.raw(0)), Some(127_998));
}

/// The releases 2.0.0-beta1 to 2.0.1 wrote an extra word in each row, which shifts every value. The
/// Python package `rocketlogger` refuses the file because of its size. With `recovery=True`, the
/// package silently returns wrong numbers.
#[test]
fn the_extra_word_of_2_0_is_left_out() {
    for name in ["extra-word", "extra-word+cut"] {
        let log = case(name);
        assert_eq!(raw(&log), laid(name), "{name}");
        assert!(log.diagnostics().list().iter().any(|d| d.rule.name == "extra_word"), "{name}");
    }
}

/// In files of the releases 1.1 and 1.1.1, the comment length is four bytes too large, which shifts
/// the channel table. The Python package `rocketlogger` fails with "`KeyError`: 4294967288".
#[test]
fn the_comment_length_of_1_1_is_corrected() {
    let log = case("comment-excess");
    assert_eq!((log.header().comment_text().as_str(), log.header().comment.len()), ("abc", 4));
    assert_eq!(&*log.channels()[0].name, "DI1");
    assert_eq!(raw(&log), laid("comment-excess"));
}

/// The Python package `rocketlogger` fails with a `KeyError` for any unit code that is not in its
/// table.
#[test]
fn an_unknown_unit_is_kept() {
    let log = case("unit-unknown");
    assert_eq!(log.channels()[0].unit, Unit::Other(77));
    assert_eq!(raw(&log), laid("unit-unknown"));
}

/// The Python package `rocketlogger` fails with a `UnicodeDecodeError`, because it decodes comments
/// strictly.
#[test]
fn a_comment_that_is_not_ascii_is_read() {
    for name in ["comment-not-ascii", "comment-utf8"] {
        assert_eq!(raw(&case(name)), laid(name), "{name}");
    }
    assert_eq!(case("comment-utf8").header().comment_text(), "5 °C x");
}

/// The Python package `rocketlogger` decides by the unit whether a channel is binary. If the unit
/// contradicts the position of the channel, the package reads all later channels from wrong
/// offsets.
#[test]
fn the_position_of_a_channel_decides_whether_it_is_binary() {
    let log = case("kind-mismatch");
    assert!(log.channels()[0].is_binary && !log.channels()[4].is_binary);
    assert_eq!(raw(&log), laid("kind-mismatch"));
}

/// When the Python package `rocketlogger` merges channels, it removes the original channels and
/// renumbers all links, even the number 65535, which means "no link". So `get_validity` fails with
/// an `IndexError` after `merge_channels`.
#[test]
fn merged_and_other_channels_keep_their_validity() {
    let log = case("range-switches");
    let current = &currents(log.channels())[0];
    let merged = log.merged(current, 0, 0..log.rows());
    let (v1, low) = (log.channel("V1").expect("there"), current.low.expect("there"));
    for (row, (source, _)) in merged.iter().enumerate() {
        let row = log.row(row as u64).expect("a row");
        assert_eq!(row.is_valid(v1), Some(true));
        assert_eq!(*source == Source::Low, row.is_valid(low) == Some(true));
    }
}

/// The Python package `rocketlogger` computes absolute times as `f64`. In this decade, such times
/// are multiples of 256 ns.
#[test]
fn absolute_times_are_exact() {
    let first = 1_700_000_000_000_000_123;
    let log = open(&fast(128_000, first).into());
    let start = i64::try_from(first).expect("64 bits");
    for axis in [TimeAxis::Fit, TimeAxis::BlockInterp, TimeAxis::TrueRate] {
        let times = log.times(TimeOptions::new(axis, TimeBase::Unix));
        for row in [0, 1, 63_999, 64_000, 127_999] {
            assert_eq!(
                times.time(row),
                Some(start + 15_680 * i64::try_from(row).expect("small")),
                "{axis:?}"
            );
        }
    }
    // As `f64`, the difference between the times of the first two rows is wrong by more than 60 ns.
    let apart = (start + 15_680) as f64 - start as f64;
    assert!((apart - 15_680.0).abs() > 60.0, "{apart} ns");
}

/// The Python package `rocketlogger` interpolates times between blocks. So in a log with a single
/// block, all its times are `NaT`.
#[test]
fn a_log_of_one_block_has_absolute_times() {
    let log = open(&fast(10, 1_700_000_000_000_000_000).into());
    let times = log.times(TimeOptions::new(TimeAxis::BlockInterp, TimeBase::Unix));
    assert_eq!(times.time(9), Some(1_700_000_000_000_000_000 + 9 * 15_680));
    if let Some(log) = field("test_single_block") {
        let log = open(&log.bytes);
        let times = log.times(TimeOptions::new(TimeAxis::BlockInterp, TimeBase::Unix));
        assert_eq!(times.time(999).zip(times.time(0)).map(|(b, a)| b - a), Some(999 * 1_003_520));
    }
}

/// The Python package `rocketlogger` fails with a `TypeError`, because `NumPy` has no 24-bit
/// integers.
#[test]
fn values_of_three_bytes_are_read() {
    let log = case("data-sizes");
    assert!(log.channels().iter().any(|channel| channel.size == 3));
    assert_eq!(raw(&log), laid("data-sizes"));
}

/// The Python package `rocketlogger` fails with a `TypeError` for more than 64 binary channels,
/// because `NumPy` has no 96-bit integers.
#[test]
fn more_than_64_bits_are_read() {
    let log = case("binary-70");
    let records = LOGS.expected("binary-70");
    for (number, record) in (0..log.rows()).zip(records["records"].as_array().expect("records")) {
        let row = log.row(number).expect("a row");
        for (i, channel) in log.channels().iter().enumerate().filter(|(_, channel)| channel.is_binary) {
            assert_eq!(record["data"][&*channel.name].as_bool(), row.bit(i), "row {number} {}", channel.name);
        }
    }
}

/// The Python package `rocketlogger` multiplies by a power of ten that no `f64` represents exactly.
/// So the last digit is wrong for every eighth voltage, and for four of ten currents.
#[test]
fn physical_values_are_correctly_rounded() {
    let mut others = 0;
    for (exponent, power) in [(-8, 1e-8), (-9, 1e-9), (-11, 1e-11)] {
        let scale = Scale::new(exponent).expect("in range");
        for raw in (0..2_000_000_i64).step_by(997).flat_map(|raw| [raw, -raw]) {
            // Parsing decimal text rounds only once, so its result is correctly rounded.
            let want: f64 = format!("{raw}e{exponent}").parse().expect("a number");
            assert_eq!(scale.apply(raw).to_bits(), want.to_bits(), "{raw}e{exponent}");
            others += usize::from((raw as f64 * power).to_bits() != want.to_bits());
        }
    }
    assert!(others > 1000, "{others} products differ");
}

/// Only a jump of the block times shows that blocks are missing. The Python package `rocketlogger`
/// spreads the rows before the jump over the gap.
#[test]
fn gaps_are_reported_and_rows_are_not_spread_over_them() {
    let log = case("gap");
    let gaps = &log.clock_report().gaps;
    assert_eq!((gaps.len(), gaps[0].row, gaps[0].blocks), (1, 10, 3));
    let times = log.times(TimeOptions::default());
    let step = |row| times.time(row + 1).expect("a time") - times.time(row).expect("a time");
    assert_eq!((step(8), step(9)), (1_003_520, 16 * 1_003_520));
}
