//! A log as one HTML page: overview, problems, track, zoomable plots, topics, console, parameters.
//! The page is one file that loads nothing from the network and opens offline. All but its plots
//! can be read without JavaScript.

mod map;
mod page;
mod panels;

use rovelog::core::text::count;
use std::fmt::Write as _;
use std::io::Write;

use base64::Engine as _;
use rovelog::{AnyLog, Severity, Timestamp};
use serde_json::json;

use self::page::Page;
use crate::plot::Panel;
use crate::xml::escape;
use crate::{ExportError, Provenance, TimeBase};
use panels::Span;

/// Maximum rows of a table.
const MOST_ROWS: usize = 5000;

/// Content of a report.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReportOptions {
    /// True to leave out the track, the parameters and identifying facts.
    pub redact: bool,
    /// Columns to which series are reduced: the resolution at maximum zoom.
    pub width: usize,
    /// Panels instead of the default panels of the format; seconds from the start of the log.
    pub panels: Option<Vec<Panel>>,
    /// Range of the log's clock that the panels show; `None` for all of it.
    pub shown: Option<(i64, i64)>,
}

impl Default for ReportOptions {
    fn default() -> Self {
        Self { redact: false, width: 2000, panels: None, shown: None }
    }
}

/// Returns the time range of a log that is shown: that of its data, or those of its topics.
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

/// Writes the page. The same log gives the same bytes.
///
/// # Errors
/// Returns an error if writing to the output fails, or the log cannot be read.
pub fn write(
    log: &AnyLog,
    provenance: &Provenance,
    options: &ReportOptions,
    mut out: impl Write,
) -> Result<(), ExportError> {
    let span = options.shown.or_else(|| span(log)).unwrap_or((0, 1));
    let panels = if let Some(panels) = &options.panels {
        panels.clone()
    } else {
        let at = Span { times: span, zero: span.0, width: options.width };
        panels::panels(&**log, at, options.redact)?
    };
    let mut page = Page::default();
    overview(log, provenance, options.redact, &mut page);
    problems(log, &mut page);
    if !options.redact {
        map::section(log, &mut page);
    }
    plots(&panels, &mut page);
    topics(log, &mut page);
    console(log, span.0, &mut page);
    if let (AnyLog::Ulog(reader), false) = (log, options.redact) {
        parameters(&reader.parameters(), &mut page);
    }
    foot(log, span, &panels, &mut page);
    out.write_all(head(provenance, &page.sections).as_bytes())?;
    Ok(out.write_all(page.text.as_bytes())?)
}

fn head(provenance: &Provenance, sections: &[(&str, &str)]) -> String {
    let name = escape(&provenance.source_name);
    let links = sections.iter().map(|(id, link)| format!("<a href=\"#{id}\">{link}</a>"));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta \
         http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'\">\n<meta name=\"viewport\" content=\"width=device-width\">\n<meta \
         name=\"generator\" content=\"rovelog {}\">\n<title>{name}</title>\n<style>\n{}</style>\n</head>\n<body>\n\
         <h1>{name}</h1>\n<nav>{}</nav>\n",
        env!("CARGO_PKG_VERSION"),
        include_str!("report.css"),
        links.collect::<String>(),
    )
}

