//! The damage plan of the real logs: at least what must survive, and hardly anything false.

mod support;

use std::collections::{BTreeMap, HashMap};

use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use support::{hex, open, real};
use ulog_format::UlogReader;

fn noise(key: &str, len: usize) -> Vec<u8> {
    let block = |i: usize| Sha256::digest(format!("{key}:{i}"));
    (0..).flat_map(|i| block(i).to_vec()).take(len).collect()
}

/// Replays the edits of one file of the plan; offsets are those of the undamaged file.
fn damage(base: &[u8], edits: &[Json]) -> Vec<u8> {
    let mut out = Vec::with_capacity(base.len());
    let mut done = 0;
    for edit in edits {
        let number = |i: usize| usize::try_from(edit[i].as_u64().expect("a number")).expect("small");
        let at = number(1);
        out.extend_from_slice(&base[done..at]);
        let n = if edit[0] == "xor" { 1 } else { number(2) };
        match edit[0].as_str().expect("a kind") {
            "xor" => out.push(base[at] ^ u8::try_from(number(2)).expect("a mask")),
            "delete" => {}
            "zero" => out.resize(out.len() + n, 0),
            "noise" => out.extend(noise(edit[3].as_str().expect("a key"), n)),
            "copy" => out.extend_from_slice(&base[number(3)..number(3) + n]),
            other => panic!("unknown edit {other}"),
        }
        done = at + n;
    }
    out.extend_from_slice(&base[done..]);
    out
}

/// Rows by what the plan compares: message id and timestamp.
fn rows(log: &UlogReader) -> HashMap<(u16, u64), u64> {
    let mut rows = HashMap::new();
    for record in log.records_in_file_order() {
        let id = log.definitions().subscriptions()[record.topic.id.index()].msg_id;
        let time = record.time.map_or(0, |time| u64::try_from(time.nanos / 1000).expect("positive"));
        *rows.entry((id, time)).or_default() += 1;
    }
    rows
}

#[test]
fn the_damage_plan_loses_no_more_than_the_reference() {
    let Some(folder) = real() else { return };
    let read = |name: &str| -> Json {
        let text = std::fs::read_to_string(folder.join("damage").join(name)).expect("the plan");
        serde_json::from_str(&text).expect("JSON")
    };
    let (plan, results) = (read("plan.json"), read("results.json"));
    let base = std::fs::read(folder.join(plan["base"].as_str().expect("a name"))).expect("the base");
    let truth = rows(&open(&base.clone().into()));
    let files = plan["files"].as_object().expect("files");
    assert!(files.len() >= 42);
    let mut table: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (name, file) in files {
        let bytes = damage(&base, file["edits"].as_array().expect("edits"));
        let hash = hex(&Sha256::digest(&bytes));
        assert_eq!(file["sha256"], hash, "{name}: the replay differs");
        let len = bytes.len() as u64;
        let log = open(&bytes.into());
        let got = rows(&log);
        let common: u64 = got.iter().map(|(row, n)| (*n).min(truth.get(row).copied().unwrap_or(0))).sum();
        let total: u64 = got.values().sum();
        let must = file["rows_that_must_survive"].as_u64().expect("a number");
        let reference = &results[name]["reference"];
        let (best, false_rows) = (reference[0].as_u64().expect("rows"), reference[1].as_u64().expect("rows"));
        let kind = name.split('_').next().expect("a kind");
        let entry = table.entry(kind).or_default();
        entry.0 += must.saturating_sub(common);
        entry.1 += total - common;
        assert!(common >= best.min(must), "{name}: {common} of {must} rows, the reference has {best}");
        // Stale blocks are whole rows of another time: only their order tells.
        if kind != "stale" {
            assert!(
                total - common <= false_rows + 2,
                "{name}: {} false rows, the reference has {false_rows}",
                total - common
            );
        }
        let ledger = &log_lost(&log);
        assert!(ledger.iter().all(|(start, end)| start < end && *end <= len), "{name}: {ledger:?}");
        assert!(ledger.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{name}: losses overlap");
    }
    // Without stale blocks, which only their times give away, hardly any row is false.
    let false_rows: u64 = table.iter().filter(|(kind, _)| **kind != "stale").map(|(_, (_, rows))| rows).sum();
    assert!(false_rows <= 10, "rows missed and false rows by kind of damage: {table:?}");
}

fn log_lost(log: &UlogReader) -> Vec<(u64, u64)> {
    use rovelog_core::{LogReader, Severity};
    let lost = log.diagnostics().list().iter().filter(|d| d.rule.severity == Severity::DataLost);
    lost.map(|d| (d.range.start, d.range.end)).collect()
}
