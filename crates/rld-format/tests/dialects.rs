//! Tests of the logger's CSV, of calibration files and of edited copies, with files that the logger
//! wrote.

mod support;

use std::fmt::Write as _;

use rld_format::calibration::Calibration;
use rld_format::csv::{CsvStyle, import};
use rld_format::rovelog_core::backend::Backend as _;
use rld_format::rovelog_core::internal::edit::Part;
use rld_format::unit::Unit;
use rld_format::{Channel, RldReader};
use rovelog_core::LogReader;
use rovelog_testing::read_json;
use support::{LOGS, open, readable};

#[test]
fn csv_equals_that_of_the_logger_byte_for_byte() {
    let Some(folder) = LOGS.folder() else { return };
    for name in ["v4_full_dt", "v4_partial", "v4_negnsec"] {
        let log = open(&std::fs::read(folder.join(format!("{name}.rld"))).expect("a real log").into());
        let mut csv = Vec::new();
        let written = log.write_logger_csv(CsvStyle::Nanoseconds, &mut csv).expect("memory takes it");
        assert_eq!((written.rows, &written.lost[..]), (log.rows(), &[][..]), "{name}");
        let want = std::fs::read(folder.join(format!("{name}.csv"))).expect("a real file");
        assert!(csv == want, "{name}: another text than the logger's");

        // The imported log has the same channels, rows and UTC block times.
        let imported = import(&want[..], 0).expect("the logger's CSV");
        let again = open(&imported.bytes.clone().into());
        assert_eq!(again.channels(), log.channels(), "{name}");
        assert_eq!(again.rows(), log.rows(), "{name}");
        assert_eq!(again.diagnostics().total(), 0, "{name}: {:?}", again.diagnostics().list());
        assert!(
            (0..log.rows())
                .all(|row| again.row(row).expect("a row").bytes() == log.row(row).expect("a row").bytes())
        );
        let realtime =
            |log: &rld_format::RldReader| log.block_times().map(|(_, s)| s.realtime()).collect::<Vec<_>>();
        assert_eq!(realtime(&again), realtime(&log), "{name}");
        assert_eq!(again.header().comment_text(), log.header().comment_text());
        assert_eq!(again.header().lead_in.mac, log.header().lead_in.mac);
        assert_eq!(again.header().lead_in.start_sec, log.header().lead_in.start_sec);
    }
}

/// Returns the properties in which two logs differ: channel names, units, range bits, rows, UTC
/// block times, and the header.
fn differences(log: &RldReader, again: &RldReader) -> Vec<&'static str> {
    let told = |channel: &Channel| {
        let known = !channel.is_binary && !matches!(channel.unit, Unit::Undefined | Unit::Unitless);
        let unit = (known.then_some(channel.unit), (!channel.is_binary).then_some(channel.scale));
        (channel.name.clone(), channel.is_binary, unit, channel.valid)
    };
    let values = |log: &RldReader, number: u64| {
        let row = log.row(number).expect("a row");
        (0..log.channels().len()).map(|i| (row.bit(i), row.raw(i))).collect::<Vec<_>>()
    };
    let realtime =
        |log: &RldReader| log.block_times().map(|(row, s)| (row, s.realtime())).collect::<Vec<_>>();
    let head = |log: &RldReader| {
        let lead_in = &log.header().lead_in;
        let version = lead_in.file_version.get();
        (
            version,
            log.header().comment_text(),
            lead_in.mac,
            lead_in.start_sec.get(),
            lead_in.sample_rate.get(),
        )
    };
    let same = [
        ("channels", log.channels().iter().map(told).eq(again.channels().iter().map(told))),
        ("number of rows", log.rows() == again.rows()),
        ("values", (0..log.rows().min(again.rows())).all(|row| values(log, row) == values(again, row))),
        ("block times", realtime(log) == realtime(again)),
        ("header", head(log) == head(again)),
    ];
    same.into_iter().filter(|(_, same)| !same).map(|(what, _)| what).collect()
}

/// If the CSV of a log is imported, the new log equals the original log, or the difference was
/// reported.
#[test]
fn csv_is_imported_as_an_equal_log() {
    let (mut equal, mut said) = (0, 0);
    for (named, log) in readable().filter(|(_, log)| log.rows() > 0) {
        for style in [CsvStyle::Nanoseconds, CsvStyle::Dates] {
            let mut csv = Vec::new();
            let Ok(written) = log.write_logger_csv(style, &mut csv) else { continue };
            match import(&csv[..], 0) {
                Ok(imported) => {
                    let differs = differences(&log, &open(&imported.bytes.into()));
                    // The import counts blocks at the true rate. So the imported times can be right
                    // even if the CSV only has dates.
                    let silent = written.lost.is_empty();
                    let right = differs.is_empty() == silent || style == CsvStyle::Dates && !silent;
                    assert!(right, "{}: {differs:?}, {:?}", named.name, written.lost);
                    equal += usize::from(differs.is_empty());
                }
                Err(error) => assert!(!written.lost.is_empty(), "{}: {error}", named.name),
            }
            said += usize::from(!written.lost.is_empty());
        }
    }
    assert!(equal >= 40 && said >= 40, "{equal} equal, {said} said");
}