fn overview(log: &AnyLog, provenance: &Provenance, redact: bool, page: &mut Page) {
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
    let data = info.span();
    if let Some(start) = data.map(|data| data.0).or(info.start) {
        fact("start", &time(start));
    }
    if let Some(end) = data.map(|data| data.1).or(info.end) {
        fact("end", &time(end));
    }
    let seconds = |nanos| format!("{} s", rovelog::core::time::Seconds(nanos));
    if let Some(duration) = info.data_duration() {
        fact("duration", &seconds(duration));
    }
    for outside in info.outside() {
        let name = log.topics().get(outside.topic.index()).map_or("", |topic| topic.name.as_str());
        fact("not in the plots", &outside.sentence(name));
    }
    if let Some(utc) = &info.utc {
        fact("UTC", &format!("{}: {}", utc.rule, utc.evidence));
    }
    fact("records", &format!("{} on {}", info.records, count(log.topics().len(), "topic")));
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

fn problems(log: &AnyLog, page: &mut Page) {
    let found = log.diagnostics();
    let lost = found.ledger();
    page.section("problems", "Problems", "Problems");
    if found.total() == 0 {
        page.push_str("<p class=\"note\">None: every byte was read.</p>\n");
        return;
    }
    let _ = if lost.is_empty() {
        writeln!(page, "<p class=\"note\">Nothing was lost; what was noticed:</p>")
    } else {
        writeln!(page, "<p class=\"note\">{}.</p>", escape(&lost.to_string()))
    };
    page.push_str("<div class=\"scroll\"><table>\n<tr><th>code</th><th>bytes</th><th>what</th></tr>\n");
    for problem in found.list().iter().take(MOST_ROWS) {
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
}

fn plots(panels: &[Panel], page: &mut Page) {
    page.section("plots", "Plots", "Plots");
    if panels.is_empty() {
        page.push_str("<p class=\"note\">Nothing that can be drawn.</p>\n");
        return;
    }
    page.push_str(
        "<p class=\"note\">Seconds from the start of the log, or <label><input type=\"checkbox\" id=\"utc\"> in \
         UTC</label>. Drag across a plot to look closer, double-click for all of it; with the wheel while shift or \
         ctrl is held; keys + - f and the arrows.</p>\n<noscript><p class=\"note\">The plots need JavaScript; everything else does not.</p></noscript>\n",
    );
    for (i, panel) in panels.iter().enumerate() {
        let unit = panel.unit().map(|unit| format!(" [{}]", escape(unit))).unwrap_or_default();
        let _ = write!(page, "<figure data-panel=\"{i}\"><figcaption><b>{}{unit}</b>", escape(&panel.title));
        for (series, [r, g, b]) in panel.series.iter().zip(crate::plot::LINES.iter().cycle()) {
            let name = escape(&series.name);
            let _ = write!(
                page,
                "<span><i style=\"background:#{r:02x}{g:02x}{b:02x}\"></i>{name}<em></em></span>"
            );
        }
        let label = escape(&panel.title);
        let _ = writeln!(
            page,
            "</figcaption><canvas tabindex=\"0\" role=\"img\" aria-label=\"{label}\"></canvas></figure>"
        );
    }
}

fn topics(log: &AnyLog, page: &mut Page) {
    page.section("topics", "Topics", "Topics");
    page.push_str(
        "<div class=\"scroll\"><table>\n<tr><th>topic</th><th>type</th>\
         <th>records</th><th>Hz</th><th>bytes</th></tr>\n",
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

fn console(log: &AnyLog, zero: i64, page: &mut Page) {
    page.section("console", "Console", "Console");
    let lines: Vec<_> = log.texts().into_iter().flatten().take(MOST_ROWS).collect();
    if lines.is_empty() {
        page.push_str("<p class=\"note\">The log has no console lines.</p>\n");
        return;
    }
    page.push_str("<div class=\"scroll\"><table>\n<tr><th>s</th><th>level</th><th>text</th></tr>\n");
    for line in lines {
        let class = match line.level {
            0..=3 => "bad",
            4 => "warn",
            _ => "note",
        };
        let time = line.time.map(|time| format!("{:.3}", time.nanos.wrapping_sub(zero) as f64 / 1e9));
        let source = line.source.as_ref().map(|source| format!("{}: ", escape(source))).unwrap_or_default();
        let _ = writeln!(
            page,
            "<tr class=\"{class}\"><td class=\"n\">{}</td><td>{}</td><td>{source}{}</td></tr>",
            time.unwrap_or_default(),
            line.level_name(),
            escape(&line.text)
        );
    }
    page.push_str("</table></div>\n");
}

fn parameters(parameters: &rovelog::ulog_format::Parameters, page: &mut Page) {
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
    page.push_str("<div class=\"scroll\"><table>\n<tr><th>name</th><th>value</th><th>default</th></tr>\n");
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
    for change in parameters.changed.iter().take(MOST_ROWS) {
        let time = change.time.map(|time| time.seconds().to_string()).unwrap_or_default();
        let _ = writeln!(
            page,
            "<tr><td class=\"n\">{time}</td><td>{}</td><td>{}</td></tr>",
            escape(&change.name),
            text(&change.value)
        );
    }
    page.push_str("</table>\n");
}

/// Writes the data of the plots and the script that draws them.
fn foot(log: &AnyLog, span: (i64, i64), panels: &[Panel], page: &mut Page) {
    let base64 = |bytes: Vec<u8>| base64::engine::general_purpose::STANDARD.encode(bytes);
    // A single late record would compress all lines: the plots start and end where lines do.
    let length = (span.1.saturating_sub(span.0)).max(1) as f64 / 1e9;
    let times = || panels.iter().flat_map(|panel| &panel.series).flat_map(|series| &series.points);
    let drawn = times().fold((length, 0.0), |(from, to), (time, _)| (time.min(from), time.max(to)));
    let drawn = if drawn.0 < drawn.1 { drawn } else { (0.0, length) };
    let series = |series: &crate::plot::Series| {
        let times = series.points.iter().flat_map(|(time, _)| time.to_le_bytes()).collect();
        #[expect(clippy::cast_possible_truncation, reason = "what a screen can show")]
        let values = series.points.iter().flat_map(|(_, value)| (*value as f32).to_le_bytes()).collect();
        json!({"name": series.name, "t": base64(times), "v": base64(values)})
    };
    let panels: Vec<_> = panels
        .iter()
        .map(|panel| json!({"series": panel.series.iter().map(series).collect::<Vec<_>>()}))
        .collect();
    let unix = match TimeBase::of(&**log) {
        base @ TimeBase::Utc(_) => base.place(span.0).map(|nanos| nanos as f64 / 1e6),
        TimeBase::Own(_) => None,
    };
    let data = json!({"span": drawn, "unix_ms": unix, "panels": panels});
    // `<` could end the script early.
    let data = data.to_string().replace('<', "\\u003c");
    let _ = write!(
        page,
        "<script type=\"application/json\" id=\"data\">{data}</script>\n<script>\n{}</script>\n</body>\n</html>\n",
        include_str!("report.js")
    );
}
