//! Writes a log as one HTML page.
//!
//! The page starts with the problems of the log. An overview, sections for the format of the log,
//! zoomable plots, topics, console lines and parameters follow. The page is a single file that
//! loads nothing from the network. All sections except for the plots can be read without
//! JavaScript.

mod findings;
mod map;
mod panels;
mod power;
mod px4;
mod rows;
mod sensors;
mod spectrum;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;

use rovelog::core::internal::parallel::{self, Jobs};
use rovelog::core::internal::text::count;
use rovelog::ulog_format::px4::{Change, Mode, mode_changes};
use rovelog::{AnyLog, Severity, Timestamp};

use crate::findings::Finding;
use crate::page::Page;
use crate::plot::{Band, Panel, Picture, Plot, Theme, svg};
use crate::scrub::Scrub;
use crate::totals::{Group, totals};
use crate::xml::escape;
use crate::{ExportError, Provenance, TimeBase, duration_text};
pub use panels::{is_stored_measurement, parent};
use rows::Span;

/// Maximum number of rows in a table of the page.
const MAX_ROWS: usize = 5000;

/// Number of pixel columns to which each line of a plot is reduced. With more columns, more details
/// are visible when zooming in.
const WIDTH: usize = 2000;

/// Options of a report.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ReportOptions {
    /// True to omit positions, images, parameters and facts that identify the vehicle.
    pub redact: bool,
    /// Color scheme of the page. If it is `None`, the page uses the color scheme of the reader's
    /// system.
    pub theme: Option<Theme>,
    /// Number of threads. More than two threads are not faster.
    pub jobs: Jobs,
}

/// Returns the time range of the report in nanoseconds of the log's clock. This is the time range
/// of the log's data if it is known. Otherwise, it is the time range of the topics.
pub fn span(log: &AnyLog) -> Option<(i64, i64)> {
    let nanos = |time: Option<Timestamp>| time.map(|time| time.nanos);
    let info = log.info();
    if let Some(data) = &info.data {
        return Some((data.start.nanos, data.end.nanos));
    }
    let firsts = log.topics().iter().filter_map(|topic| nanos(topic.first));
    let lasts = log.topics().iter().filter_map(|topic| nanos(topic.last));
    let start = nanos(info.start).or_else(|| firsts.min())?;
    let end = nanos(info.end).into_iter().chain(lasts).max()?;
    (start <= end).then_some((start, end))
}

/// Returns the panels that a report of the log has: the plots of Flight Review for a PX4 log, power
/// and currents for a `RocketLogger` log, and the measurements of the busiest topics for others.
/// `span` is in nanoseconds of the log's clock. Each line is reduced to `width` pixel columns.
///
/// # Errors
/// Returns an error if the log cannot be read.
pub fn panels(log: &AnyLog, span: (i64, i64), width: usize) -> Result<Vec<Panel>, ExportError> {
    panels::panels(log, Span { times: span, width }, false)
}

/// Writes a report as an HTML page. The same log and options always give the same page.
///
/// # Errors
/// Returns an error if writing to the output fails, or the log cannot be read.
pub fn write(
    log: &AnyLog,
    provenance: &Provenance,
    options: &ReportOptions,
    mut out: impl Write,
) -> Result<(), ExportError> {
    let span = span(log).unwrap_or((0, 1));
    let at = Span { times: span, width: WIDTH };
    let (panels, sections) = parallel::both(
        options.jobs,
        || panels::panels(log, at, options.redact),
        || Sections::read(log, at, options.redact),
    );
    let (panels, sections) = (panels?, sections?);
    let mut plot =
        Plot::new(&provenance.source_name, panels, shown(span), "seconds from the start of the log");
    plot.utc = TimeBase::of(&**log).axis_start(span.0);
    plot.bands = bands(log, span);
    // The time axis is trimmed to the drawn lines. Otherwise, a single late record of a topic that
    // is not drawn could squeeze all lines into a small part of the axis.
    let times = || plot.panels.iter().flat_map(|panel| &panel.series).flat_map(|series| &series.points);
    let drawn = times().fold((plot.span.1, 0.0), |(from, to), (time, _)| (time.min(from), time.max(to)));
    if drawn.0 < drawn.1 {
        plot.span = drawn;
    }
    let mut page = Page::default();
    let mut remarks = findings::of(log, sections.findings, &plot, span.0);
    // Console lines can name positions and people, and remarks can quote console lines.
    let scrub = options.redact.then(|| Scrub::new(log)).transpose()?;
    if let Some(scrub) = &scrub {
        for remark in &mut remarks {
            remark.text = scrub.redact(&remark.text);
        }
    }
    problems(log, &remarks, &plot, &mut page);
    overview(log, provenance, sections.totals, options.redact, &mut page);
    if let AnyLog::Rld(reader) = log {
        power::section(reader, &mut page)?;
    }
    page.append(sections.track);
    if let (AnyLog::Vel(reader), false) = (log, options.redact) {
        sensors::images(reader, span.0, &mut page);
        sensors::scans(reader, span.0, &mut page)?;
    }
    if matches!(log, AnyLog::Rosbag(_)) {
        types(log, &mut page);
    }
    plots(&plot, &mut page);
    page.append(sections.spectra);
    topics(log, &mut page);
    console(log, span.0, scrub.as_ref(), &mut page);
    if let (AnyLog::Ulog(reader), false) = (log, options.redact) {
        parameters(&reader.parameters(), span.0, &mut page);
    }
    Ok(out.write_all(page.finish(&provenance.source_name, options.theme).as_bytes())?)
}

