//! The command `rovelog info`, which shows a summary of a log on one screen.

use std::fmt::Write as _;
use std::io::Write as _;

use rovelog::core::Outside;
use rovelog::{Clock, Ledger, LogInfo, State, Timestamp, Topic, Value};
use rovelog_export::signal::suggest;
use rovelog_export::text::plain;
use serde::Serialize;
use serde_json::Value as Json;

mod brief;

use self::brief::Brief;
use crate::commands::topics;
use crate::context::{Context, Format};
use crate::failure::{Failure, Outcome, Status};
use crate::input::{Input, LogArgs};
use crate::machine::{ClockDoc, Count, DetailsDoc, FormatDoc, LostDoc, OutsideDoc, ProblemDoc, TopicDoc};
use crate::output::Out;
use crate::survey::Survey;
use crate::text::{count, counts, escape, size, with_file};
use crate::times::Times;
use rovelog_export::duration_text;
use rovelog_export::findings::Severity;
use rovelog_export::totals::Group;

const MORE: &str = "\
The whole log is scanned once. Damaged logs are summarized, too. The records of logs of up to \
64 MiB are also decoded to find problems of the flight or the recording. With -v, this is done for \
logs of any size, and totals such as the flight time, the distance and the energy are shown.

Examples:
  rovelog info flight.ulg
  rovelog info flight.ulg --get duration_ns    one value, for scripts
  rovelog info flights/ --brief                one line for each log
  rovelog info flights/ -f csv > logs.csv";

/// Maximum number of topics that are listed because they have times far outside the time range of
/// all other records.
const MAX_OUTSIDE: usize = 5;

/// Size in bytes up to which a log is decoded to find problems. For a larger log, this would take
/// much longer than the rest of the summary.
const MAX_ANALYZED: u64 = 64 << 20;

/// Show a summary of a log: times, topics, rates, problems
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    #[command(flatten)]
    logs: LogArgs,
    /// Print one line for each log instead of a full summary
    #[arg(long, conflicts_with_all = ["get", "explain"])]
    brief: bool,
    /// Print only the value of this key of the JSON output, such as start, format.name or
    /// topics.imu/0.count
    #[arg(long, value_name = "KEY")]
    get: Option<String>,
    /// Also show which settings, such as units, were inferred from the data, and the evidence for
    /// each
    #[arg(long)]
    explain: bool,
}

/// The JSON document of `rovelog info`. Programs of users rely on it, so new keys may be added, but
/// existing keys never change.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    file: &'a str,
    format: FormatDoc<'a>,
    size: Count,
    state: &'static str,
    clock: ClockDoc<'a>,
    start_ns: Option<String>,
    end_ns: Option<String>,
    duration_ns: Option<String>,
    data_start_ns: Option<String>,
    data_end_ns: Option<String>,
    data_duration_ns: Option<String>,
    outside: Vec<OutsideDoc<'a>>,
    start: Option<String>,
    end: Option<String>,
    records: Count,
    /// True if `records` is a lower bound, because some parts of the log were not read.
    at_least: bool,
    unread: Count,
    topics: Vec<TopicDoc<'a>>,
    lost: LostDoc,
    problem_count: Count,
    problems: Vec<ProblemDoc<'a>>,
    details: DetailsDoc<'a>,
    /// Present only with `-v`, because the records must be decoded.
    #[serde(skip_serializing_if = "Option::is_none")]
    totals: Option<&'a [Group]>,
}

