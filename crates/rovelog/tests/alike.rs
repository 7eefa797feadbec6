//! Tests of properties that all formats share, with all logs of the corpus.
#![cfg(all(feature = "ulog", feature = "rld", feature = "rosbag", feature = "vel"))]

use std::io::{self, Write};

use rovelog::{AnyLog, ErrorKind, ReadOptions, RecoverOptions, Select};
use rovelog_testing::{Logs, RLD, ROSBAG, ULOG, VEL};

/// Returns the corpus logs that can be opened, with their names.
fn logs() -> impl Iterator<Item = (String, AnyLog)> {
    let all = [ULOG, RLD, ROSBAG, VEL].iter().flat_map(Logs::corpus);
    all.filter_map(|log| Some((log.name, rovelog::from_bytes(log.bytes, &ReadOptions::default()).ok()?)))
}

#[test]
fn only_requested_topics_are_latched() {
    let mut met = 0;
    for (name, log) in logs() {
        let Some(span) = log.info().start.zip(log.info().end) else { continue };
        let middle = span.0.nanos.midpoint(span.1.nanos);
        let after = log.records(&Select::all().between(Some(middle), None)).count();
        for topic in log.topics() {
            let before = log.records(&Select::topic(&topic.name).between(None, Some(middle))).count();
            let select = Select::all().between(Some(middle), None).with_last_before_of([&topic.name]);
            let records: Vec<_> = log.records(&select).map(|record| record.expect("it is valid")).collect();
            assert_eq!(records.len(), after + before.min(1), "{name}: {}", topic.name);
            if before > 0 {
                assert_eq!(records[0].topic.id, topic.id, "{name}");
                met += 1;
            }
            let mut out = Vec::new();
            // In a slice, rows before a gap stay in their block, and some selections cannot be
            // written as a log. Both are reported, in the details or as an error.
            if let Ok(sliced) = log.slice(&select, &mut out)
                && sliced.details.iter().all(|detail| detail.text.is_none())
            {
                assert_eq!(sliced.records, records.len() as u64, "{name}: slice with {} latched", topic.name);
            }
        }
    }
    assert!(met > 100, "{met} topics start before the middle of their log");
}

/// Recovery must drop exactly the bytes that reading reports as lost, and must keep all other
/// bytes. The recovered log must have no losses.
#[test]
fn reading_and_recovery_report_the_same_loss() {
    let (mut lossy, mut wrong) = (0, Vec::new());
    for (name, log) in logs() {
        let mut out = Vec::new();
        let report = log.recover(&mut out, &RecoverOptions::default()).expect("memory takes it");
        let lost = &log.info().lost;
        lossy += u64::from(!lost.is_empty());
        if report.unchanged && log.format().id == "ulog" {
            // Recovery keeps the bytes of a message that was truncated before data was appended to
            // the log. See section 4 of docs/formats/ulog.md.
            let cut = log.diagnostics().counts().get("E-ULOG-002").copied().unwrap_or_default();
            if (cut, log.info().size) != (lost.losses, out.len() as u64) {
                wrong.push(format!("{name}: unchanged, with {lost}"));
            }
            continue;
        }
        let read = (lost.bytes, lost.missing_records);
        let recovered = (report.lost_bytes(), report.missing_records);
        // Recovery of a ULog also drops the subscription of a topic that cannot be decoded.
        let more = log.format().id == "ulog" && recovered.0 >= read.0;
        if read != recovered && !more {
            wrong.push(format!("{name}: reading loses (bytes, records) {read:?}, recovering {recovered:?}"));
        }
        let accounted = report.kept_bytes + report.lost_bytes() + report.stale_bytes;
        if accounted != log.info().size {
            wrong.push(format!("{name}: {accounted} of {} bytes are accounted for", log.info().size));
        }
        let again = rovelog::from_bytes(out.into(), &ReadOptions::default()).expect("a recovered log opens");
        if !again.info().lost.is_empty() {
            wrong.push(format!("{name}: the recovered log has losses: {}", again.info().lost));
        }
        if again.info().records != report.records {
            wrong.push(format!("{name}: {} of {} records", again.info().records, report.records));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(lossy > 100, "only {lossy} logs have losses");
}

/// An output like a pipe whose reader has closed it.
struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn write_errors_are_distinguished_from_other_errors() {
    let mut refused = 0;
    for (name, log) in logs() {
        let recovered = log.recover(&mut Closed, &RecoverOptions::default()).map(drop);
        let sliced = log.slice(&Select::all(), &mut Closed).map(drop);
        for error in [recovered, sliced].into_iter().filter_map(Result::err) {
            let Some(io) = error.get_ref().downcast_ref::<io::Error>() else {
                assert_ne!(error.kind, ErrorKind::Io, "{name}: {error}");
                continue;
            };
            assert_eq!((error.kind, io.kind()), (ErrorKind::Io, io::ErrorKind::BrokenPipe), "{name}");
            refused += 1;
        }
    }
    assert!(refused > 400, "{refused} outputs refused");
}

/// A topic or record of a different log must cause an error. It must not cause a panic, and its
/// bytes must not be decoded with the layout of this log.
#[test]
fn a_topic_of_another_log_is_rejected() {
    let logs: Vec<_> = logs().filter(|(_, log)| !log.topics().is_empty()).collect();
    let mut met = [0; 2];
    for pair in logs.windows(2) {
        let ((name, log), (_, other)) = (&pair[0], &pair[1]);
        for topic in other.topics() {
            let error = log.own(topic).expect_err(name);
            assert_eq!(error.kind, ErrorKind::InvalidArgument, "{name}: {error}");
            let copy = log.topics()[0].clone();
            assert!(log.own(&copy).is_err(), "{name}");
        }
        for record in other.records(&Select::all()).take(10).filter_map(Result::ok) {
            match (log, other) {
                (AnyLog::Ulog(log), AnyLog::Ulog(_)) => {
                    assert!(log.row(&record).is_err(), "{name}");
                    met[0] += 1;
                }
                (AnyLog::Rosbag(log), AnyLog::Rosbag(_)) => {
                    assert!(log.decode(&record).is_err(), "{name}");
                    assert!(log.layout(record.topic, &record.payload).is_err(), "{name}");
                    assert!(log.callerids(record.topic).is_empty(), "{name}");
                    met[1] += 1;
                }
                _ => {}
            }
        }
        let topic = &log.topics()[0];
        let own = log.own(topic).expect(name);
        let records = |select: &Select| {
            log.records(select).filter(|r| r.as_ref().is_ok_and(|r| r.topic.id == topic.id)).count()
        };
        assert_eq!(own.records(&Select::all()).count(), records(&Select::all()), "{name}");
    }
    assert!(met.iter().all(|met| *met > 50), "{met:?}");
}
