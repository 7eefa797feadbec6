//! The summary of a log, and the details of `info` that only RLD logs have.

use rovelog_core::internal::text::count;
use rovelog_core::time::Seconds;
use rovelog_core::{Detail, Diagnostics, LogInfo, Rule, State, Value};

use crate::clock::{ClockReport, Gaps, TRUE_SECOND};
use crate::diagnostics as rules;
use crate::log_scan::LogScan;
use crate::validate::Validated;

/// Results of reading a log, from which the summary is created. Both
/// [`RldReader`](crate::RldReader) and [`RldStream`](crate::RldStream) provide them.
pub(crate) struct ReadResult<'a> {
    pub(crate) scan: &'a LogScan,
    pub(crate) size: u64,
    /// Number of rows in the last block.
    pub(crate) last_rows: u64,
    pub(crate) parts: usize,
    /// True if the times of all blocks have been read.
    pub(crate) is_whole: bool,
    pub(crate) report: Option<&'a ClockReport>,
}

/// Returns the number of rows in the last block if `rows` rows are divided into blocks of `size`
/// rows.
pub(crate) fn last_rows(rows: u64, size: u64) -> u64 {
    match rows.checked_rem(size) {
        Some(0) => size.min(rows),
        rest => rest.unwrap_or_default(),
    }
}

/// Creates the summary of a log.
pub(crate) fn info(result: &ReadResult<'_>) -> LogInfo {
    let LogScan { validated, topic, diagnostics, .. } = result.scan;
    let mut info = LogInfo::new(validated.version.number.to_string(), result.size);
    info.dialect = Some("rocketlogger");
    apply_diagnostics(&mut info, diagnostics);
    (info.start, info.end, info.records) = (topic.first, topic.last, topic.count);
    info.details = details(result);
    info
}

/// Adds the counts of diagnostics to the summary and derives the state of the log. A log is
/// truncated if its file ends within a row, and also if rows are missing after a complete row.
pub(crate) fn apply_diagnostics(info: &mut LogInfo, diagnostics: &Diagnostics) {
    info.set_state(diagnostics, &rules::CUT);
    let count = |rule: &Rule| diagnostics.counts().get(rule.code).copied().unwrap_or_default();
    if info.lost.losses > 0
        && info.lost.losses
            == count(&rules::CUT)
                + count(&rules::ROWS_MISSING)
                + rovelog_core::internal::packed::cuts(diagnostics)
    {
        info.state = State::Truncated;
    }
}

/// Returns the true sample rate in Hz for a nominal sample rate.
pub(crate) fn true_rate(rate: u16) -> f64 {
    f64::from(rate) * 1e9 / TRUE_SECOND as f64
}

fn details(result: &ReadResult<'_>) -> Vec<Detail> {
    let LogScan { validated, topic, tracker, .. } = result.scan;
    let lead_in = &validated.header.lead_in;
    let rate = lead_in.sample_rate.get();
    let mut details = vec![sample_rate(rate), block_sizes(result)];
    details.extend(measured(topic.count, rate));
    let Gaps { count: gaps, nanos } = tracker.gaps;
    if result.parts > 1 {
        let how = if gaps == 0 { "gap-free" } else { "with gaps" };
        let text = format!("{}, {how}", result.parts);
        details.push(Detail::new("parts", text, Value::count(result.parts as u64)));
    }
    let missing = i64::try_from(nanos).unwrap_or(i64::MAX);
    details.push(match gaps {
        _ if !result.is_whole => Detail::new("gaps", "not checked".to_owned(), Value::Null),
        count => {
            let text = format!("{count}, {} s missing", Seconds(missing));
            let value =
                Value::record([("count", Value::count(count)), ("missing_ns", Value::Int(missing, 64))]);
            Detail::new("gaps", if count == 0 { "none".to_owned() } else { text }, value)
        }
    });
    details.push(channels(validated));
    let comment = validated.header.comment_text();
    let shown = comment.escape_debug().to_string().replace("\\\"", "\"").replace("\\'", "'");
    if !comment.is_empty() {
        details.push(Detail::new("comment", shown, Value::Text(comment)));
    }
    let mac = lead_in.mac_text();
    details.push(Detail::new("device", mac.clone(), Value::Text(mac)));
    let started = i128::from(lead_in.start_sec.get()) * 1_000_000_000 + i128::from(lead_in.start_nsec.get());
    if let Ok(started) = i64::try_from(started) {
        // The start time is hidden, because it is wrong by minutes in many published logs. It is
        // used only for rows before the first valid block time.
        details.push(Detail::hidden("start_time_ns", Value::Int(started, 64)));
    }
    details.push(Detail::hidden("software", Value::Text(validated.version.software.to_owned())));
    details.extend(result.report.filter(|_| result.is_whole).map(|report| clock(report, true_rate(rate))));
    details
}