/// Parts of a report, other than the plots, that need passes over the log.
struct Sections {
    findings: Vec<Finding>,
    /// Totals of the log. Without them, the report is still useful.
    totals: Result<Vec<Group>, ExportError>,
    track: Page,
    spectra: Page,
}

impl Sections {
    fn read(log: &AnyLog, at: Span, redact: bool) -> Result<Self, ExportError> {
        let (mut track, mut spectra) = (Page::default(), Page::default());
        if !redact {
            map::section(log, &mut track);
        }
        if let AnyLog::Ulog(_) = log {
            spectrum::section(&**log, at, &mut spectra)?;
        }
        Ok(Self { findings: crate::findings::findings(log)?, totals: totals(log), track, spectra })
    }
}

/// Writes a plot as an HTML page in which the user can zoom. `theme` is the color scheme of the
/// page. If it is `None`, the page uses the color scheme of the reader's system.
///
/// # Errors
/// Returns an error if writing to the output fails.
pub fn plot(plot: &Plot, theme: Option<Theme>, mut out: impl Write) -> Result<(), ExportError> {
    let mut page = Page::default();
    let is_picture = |panel: &Panel| plot.hertz || panel.heat.is_some();
    let (pictures, charts) = plot.panels.iter().cloned().partition(is_picture);
    let of = |panels: Vec<Panel>| Plot { panels, ..plot.clone() };
    let charts = of(charts);
    if !charts.panels.is_empty() {
        page.charts(&charts);
    }
    // Spectra cannot be zoomed, because the page has only the drawn values.
    let pictures = Plot { title: String::new(), ..of(pictures) };
    if !pictures.panels.is_empty() {
        let picture = Picture { width: 1100, height: None, dpi: 96, theme: theme.unwrap_or_default() };
        let _ = writeln!(page, "<div class=\"picture\">{}</div>", svg(&pictures, &picture));
    }
    Ok(out.write_all(page.finish(&plot.title, theme).as_bytes())?)
}

/// Converts a time range in nanoseconds to seconds. The range then starts at 0.
fn shown((start, end): (i64, i64)) -> (f64, f64) {
    (0.0, end.saturating_sub(start).max(1) as f64 / 1e9)
}

/// Returns the flight modes of a PX4 log within a time range. Their times are in seconds since the
/// start of the range. Returns no flight modes for other logs.
pub fn bands(log: &AnyLog, (start, end): (i64, i64)) -> Vec<Band> {
    let AnyLog::Ulog(reader) = log else { return Vec::new() };
    let changes = mode_changes(reader);
    let ends = changes.iter().skip(1).map(|change| change.time.nanos).chain([end]);
    let seconds = |nanos: i64| nanos.saturating_sub(start) as f64 / 1e9;
    let band = |(change, to): (&Change<Mode>, i64)| {
        let (from, to) = (change.time.nanos.max(start), to.min(end));
        let name = change.value.name().map_or_else(|| change.value.to_string(), str::to_owned);
        (from < to).then(|| Band { span: (seconds(from), seconds(to)), name })
    };
    changes.iter().zip(ends).filter_map(band).collect()
}