/// A spreadsheet may remove the zeros at the end of a block time.
#[test]
fn block_times_without_zeros_at_their_ends_are_equal() {
    let log = readable().map(|(_, log)| log).find(|log| log.rows() > 0).expect("a corpus log");
    let mut csv = Vec::new();
    log.write_logger_csv(CsvStyle::Nanoseconds, &mut csv).expect("memory takes it");
    let csv = String::from_utf8(csv).expect("text");
    let times = |csv: &str| {
        let log = open(&import(csv.as_bytes(), 0).expect("the logger's CSV").bytes.into());
        log.block_times().map(|(_, times)| times.realtime()).collect::<Vec<_>>()
    };
    let cut = csv.lines().map(|line| match line.split_once(',') {
        Some((time, rest)) if time.contains('.') => {
            format!("{},{rest}\n", time.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => format!("{line}\n"),
    });
    let cut: String = cut.collect();
    assert!(cut.len() < csv.len(), "a block time ends with a zero");
    assert_eq!(times(&cut), times(&csv));
}

/// The CSV contains the file version and the scale of a channel without a unit, so both are
/// restored.
#[test]
fn version_and_scales_are_restored_from_csv() {
    for name in ["test_full", "test_unsupported", "v4_split-ambient"] {
        let Some(log) = LOGS.real_log(name) else { return };
        let log = open(&log.bytes);
        let csv_of = |log: &RldReader| {
            let mut csv = Vec::new();
            log.write_logger_csv(CsvStyle::Nanoseconds, &mut csv).expect("memory takes it");
            csv
        };
        let csv = csv_of(&log);
        let again = open(&import(&csv[..], 0).expect("our own CSV").bytes.into());
        assert_eq!(again.header().lead_in.file_version, log.header().lead_in.file_version, "{name}");
        let scales = |log: &RldReader| log.channels().iter().map(|channel| channel.scale).collect::<Vec<_>>();
        assert_eq!(scales(&again), scales(&log), "{name}");
        let head = |csv: &[u8]| String::from_utf8_lossy(&csv[..700.min(csv.len())]).into_owned();
        assert!(csv_of(&again) == csv, "{name}: {} became {}", head(&csv), head(&csv_of(&again)));
    }
}

/// The CSV contains only UTC times. A jump by years, or a jump back, means that the clock was set.
/// It is not a gap.
#[test]
fn setting_the_clock_is_not_imported_as_a_gap() {
    for name in ["clock-step-of-years", "clock-step-back"] {
        let log = LOGS.corpus().into_iter().find(|log| log.name == name).expect("a case");
        let log = open(&log.bytes);
        let mut csv = Vec::new();
        log.write_logger_csv(CsvStyle::Nanoseconds, &mut csv).expect("memory takes it");
        let imported = import(&csv[..], 0).expect("our own CSV");
        let said = imported.remarks.iter().any(|remark| remark.contains("the block times have 1 jump"));
        assert!(said, "{name}: {:?}", imported.remarks);
        let again = open(&imported.bytes.into());
        let report = again.clock_report();
        assert!(report.gaps.is_empty() && report.backwards.is_empty(), "{name}: {report:?}");
        assert_eq!(report.steps, log.clock_report().steps, "{name}");
        assert_eq!(again.info().duration(), log.info().duration(), "{name}");
    }
}

/// If a CSV of version 2 has channels with newer units, the imported log has version 4. This is
/// reported.
#[test]
fn changing_the_version_on_import_is_reported() {
    let text = "RocketLogger CSV File\nFile Version,2\nBlock Size,1\nSample Rate,1\nComment,a\n\n,T [mdegC]\n1.0,5\n";
    let imported = import(text.as_bytes(), 0).expect("a log");
    assert!(
        imported.remarks.iter().any(|remark| remark.contains("file version 4 instead of 2")),
        "{:?}",
        imported.remarks
    );
    assert_eq!(open(&imported.bytes.into()).header().lead_in.file_version.get(), 4);
    let other = text.replace("Version,2", "Version,7");
    assert!(import(other.as_bytes(), 0).is_err());
}

/// Up to version 2, block times are dates, and a space precedes each bit.
#[test]
fn csv_of_version_2_is_written() {
    let log = open(&LOGS.case("v2").bytes);
    let mut csv = Vec::new();
    let written = log.write_logger_csv(CsvStyle::Dates, &mut csv).expect("memory takes it");
    assert_eq!(written.lost, ["the CSV has block times in whole seconds"]);
    let text = String::from_utf8(csv).expect("text");
    assert!(text.starts_with("RocketLogger CSV File\nFile Version,2\n"), "{text}");
    let row = text.lines().skip_while(|line| !line.starts_with(',')).nth(1).expect("a row");
    let cells: Vec<_> = row.split(',').collect();
    let start = text.lines().find_map(|line| line.strip_prefix("Start Time,")).expect("a start");
    assert_eq!(cells[0].len(), start.len(), "{row}");
    let bits = log.channels().iter().filter(|channel| channel.is_binary).count();
    assert!(bits > 0 && cells[1..=bits].iter().all(|cell| [" 0", " 1"].contains(cell)), "{row}");
    assert!(cells[1 + bits..].iter().all(|cell| !cell.contains(' ')), "{row}");
}

#[test]
fn errors_in_csv_state_the_line() {
    let head = "RocketLogger CSV File\nFile Version,4\nBlock Size,2\nSample Rate,1000\nComment,a\nb,c\n\n,DI1,V1 [10nV]\n";
    let refuse = |text: &str, words: &str| {
        let error = import(text.as_bytes(), 0).expect_err(words).to_string();
        assert!(error.contains(words), "{error}");
    };
    refuse("time,x\n1,2\n", "line 1");
    refuse("RocketLogger CSV File\nFile Version,4\n", "the line with the channels is missing");
    refuse(&format!("{head},1,5\n"), "before the first block time");
    refuse(&format!("{head}1700000000.000000000,1\n"), "line 9");
    refuse(&format!("{head}1700000000.000000000,1,x\n"), "not an integer");
    refuse(&format!("{head}1700000000.000000000,1,99999999999\n"), "4 bytes");
    refuse(&format!("{head}4745938862082.13340168419271,1,5\n"), "is not a block time");
    let far = head.replace("Sample Rate", "Start Time,Fri Jan  1 00:00:00 2500\nSample Rate");
    refuse(&format!("{far}1700000000.000000000,1,5\n"), "does not fit into 64 bits");
    let good =
        import(format!("{head}1700000000.000000000,1,5\n,0,-6\n1700000000.002007040,1,7\n").as_bytes(), 0);
    let log = open(&good.expect("the logger's CSV").bytes.into());
    assert_eq!((log.rows(), log.header().comment_text().as_str()), (3, "a\nb,c"));
    assert_eq!(log.row(1).and_then(|row| row.raw(1)), Some(-6));
}

/// The export of a damaged log has blocks of different sizes.
#[test]
fn blocks_of_different_sizes_keep_all_rows() {
    let mut text =
        "RocketLogger CSV File\nFile Version,4\nBlock Size,6\nSample Rate,1000\nComment,\n\n,V1 [10nV]\n"
            .to_owned();
    for (sec, rows) in [(0, 6), (1, 4), (2, 6), (3, 3)] {
        for row in 0..rows {
            let time = if row == 0 { format!("{}.000000000", 1_700_000_000 + sec) } else { String::new() };
            writeln!(text, "{time},{}", sec * 10 + row).expect("memory takes it");
        }
    }
    let imported = import(text.as_bytes(), 0).expect("a log");
    assert!(imported.remarks.iter().any(|remark| remark.contains("2 rows each")), "{:?}", imported.remarks);
    let log = open(&imported.bytes.into());
    assert_eq!((log.rows(), log.info().lost.bytes), (19, 0), "{:?}", log.diagnostics().list());
    let values: Vec<_> = (0..19).filter_map(|row| log.row(row)?.raw(0)).collect();
    assert_eq!(values, [0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 20, 21, 22, 23, 24, 25, 30, 31, 32]);
    let seconds = |row| log.block_of(row).map(|(_, times)| times.realtime_sec.get() - 1_700_000_000);
    assert_eq!([0, 6, 10, 16].map(seconds), [0, 1, 2, 3].map(Some));
}

/// Version 2 writes block times as dates in the format of `ctime`, and a space before each binary
/// value.
#[test]
fn csv_of_version_2_is_read() {
    let head = "RocketLogger CSV File\nFile Version,2\nBlock Size,500\nBlock Count,5                   \n\
        Sample Count,2500                \nSample Rate,1000\nMAC Address,12:34:56:78:90:ab\n\
        Start Time,Tue Nov 14 23:13:20 2023\nComment,no comment\n\n,DI1,I1L_valid,V1 [10nV],I1L [10pA],I1H [nA]\n";
    // There are two blocks per second. A minute is missing before the last block.
    let dates = ["23:13:20", "23:13:20", "23:13:21", "23:13:21", "23:14:25"];
    let mut text = head.to_owned();
    for row in 0..2500 {
        let block_time =
            if row % 500 == 0 { format!("Tue Nov 14 {} 2023", dates[row / 500]) } else { String::new() };
        writeln!(text, "{block_time}, {}, 1,{},{row},-{row}", row % 2, 335_338_378 - row)
            .expect("memory takes it");
    }
    let imported = import(text.as_bytes(), 3600).expect("the logger's CSV");
    assert_eq!(imported.remarks.len(), 2, "{:?}", imported.remarks);
    let log = open(&imported.bytes.into());
    assert_eq!((log.rows(), log.header().lead_in.data_block_size.get()), (2500, 500));
    let links: Vec<_> = log.channels().iter().map(|channel| (&*channel.name, channel.valid)).collect();
    let want = [("DI1", None), ("I1L_valid", None), ("V1", None), ("I1L", Some(1)), ("I1H", None)];
    assert_eq!(links, want);
    for number in 0..2500 {
        let row = log.row(number).expect("a row");
        let n = i64::try_from(number).expect("small");
        assert_eq!((row.bit(0), row.bit(1)), (Some(n % 2 == 1), Some(true)));
        assert_eq!((row.raw(2), row.raw(3), row.raw(4)), (Some(335_338_378 - n), Some(n), Some(-n)));
    }
    // The first block is at 22:13:20 UTC. The following blocks continue at the true rate. The gap
    // is where the dates show it.
    let first = 1_700_000_000_000_000_000;
    assert_eq!(i128::from(log.header().lead_in.start_sec.get()) * 1_000_000_000, first);
    let block_times: Vec<_> =
        log.block_times().map(|(_, block_times)| block_times.realtime() - first).collect();
    assert_eq!(block_times, [0, 501_760_000, 1_003_520_000, 1_505_280_000, 65_000_000_000]);
    let gaps = &log.clock_report().gaps;
    assert_eq!((gaps.len(), gaps[0].row), (1, 2000));
}

#[test]
fn calibration_files_are_read() {
    let Some(folder) = LOGS.folder() else { return };
    for version in [1, 2] {
        let name = format!("test_calibration_v{version}.dat");
        let want = read_json(&folder.join(format!("expected/{name}.json")));
        let text = std::fs::read_to_string(folder.join(format!("expected/{name}.json"))).expect("a result");
        let bytes = std::fs::read(folder.join(&name)).expect("a real file");
        let calibration = Calibration::from_bytes(&bytes).expect("a calibration");
        assert_eq!(want["version"], calibration.version);
        assert_eq!(want["time"], calibration.time);
        for (i, channel) in calibration.channels.iter().enumerate() {
            assert_eq!(want["positions"][i], channel.channel);
            assert_eq!(want["offset"][i], channel.offset);
            // The numbers are compared as text, because the JSON parser can be wrong in the last
            // digit.
            assert!(text.contains(&format!("{:?}", channel.scale)), "{name} {}", channel.scale);
        }
        assert_eq!(want["offset"].as_array().map(Vec::len), Some(calibration.channels.len()));
        assert!(Calibration::from_bytes(&bytes[1..]).is_err());
    }
    let v1 =
        Calibration::from_bytes(&std::fs::read(folder.join("test_calibration_v2.dat")).expect("a real file"));
    let v1 = v1.expect("a calibration");
    let first = v1.channel("V1").expect("a channel");
    assert_eq!(first.apply(-8000), 0);
    assert_eq!(first.apply(-8001), -31);
    assert_eq!(first.apply(i32::MAX), i32::MAX);
}

#[test]
fn only_the_edited_parts_of_a_copy_differ() {
    for log in LOGS.real() {
        let reader = open(&log.bytes);
        let mut kept = Vec::new();
        reader.rewrite(&mut |_, _| (), &mut kept).expect("memory takes it");
        assert_eq!(kept, log.bytes, "{}", log.name);
        let (mut out, mut times) = (Vec::new(), 0);
        let mut blank = |part: Part<'_>, bytes: &mut [u8]| match part {
            Part::Value { .. } => bytes.fill(0),
            Part::Time(units) => times += units,
            _ => {}
        };
        reader.rewrite(&mut blank, &mut out).expect("memory takes it");
        assert!(times > 0);
        let again = open(&out.clone().into());
        assert_eq!(again.header().lead_in.mac, [0; 6]);
        assert_eq!(again.header().comment_text(), "");
        let comment = 56..56 + reader.header().comment.len();
        let changed = (0..out.len()).filter(|at| out[*at] != log.bytes[*at]);
        let mut outside = changed.filter(|at| !(0x1a..0x20).contains(at) && !comment.contains(at));
        assert_eq!(outside.next(), None, "{}", log.name);
        assert_eq!(out.len(), log.bytes.len());
    }
}