impl<'a> Document<'a> {
    fn new(file: &'a str, survey: &'a Survey) -> Result<Self, Failure> {
        let info = &survey.info;
        let totals = survey.analysis.as_ref().and_then(|analysis| analysis.totals.as_ref()?.as_ref().ok());
        // The options for the format of times apply to text output only, so the defaults are used
        // here.
        let times = Times::new(info, crate::times::TimeArgs::default())?;
        Ok(Self {
            schema: "rovelog.info/2",
            file,
            format: FormatDoc::new(survey.format, info),
            size: Count(info.size),
            state: info.state.name(),
            clock: ClockDoc::new(info, &times),
            start_ns: info.start.map(|time| time.nanos.to_string()),
            end_ns: info.end.map(|time| time.nanos.to_string()),
            duration_ns: info.duration().map(|nanos| nanos.to_string()),
            data_start_ns: info.span().map(|(start, _)| start.nanos.to_string()),
            data_end_ns: info.span().map(|(_, end)| end.nanos.to_string()),
            data_duration_ns: info.data_duration().map(|nanos| nanos.to_string()),
            outside: survey.outside().map(OutsideDoc::new).collect(),
            start: times.machine(info.start),
            end: times.machine(info.end),
            records: Count(info.records),
            at_least: info.at_least,
            unread: Count(info.unread),
            topics: survey.topics.iter().map(TopicDoc::new).collect(),
            lost: LostDoc::new(&info.lost),
            problem_count: Count(info.problems),
            problems: survey.diagnostics.list().iter().map(ProblemDoc::new).collect(),
            details: DetailsDoc(&info.details),
            totals: totals.map(Vec::as_slice),
        })
    }
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json, Format::Ndjson, Format::Csv])?;
    let verbose = context.global.verbose;
    context.parts.suppress_headings();
    let mut table = Brief::table();
    let mut first = true;
    let status = args.logs.read_parallel(
        context,
        |input| match (format, args.brief) {
            (Format::Text | Format::Json | Format::Ndjson, false) if verbose => {
                Survey::analyzed(input, context, u64::MAX, true)
            }
            (Format::Text, false) => Survey::analyzed(input, context, MAX_ANALYZED, false),
            _ => Survey::new(input, context),
        },
        |input, survey| {
            let name = input.name();
            let mut out = context.out();
            let here = |failure: Failure| failure.at(&input.path);
            match format {
                _ if args.get.is_some() => {
                    let key = args.get.as_deref().unwrap_or_default();
                    writeln!(out, "{}", get(&name, &survey, key).map_err(here)?)?;
                }
                Format::Json => out.document(&Document::new(&name, &survey)?)?,
                Format::Ndjson => out.document_line(&Document::new(&name, &survey)?)?,
                Format::Csv => {
                    Brief::new(&name, &survey)?.csv(out, &mut first)?;
                    return Ok(Status::Done);
                }
                _ if args.brief => {
                    let times = context.times(&survey.info).map_err(here)?;
                    table.row(Brief::new(&name, &survey)?.row(&survey, &times));
                }
                _ => {
                    if !std::mem::take(&mut first) {
                        writeln!(out)?;
                    }
                    text(&mut out, input, &survey, context).map_err(here)?;
                    if args.explain {
                        explain(&mut out, &survey)?;
                    }
                }
            }
            out.flush()?;
            Ok(Status::Done)
        },
    )?;
    if args.brief && format == Format::Text {
        let mut out = context.out();
        table.write(&mut out)?;
        out.flush()?;
    }
    Ok(status)
}

/// Returns the value at `key`, which is a path of keys in the JSON document, separated by dots. A
/// list element is selected by its index, name or code. For example, `topics.imu/0.count` is the
/// number of records in the topic `imu/0`.
fn get(file: &str, survey: &Survey, key: &str) -> Result<String, Failure> {
    // The document is converted to text and parsed again. Converting it to a value directly would
    // change the digits of some numbers.
    let document: Json = serde_json::from_str(&serde_json::to_string(&Document::new(file, survey)?)?)?;
    let find = |from: &Json| -> Option<Json> {
        key.split('.').try_fold(from.clone(), |value, key| match value {
            Json::Object(mut fields) => fields.remove(key),
            Json::Array(items) => {
                let index = key.parse::<usize>().ok();
                let named = |item: &Json| ["name", "code"].iter().any(|by| item[by] == key);
                index
                    .and_then(|index| items.get(index))
                    .or_else(|| items.iter().find(|item| named(item)))
                    .cloned()
            }
            _ => None,
        })
    };
    match find(&document).or_else(|| find(&document["details"])) {
        Some(Json::Null) => Ok(String::new()),
        Some(Json::String(text)) => Ok(escape(&text).into_owned()),
        Some(value) => Ok(escape(&value.to_string()).into_owned()),
        None => {
            let keys =
                [&document, &document["details"]].map(|value| value.as_object().map(|fields| fields.keys()));
            let keys: Vec<_> = keys.into_iter().flatten().flatten().map(String::as_str).collect();
            let near = suggest(key, keys.into_iter(), "rovelog info -f json FILE");
            Err(Failure::usage(format!("the JSON output of info has no key {key}")).next(near))
        }
    }
}

