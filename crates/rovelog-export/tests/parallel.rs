//! Checks that the output depends neither on the number of threads, nor on the code path that
//! writes it.

use std::num::NonZeroUsize;

use rovelog::core::internal::parallel::Jobs;
use rovelog::{AnyLog, ReadOptions, Select, Topic};
use rovelog_export::mcap::{McapCompression, McapOptions};
use rovelog_export::ndjson::Lines;
use rovelog_export::table::{self, Kind, TableOptions};
use rovelog_export::{Provenance, mcap, ndjson};
use rovelog_testing::{Logs, RLD, ROSBAG, ULOG, VEL};

fn logs() -> impl Iterator<Item = (String, AnyLog)> {
    [ULOG, RLD, ROSBAG, VEL].into_iter().flat_map(|logs| Logs::all(&logs)).filter_map(|file| {
        let log = rovelog::from_bytes(file.bytes, &ReadOptions::default()).ok()?;
        Some((file.name, log))
    })
}

fn jobs(threads: usize) -> Jobs {
    Jobs::from(NonZeroUsize::new(threads).unwrap())
}

#[test]
fn lines_are_the_json_of_the_values() {
    for (name, log) in logs() {
        let mut lines = Lines::default();
        for record in log.records(&Select::all()).flatten().step_by(3) {
            let mut line = Vec::new();
            let fields = record.fields();
            let written = fields.and_then(|fields| lines.data(record.topic.id, &fields, &mut line));
            match record.value() {
                Ok(value) => {
                    assert_eq!(String::from_utf8(line).unwrap(), value.to_json(), "{name}: {record:?}");
                }
                Err(_) => assert!(written.is_err() && line.is_empty(), "{name}: {record:?}"),
            }
        }
    }
}

#[test]
fn output_does_not_depend_on_the_number_of_threads() {
    for (name, log) in logs() {
        let lines = |threads| {
            let mut out = Vec::new();
            ndjson::write(&*log, &Select::all(), jobs(threads), &mut out, &mut |_| ()).map(|_| out).ok()
        };
        assert_eq!(lines(1), lines(3), "{name}");
        let provenance = Provenance::new("log");
        let messages = |threads, compression| {
            let mut options = McapOptions::default();
            (options.jobs, options.compression) = (jobs(threads), compression);
            let mut out = Vec::new();
            let written = mcap::write(&log, &Select::all(), &options, &provenance, &mut out, &mut |_| ());
            written.map(|done| (out, done.messages, done.losses)).ok()
        };
        for compression in [McapCompression::None, McapCompression::Lz4, McapCompression::default()] {
            assert_eq!(messages(1, compression), messages(3, compression), "{name}");
        }
        let decodes = |topic: &&Topic| {
            topic.count > 0 && log.own(topic).and_then(|topic| topic.columns(&Select::all())).is_ok()
        };
        let tables = |kind, threads| {
            let mut options = TableOptions::default();
            options.jobs = jobs(threads);
            let outputs = log.topics().iter().filter(decodes).map(|topic| (topic, Vec::new())).collect();
            let how = (kind, &options);
            let written = table::write(&*log, outputs, &Select::all(), how, &provenance, &mut |_| ());
            written
                .map(|(tables, losses)| {
                    (tables.into_iter().map(|table| table.out).collect::<Vec<_>>(), losses)
                })
                .ok()
        };
        for kind in Kind::ALL {
            assert_eq!(tables(kind, 1), tables(kind, 3), "{name}, {}", kind.name());
        }
    }
}

/// Files with any compression must be readable, and must contain the same messages.
#[test]
fn compressed_files_have_the_same_messages() {
    let file = ULOG.corpus().into_iter().max_by_key(|file| file.bytes.len()).unwrap();
    let log = rovelog::from_bytes(file.bytes, &ReadOptions::default()).unwrap();
    let messages = |compression| {
        let mut options = McapOptions::default();
        options.compression = compression;
        let provenance = Provenance::new("log");
        let mut bytes = Vec::new();
        mcap::write(&log, &Select::all(), &options, &provenance, &mut bytes, &mut |_| ()).unwrap();
        let found = ::mcap::MessageStream::new(&bytes).unwrap();
        found
            .map(|message| message.map(|m| (m.channel.id, m.log_time, m.data.into_owned())).unwrap())
            .collect::<Vec<_>>()
    };
    let plain = messages(McapCompression::None);
    assert!(!plain.is_empty());
    for compression in [McapCompression::Lz4, McapCompression::Zstd(1), McapCompression::Zstd(19)] {
        assert_eq!(messages(compression), plain, "{compression:?}");
    }
}