/// Writes the table of facts about the log. `redact` omits facts that identify the vehicle.
fn overview(
    log: &AnyLog,
    provenance: &Provenance,
    totals: Result<Vec<Group>, ExportError>,
    redact: bool,
    page: &mut Page,
) {
    let info = log.info();
    page.section("overview", "Overview", "Overview");
    page.push_str("<table>\n");
    let mut fact = |key: &str, value: &str| {
        let _ = writeln!(page, "<tr><th>{}</th><td>{}</td></tr>", escape(key), escape(value));
    };
    fact("format", &format!("{} {}", log.format().name, info.version));
    fact("size", &count(info.size, "byte"));
    fact("state", info.state.name());
    let time = |time: Timestamp| match time.to_unix(info.utc.as_ref()).and_then(Timestamp::rfc3339) {
        Some(utc) => format!("{utc} ({} clock {} s)", time.clock, time.seconds()),
        None => format!("{} s ({} clock)", time.seconds(), time.clock),
    };
    if let Some(start) = info.data_start() {
        fact("start", &time(start));
    }
    if let Some(end) = info.data_end() {
        fact("end", &time(end));
    }
    if let Some(duration) = info.data_duration() {
        fact("duration", &duration_text(duration));
    }
    for outside in info.outside() {
        let name = log.topics().get(outside.topic.index()).map_or("", |topic| topic.name.as_str());
        fact("not in the plots", &outside.sentence(name));
    }
    if let Some(utc) = &info.utc {
        fact("UTC", &format!("{}: {}", utc.rule, utc.evidence));
    }
    let topics = log.topics().iter().filter(|topic| topic.count > 0).count();
    let more = match log.topics().len() - topics {
        0 => String::new(),
        silent => format!("; {silent} more without records"),
    };
    fact("records", &format!("{} on {}{more}", info.records, count(topics, "topic")));
    match totals {
        Ok(groups) => groups.iter().for_each(|group| fact(&group.name, &group.text())),
        Err(error) => fact("totals", &format!("unknown: {error}")),
    }
    if !redact {
        for detail in &info.details {
            if let Some(text) = &detail.text {
                fact(&detail.key.replace('_', " "), text);
            }
        }
    }
    if let Some(sha256) = &provenance.source_sha256 {
        fact("SHA-256", sha256);
    }
    page.push_str("</table>\n");
}

/// Writes the findings about the flight, followed by the diagnostics of the log file.
fn problems(log: &AnyLog, remarks: &[findings::Remark], plot: &Plot, page: &mut Page) {
    let found = log.diagnostics();
    let lost = found.ledger();
    page.section("problems", "Problems", "Problems");
    if !remarks.is_empty() {
        page.push_str("<ul class=\"findings\">\n");
        for findings::Remark { is_severe, text, place } in remarks {
            let class = if *is_severe { "bad" } else { "warn" };
            let panel = plot.panels.iter().position(|panel| panel.title == *place);
            let id = match panel {
                Some(panel) => format!("panel-{panel}"),
                None if place.starts_with(char::is_uppercase) => "plots".to_owned(),
                None => (*place).to_owned(),
            };
            let text = escape(text);
            let _ = writeln!(page, "<li class=\"{class}\"><a href=\"#{id}\">{text}</a></li>");
        }
        page.push_str("</ul>\n");
    }
    if found.total() == 0 {
        let text = if remarks.is_empty() { "None found" } else { "The file itself is intact" };
        let _ = writeln!(page, "<p class=\"note\">{text}: every byte was read.</p>");
        return;
    }
    let _ = if lost.is_empty() {
        writeln!(page, "<p class=\"note\">Nothing was lost, but the file has these peculiarities:</p>")
    } else {
        writeln!(page, "<p class=\"bad\">{}.</p>", escape(&lost.to_string()))
    };
    page.push_str(
        "<div class=\"scroll\" tabindex=\"0\"><table>\n<tr><th>code</th><th>bytes</th><th>what</th></tr>\n",
    );
    for problem in found.list().iter().take(MAX_ROWS) {
        let class = if problem.rule.severity >= Severity::LeftOut { "bad" } else { "note" };
        let _ = writeln!(
            page,
            "<tr class=\"{class}\"><td>{}</td><td>{}..{}</td><td>{}</td></tr>",
            problem.rule.code,
            problem.range.start,
            problem.range.end,
            escape(&problem.message)
        );
    }
    page.push_str("</table></div>\n");
    let shown = found.list().len().min(MAX_ROWS) as u64;
    note_omitted_rows(found.total().saturating_sub(shown), "rovelog check", page);
}

/// Writes how many rows a table omits, and the command that lists all rows.
fn note_omitted_rows(rows: u64, command: &str, page: &mut Page) {
    if rows > 0 {
        let rows = count(rows, "more row");
        let _ = writeln!(page, "<p class=\"note\">{rows}: {command}</p>");
    }
}