fn text(out: &mut Out, input: &Input, survey: &Survey, context: &Context) -> Result<(), Failure> {
    let lines = lines(input, survey, context)?;
    let width = lines.iter().map(|(key, _)| key.len() + 3).fold(13, usize::max);
    for (key, text) in lines {
        let key = format!("{key}:");
        let blanks = " ".repeat(width - key.len());
        // If a value has several lines, the lines after the first are indented to the column of
        // values.
        let lines: Vec<_> = text.lines().map(escape).collect();
        let text = lines.join(&format!("\n{:width$}", ""));
        writeln!(out, "{}{blanks}{}", out.paint.bold(&key), text)?;
    }
    let shown = shown(survey, context);
    if !shown.is_empty() {
        writeln!(out)?;
        topics::table(&shown).write(out)?;
    }
    Ok(())
}

/// Prints the settings that were inferred while reading the log, each with its evidence. Prints a
/// note if nothing needs to be inferred in logs of this format.
fn explain(out: &mut Out, survey: &Survey) -> Result<(), Failure> {
    let choices = survey.info.details.iter().find(|detail| detail.key == "choices");
    let Some(Value::List(choices)) = choices.map(|detail| &detail.value) else {
        let name = survey.format.name;
        writeln!(out, "\nNothing was inferred, because {name} logs define all settings themselves.")?;
        return Ok(());
    };
    let word = |choice: &Value, key| choice.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let what = |choice| format!("{}:", word(choice, "what").replace('_', " "));
    let chosen = |choice| {
        let assumed = if is_assumed(choice) { " (assumed)" } else { "" };
        format!("{}{assumed}", escape(&word(choice, "choice")))
    };
    let what_width = choices.iter().map(|choice| what(choice).len()).max().unwrap_or_default();
    let chosen_width = choices.iter().map(|choice| chosen(choice).len()).max().unwrap_or_default();
    writeln!(out)?;
    for choice in choices {
        let (what, chosen, evidence) = (what(choice), chosen(choice), word(choice, "evidence"));
        let what = out.paint.bold(&format!("{what:what_width$}"));
        writeln!(out, "{what}  {chosen:chosen_width$}  {}", escape(&evidence))?;
    }
    Ok(())
}

/// Returns true if no data in the log confirms this inferred setting.
fn is_assumed(choice: &Value) -> bool {
    choice.get("assumed") == Some(&Value::Bool(true))
}

/// Returns the line `assumed` of the summary. It lists the inferred settings that no data in the
/// log confirms. Returns `None` if there are no such settings.
fn assumed(choices: &Value) -> Option<(&'static str, String)> {
    let Value::List(choices) = choices else { return None };
    let word =
        |choice: &Value, key| choice.get(key).and_then(Value::as_str).unwrap_or_default().replace('_', " ");
    let list = choices.iter().filter(|choice| is_assumed(choice));
    let list: Vec<_> =
        list.map(|choice| format!("{} {}", word(choice, "what"), word(choice, "choice"))).collect();
    (!list.is_empty()).then(|| ("assumed", format!("{} (see --explain)", list.join(", "))))
}

/// Returns the topics to list. Topics without records are listed only with `-v`.
fn shown<'a>(survey: &'a Survey, context: &Context) -> Vec<&'a Topic> {
    survey.topics.iter().filter(|topic| topic.count > 0 || context.global.verbose).collect()
}