fn sample_rate(rate: u16) -> Detail {
    let true_rate = true_rate(rate);
    let value = Value::record([
        ("nominal_hz", Value::UInt(rate.into(), 16)),
        ("true_hz", Value::F64(true_rate)),
        ("period_ns_numerator", Value::count(TRUE_SECOND.unsigned_abs())),
        ("period_ns_denominator", Value::count(rate.into())),
    ]);
    Detail::new("rate", format!("{rate} nominal, {true_rate:.2} true"), value)
}

fn block_sizes(result: &ReadResult<'_>) -> Detail {
    let LogScan { validated, topic, tracker, .. } = result.scan;
    let (blocks, last) = (tracker.blocks, result.last_rows);
    let size = u64::from(validated.header.lead_in.data_block_size.get());
    // True if all blocks but the last are full. In a split recording, blocks in the middle can be
    // short, because each part can end with a short block.
    let full = topic.count - last == blocks.saturating_sub(1).saturating_mul(size);
    let text = match blocks {
        0 => "none".to_owned(),
        n if !full => format!("{n} of at most {size}, last {last}"),
        n if last == size => format!("{n} x {size}"),
        n => format!("{n} x {size}, last {last}"),
    };
    let numbers = [("count", blocks), ("rows", size), ("last_rows", last)];
    Detail::new("blocks", text, Value::record(numbers.map(|(name, number)| (name, Value::count(number)))))
}

/// Returns the duration over which charge and energy are summed. They are sums over rows, and each
/// row lasts one true sampling period.
fn measured(rows: u64, rate: u16) -> Option<Detail> {
    if rate == 0 || rows == 0 {
        return None;
    }
    let measured = i64::try_from(crate::clock::span(rows, rate)).ok()?;
    let row = i64::try_from(crate::clock::span(1, rate)).unwrap_or(i64::MAX);
    let text = format!("{} s, {rows} rows of {} s", Seconds(measured), Seconds(row));
    Some(Detail::new("measured", text, Value::record([("duration_ns", Value::Int(measured, 64))])))
}

fn channels(validated: &Validated) -> Detail {
    let names: Vec<&str> = validated.channels.iter().map(|channel| &*channel.name).collect();
    let list = validated.channels.iter().map(|channel| {
        let link =
            channel.valid.map_or(Value::Null, |bit| Value::Text(validated.channels[bit].name.to_string()));
        Value::record([
            ("name", Value::Text(channel.name.to_string())),
            ("kind", Value::Text(if channel.is_binary { "binary" } else { "analog" }.to_owned())),
            ("unit", Value::Text(channel.unit_text())),
            ("quantity", Value::Text(channel.unit.to_string())),
            ("scale", Value::Int(channel.scale.into(), 32)),
            ("bytes", Value::UInt(channel.size as u64, 16)),
            ("valid_link", link),
        ])
    });
    Detail::new("channels", names.join(" "), Value::List(list.collect()))
}

/// Creates the detail `timing` of `info`. `rate` is the true sample rate in Hz.
fn clock(report: &ClockReport, rate: f64) -> Detail {
    let mut text = Vec::new();
    if let Some(ppm) = report.slope_ppm {
        if report.mismatch {
            let used = rate / (1.0 + ppm / 1e6);
            // Use the smallest number of digits with which the two rates look different.
            let digits = (2..9).find(|digits| format!("{used:.digits$}") != format!("{rate:.digits$}"));
            let digits = digits.unwrap_or(2);
            text.push(format!(
                "block times run at {used:.digits$} Hz, not {rate:.digits$} Hz ({:.0} ppm)",
                ppm.abs()
            ));
        } else {
            text.push(format!("block times {ppm:+.1} ppm from the true rate"));
        }
    }
    if let Some(late) = report.residuals {
        text.push(format!("late by {} to {} us", late.min / 1000, late.max / 1000));
    }
    if report.drift != 0 {
        text.push(format!("UTC drifted by {} us against the monotonic clock", report.drift / 1000));
    }
    if !report.steps.is_empty() {
        text.push(format!("{} of UTC", count(report.steps.len(), "step")));
    }
    if !report.backwards.is_empty() {
        text.push(count(report.backwards.len(), "restart"));
    }
    let residuals = report.residuals.map_or(Value::Null, |late| {
        let pairs = [("min", late.min), ("median", late.median), ("p95", late.p95), ("max", late.max)];
        Value::record(pairs.map(|(name, ns)| (name, Value::Int(ns, 64))))
    });
    let value = Value::record([
        ("segments", Value::count(report.segments as u64)),
        ("slope_ppm", report.slope_ppm.map_or(Value::Null, Value::F64)),
        ("mismatch", Value::Bool(report.mismatch)),
        ("offset_ns", report.offset.map_or(Value::Null, |ns| Value::Int(ns, 64))),
        ("residual_ns", residuals),
        ("drift_ns", Value::Int(report.drift, 64)),
    ]);
    let text = match (text.as_slice(), report.segments) {
        ([], 0) => "no block times".to_owned(),
        ([], _) => "one block time".to_owned(),
        (text, _) => text.join(", "),
    };
    Detail::new("timing", text, value)
}