/// Writes the message types with their topics. The type with the most messages comes first.
fn types(log: &AnyLog, page: &mut Page) {
    let mut types: BTreeMap<&str, (u64, Vec<&str>)> = BTreeMap::new();
    for topic in log.topics().iter().filter(|topic| topic.count > 0) {
        let entry = types.entry(&topic.type_name).or_default();
        entry.0 += topic.count;
        entry.1.push(&topic.name);
    }
    // Types with the same number of messages are sorted by name, so that the page is reproducible.
    let mut types: Vec<_> = types.into_iter().collect();
    types.sort_by_key(|(name, (records, _))| (Reverse(*records), *name));
    let more = types.len().saturating_sub(MAX_ROWS);
    page.section("types", "Types", "Message types");
    page.push_str("<table>\n<tr><th>type</th><th class=\"n\">messages</th><th>topics</th></tr>\n");
    for (name, (records, topics)) in types.into_iter().take(MAX_ROWS) {
        let (name, topics) = (escape(name), topics.join(", "));
        let _ = writeln!(
            page,
            "<tr><td>{name}</td><td class=\"n\">{records}</td><td>{}</td></tr>",
            escape(&topics)
        );
    }
    page.push_str("</table>\n");
    note_omitted_rows(more as u64, "rovelog topics", page);
}

/// Writes the section with the plots.
fn plots(plot: &Plot, page: &mut Page) {
    page.section("plots", "Plots", "Plots");
    if plot.panels.is_empty() {
        page.push_str("<p class=\"note\">The log has nothing that can be drawn.</p>\n");
        return;
    }
    page.charts(plot);
}

/// Writes the section with the table of topics.
fn topics(log: &AnyLog, page: &mut Page) {
    let shown = log.topics().iter().filter(|topic| topic.count > 0).count();
    page.section("topics", "Topics", &format!("Topics ({shown})"));
    page.push_str(
        "<div class=\"scroll\" tabindex=\"0\"><table>\n<tr><th>topic</th><th>type</th>\
         <th class=\"n\">records</th><th class=\"n\">Hz</th><th class=\"n\">bytes</th></tr>\n",
    );
    for topic in log.topics().iter().filter(|topic| topic.count > 0) {
        let rate = topic.rate_hz().map_or_else(String::new, |rate| format!("{rate:.1}"));
        let (name, ty) = (escape(&topic.name), escape(&topic.type_name));
        let _ = writeln!(
            page,
            "<tr><td>{name}</td><td>{ty}</td><td class=\"n\">{}</td><td class=\"n\">{rate}</td><td class=\"n\">{}</td></tr>",
            topic.count, topic.bytes
        );
    }
    page.push_str("</table></div>\n");
}

/// Writes the section with the console lines. Times are in seconds since `zero`. `scrub` removes
/// positions and everything that identifies the vehicle from the lines.
fn console(log: &AnyLog, zero: i64, scrub: Option<&Scrub<'_>>, page: &mut Page) {
    page.section("console", "Console", "Console");
    let mut texts = log.texts().into_iter().flatten();
    let lines: Vec<_> = texts.by_ref().take(MAX_ROWS).collect();
    let more = texts.count();
    if lines.is_empty() {
        page.push_str("<p class=\"note\">The log has no console lines.</p>\n");
        return;
    }
    // The only console line of an RLD log is its comment, which can contain anything.
    if scrub.is_some() && matches!(log, AnyLog::Rld(_)) {
        page.push_str("<p class=\"note\">The comment is left out.</p>\n");
        return;
    }
    let text = |text: &str| scrub.map_or_else(|| text.to_owned(), |scrub| scrub.redact(text));
    page.push_str(
        "<div class=\"scroll\" tabindex=\"0\"><table>\n<tr><th>s</th><th>level</th><th>text</th></tr>\n",
    );
    for line in lines {
        let class = match line.level {
            0..=3 => "bad",
            4 => "warn",
            _ => "note",
        };
        let time = line.time.map(|time| seconds_since(time, zero));
        let source = line.source.as_ref().map(|source| format!("{}: ", text(source))).unwrap_or_default();
        let _ = writeln!(
            page,
            "<tr class=\"{class}\"><td class=\"n\">{}</td><td>{}</td><td>{}{}</td></tr>",
            time.unwrap_or_default(),
            line.level_name(),
            escape(&source),
            escape(&text(&line.text))
        );
    }
    page.push_str("</table></div>\n");
    note_omitted_rows(more as u64, "rovelog messages", page);
}