/// Returns the lines of the summary as pairs of label and text. If a value is unknown, its line is
/// missing.
fn lines<'a>(
    input: &Input,
    survey: &'a Survey,
    context: &Context,
) -> Result<Vec<(&'a str, String)>, Failure> {
    let (info, verbose) = (&survey.info, context.global.verbose);
    let times = context.times(info)?;
    let exact = |bytes: u64| match size(bytes) {
        short if verbose && bytes >= 1000 => format!("{short} ({bytes} bytes)"),
        short => short,
    };
    let dialect = info.dialect.map(|dialect| format!(" ({dialect})")).unwrap_or_default();
    let mut lines = vec![
        ("file", input.name()),
        ("format", format!("{} {}{dialect}", survey.format.name, info.version)),
        ("size", exact(info.size)),
        ("state", state(info)),
        ("clock", clock(info, &times)),
    ];
    let point = |time| {
        let mut text = times.brief(time);
        if times.shows_utc() && times.clock != Clock::Unix {
            let _ = write!(text, "   ({} {} s)", times.clock, time.seconds());
        }
        match times.epoch(time) {
            Some(epoch) if verbose => format!("{text}   (epoch {epoch} s)"),
            _ => text,
        }
    };
    lines.extend(info.data_start().map(|start| ("start", point(start))));
    lines.extend(info.data_end().map(|end| ("end", point(end))));
    lines.extend(info.data_duration().map(|nanos| ("duration", duration_text(nanos))));
    lines.extend(outside(survey, &times).map(|text| ("stale times", text)));
    lines.push(("records", records(survey)));
    match survey.analysis.as_ref().and_then(|analysis| analysis.totals.as_ref()) {
        Some(Ok(groups)) => lines.extend(groups.iter().map(|group| (group.name.as_str(), group.text()))),
        Some(Err(error)) => lines.push(("totals", format!("unknown: {error}"))),
        None => {}
    }
    for detail in &info.details {
        match &detail.text {
            // `--explain` lists all inferred settings. The summary lists only those that no data in
            // the log confirms.
            Some(_) if detail.key == "choices" => lines.extend(assumed(&detail.value)),
            Some(text) => lines.push((detail.key, text.clone())),
            None if verbose => {
                let mut text = String::new();
                plain(&detail.value, &mut text);
                lines.push((detail.key, text));
            }
            None => {}
        }
    }
    lines.extend(findings(input, survey).map(|text| ("findings", text)));
    lines.push((
        "problems",
        match info.problems {
            0 => "none".to_owned(),
            n if input.is_stdin() => n.to_string(),
            n => format!("{n} ({})", with_file("rovelog check FILE", &input.path)),
        },
    ));
    Ok(lines)
}

/// Describes the number of records, for example `84201 on 37 topics; 2 more without records`.
fn records(survey: &Survey) -> String {
    let info = &survey.info;
    let used = survey.topics.iter().filter(|topic| topic.count > 0).count();
    let unused = survey.topics.len() - used;
    let bound = if info.at_least { "at least " } else { "" };
    let mut text = format!("{bound}{} on {}", info.records, count(used as u64, "topic"));
    if unused > 0 && !info.at_least {
        let _ = write!(text, "; {unused} more without records");
    }
    text
}

/// Describes the findings, for example `1 high, 2 low: attitude-failure, dropout`. The most severe
/// come first. Returns `None` for logs that are not analyzed because they are not local.
fn findings(input: &Input, survey: &Survey) -> Option<String> {
    let command = with_file("rovelog findings FILE", &input.path);
    let Some(analysis) = &survey.analysis else {
        let is_local = !input.is_stdin() && !input.is_remote();
        return is_local.then(|| format!("not looked for, because the log is large ({command})"));
    };
    let found = match &analysis.findings {
        Ok(found) => found,
        Err(error) => return Some(format!("unknown: {error}")),
    };
    let levels = [Severity::High, Severity::Medium, Severity::Low];
    let of = |level| found.iter().filter(move |finding| finding.severity == level);
    if found.is_empty() {
        return Some("none".to_owned());
    }
    let counts = counts(&levels.map(|level| (of(level).count(), level.name())));
    let mut kinds = Vec::new();
    for finding in levels.into_iter().flat_map(of) {
        if !kinds.contains(&finding.kind.id()) {
            kinds.push(finding.kind.id());
        }
    }
    Some(format!("{counts}: {} ({command})", kinds.join(", ")))
}

/// Returns a line for each topic with stale times, that is, times far outside the range of all
/// other records. The last line ends with the duration of the log including stale times.
fn outside(survey: &Survey, times: &Times) -> Option<String> {
    let (info, all) = (&survey.info, survey.outside().count());
    let shown = survey.outside().take(MAX_OUTSIDE);
    let line = |(topic, outside): (&str, &Outside)| {
        let (first, last) = (times.brief(outside.first), times.brief(outside.last));
        let at =
            if outside.first == outside.last { format!("at {first}") } else { format!("{first} to {last}") };
        let first = if outside.count > 1 { "first at " } else { "" };
        format!("{}: {at}, {first}byte {}", outside.sentence(topic), outside.offset)
    };
    let mut lines: Vec<_> = shown.map(line).collect();
    if all > MAX_OUTSIDE {
        lines.push(format!("and records of {}", count((all - MAX_OUTSIDE) as u64, "more topic")));
    }
    let (data, whole) = (info.data_duration()?, info.duration()?);
    if data != whole {
        let last = lines.last_mut()?;
        let _ = write!(last, " ({} with {})", duration_text(whole), if all == 1 { "it" } else { "them" });
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Describes how much of the log is readable, for example `truncated at byte 44761088, 118 bytes
/// not readable`.
fn state(info: &LogInfo) -> String {
    let Ledger { bytes, losses, ranges, missing_records, left_out_records } = &info.lost;
    let mut lost = format!("{} not readable", count(*bytes, "byte"));
    if *missing_records > 0 {
        lost = format!("{lost}, {} missing", count(*missing_records, "record"));
    }
    if *left_out_records > 0 {
        lost = format!("{lost}, {} left out", count(*left_out_records, "record"));
    }
    match (info.state, ranges.last()) {
        (State::NotChecked, _) => {
            let (unread, size) = (size(info.unread), size(info.size));
            format!("not checked, because {unread} of {size} were not read (--allow-remote-scan reads all)")
        }
        (State::Complete, _) if *left_out_records > 0 => {
            format!("complete, but {} left out", count(*left_out_records, "record"))
        }
        (State::Complete, _) => "complete".to_owned(),
        (State::Truncated, Some(cut)) if *losses == 1 => format!("truncated at byte {}, {lost}", cut.start),
        (State::Truncated | State::Damaged, None) => info.state.name().to_owned(),
        (state, _) => format!("{} in {}, {lost}", state.name(), count(*losses, "place")),
    }
}

/// Describes the clock of the log, for example `boot; UTC by gps: 240 fixes of
/// vehicle_gps_position/0 (offset 1779278199.687821 s)`.
fn clock(info: &LogInfo, times: &Times) -> String {
    if info.start.or(info.end).is_none() && info.utc.is_none() {
        return "unknown, because no record has a time".to_owned();
    }
    let mut text = times.clock.to_string();
    let Some(utc) = &info.utc else {
        text.push_str(if times.clock == Clock::Unix { " (UTC)" } else { "; the log has no UTC" });
        return text;
    };
    let _ = write!(text, "; UTC by {}", utc.rule);
    if !utc.evidence.is_empty() {
        let _ = write!(text, ": {}", utc.evidence);
    }
    if times.clock != Clock::Unix {
        let offset = Timestamp::new(utc.nanos, Clock::Unix).seconds();
        let _ = write!(text, " (offset {offset} s)");
    }
    text
}