/// Writes the section with the parameters and their changes. Times are in seconds since `zero`, as
/// in the console and the plots.
fn parameters(parameters: &rovelog::ulog_format::Parameters, zero: i64, page: &mut Page) {
    if parameters.initial.is_empty() && parameters.changed.is_empty() {
        return;
    }
    let text = |value: &rovelog::Value| escape(value.to_json().trim_matches('"')).into_owned();
    let default =
        |name: &str| parameters.setup_defaults.get(name).or_else(|| parameters.system_defaults.get(name));
    let known = !parameters.setup_defaults.is_empty() || !parameters.system_defaults.is_empty();
    page.section("parameters", "Parameters", "Parameters");
    let _ = writeln!(
        page,
        "<p class=\"note\">{}, {} in the log{}.</p>",
        count(parameters.initial.len(), "parameter"),
        count(parameters.changed.len(), "change"),
        if known { "; those that are not at their default come first" } else { "" }
    );
    page.push_str("<div class=\"scroll\" tabindex=\"0\"><table>\n<tr><th>name</th><th>value</th><th>default</th></tr>\n");
    // A log has about a thousand parameters. The parameters that differ from their default tell
    // most about the vehicle, so they come first.
    let (other, usual): (Vec<_>, Vec<_>) = parameters
        .initial
        .iter()
        .partition(|(name, value)| default(name).is_some_and(|default| default != *value));
    for (name, value) in other.into_iter().chain(usual) {
        let default = default(name).map(text).unwrap_or_default();
        let _ =
            writeln!(page, "<tr><td>{}</td><td>{}</td><td>{default}</td></tr>", escape(name), text(value));
    }
    page.push_str("</table></div>\n");
    if parameters.changed.is_empty() {
        return;
    }
    page.push_str(
        "<h2>Changes of parameters</h2>\n<table>\n<tr><th>s</th><th>name</th><th>value</th></tr>\n",
    );
    for change in parameters.changed.iter().take(MAX_ROWS) {
        let time = change.time.map(|time| seconds_since(time, zero)).unwrap_or_default();
        let _ = writeln!(
            page,
            "<tr><td class=\"n\">{time}</td><td>{}</td><td>{}</td></tr>",
            escape(&change.name),
            text(&change.value)
        );
    }
    page.push_str("</table>\n");
    let more = parameters.changed.len().saturating_sub(MAX_ROWS);
    note_omitted_rows(more as u64, "rovelog params", page);
}

/// Formats a time as seconds since `zero`. `zero` is in nanoseconds of the log's clock.
fn seconds_since(time: Timestamp, zero: i64) -> String {
    format!("{:.3}", time.nanos.wrapping_sub(zero) as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use rovelog::ReadOptions;

    use super::*;

    /// Returns a flight log that starts 100 s after boot. The log has `lines` console lines 1 s
    /// after its start, and the change of a parameter 2 s after its start.
    fn flight(lines: u64) -> AnyLog {
        let mut log = b"ULog\x01\x12\x35\x01".to_vec();
        log.extend(100_000_000_u64.to_le_bytes());
        let mut message = |kind: u8, payload: &[u8]| {
            log.extend(u16::try_from(payload.len()).unwrap().to_le_bytes());
            log.push(kind);
            log.extend(payload);
        };
        let parameter = [b"\x09int32_t P".as_slice(), &7_i32.to_le_bytes()].concat();
        message(b'P', &parameter);
        message(b'F', b"t:uint64_t timestamp;");
        message(b'A', b"\0\0\0t");
        message(b'D', &[b"\0\0".as_slice(), &100_000_000_u64.to_le_bytes()].concat());
        for _ in 0..lines {
            message(b'L', &[b"6".as_slice(), &101_000_000_u64.to_le_bytes(), b"line"].concat());
        }
        message(b'D', &[b"\0\0".as_slice(), &102_000_000_u64.to_le_bytes()].concat());
        message(b'P', &parameter);
        rovelog::from_bytes(log.into(), &ReadOptions::default()).unwrap()
    }

    fn page(log: &AnyLog) -> String {
        let mut page = Vec::new();
        write(log, &Provenance::new("log.ulg"), &ReportOptions::default(), &mut page).unwrap();
        String::from_utf8(page).unwrap()
    }

    #[test]
    fn omitted_console_lines_are_counted() {
        let rows = MAX_ROWS as u64;
        assert!(!page(&flight(rows)).contains("rovelog messages"));
        assert!(page(&flight(rows + 3)).contains("3 more rows: rovelog messages"));
    }

    #[test]
    fn all_times_of_a_report_count_from_its_start() {
        let page = page(&flight(1));
        assert!(page.contains("<td class=\"n\">1.000</td><td>info</td>"), "console");
        assert!(page.contains("<td class=\"n\">2.000</td><td>P</td>"), "parameters");
    }
}
