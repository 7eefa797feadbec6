//! Requests of the npm package, beside those of the page.

use rovelog::core::internal::parallel::Jobs;
use rovelog::{FORMATS, LogReader, RecoverOptions, Select, Topic};
use rovelog_explore::{Explore, page};
use rovelog_export::mcap::{self, McapOptions};
use rovelog_export::table::{self, Kind, TableOptions};
use rovelog_export::{ExportError, Loss, Provenance, ndjson};
use serde_json::{Value, json};

use crate::columns;

/// Answer to a request.
#[derive(Debug)]
pub struct Reply {
    /// Media type of `bytes`.
    pub media_type: &'static str,
    /// Content of the answer.
    pub bytes: Vec<u8>,
    /// Sentence for the user about data of the log that the content does not contain.
    pub note: Option<String>,
}

/// Answers a request. In addition to the requests of [`Explore::answer`], there are these:
///
/// | request | answer |
/// |---|---|
/// | `facts` | JSON: format, version, size, state, number of records, losses and start of the log |
/// | `topics` | JSON: name, type, number of records and rate of each topic |
/// | `columns?topic=T&field=F` | values of fields of a topic, see the module `columns` |
/// | `tables?topic=T&topic=U` | values of all fields of several topics; without a topic, of all |
/// | `records?topic=T` | a JSON object for each record, one per line |
/// | `csv?topic=T`, `mcap` | an export |
/// | `recover` | a copy of the log without its damaged parts |
///
/// Without a parameter `field`, `columns` contains all fields.
///
/// # Errors
/// Returns an error if the request is unknown or not valid for this log, or if the log cannot be
/// read.
pub fn answer(explore: &Explore, name: &str, request: &str) -> Result<Reply, String> {
    let (kind, query) = request.split_once('?').unwrap_or((request, ""));
    let log = &**explore.log();
    let texts = |wanted: &str| {
        let pairs = form_urlencoded::parse(query.as_bytes());
        pairs.filter(|(key, _)| key == wanted).map(|(_, value)| value.into_owned()).collect::<Vec<_>>()
    };
    let topic = || {
        let topics = texts("topic");
        let name = topics.first().ok_or("no topic".to_owned())?;
        log.topic(name).ok_or_else(|| format!("the log has no topic {name}"))
    };
    let exported = |error: ExportError| error.to_string();
    match kind {
        "facts" => Ok(document(&describe_log(explore))),
        "topics" => Ok(document(&log.topics().iter().map(describe_topic).collect())),
        "columns" => columns::of_topic(topic()?, &texts("field")).map(|bytes| Reply {
            media_type: BYTES,
            bytes,
            note: None,
        }),
        "tables" => {
            let bytes = columns::of_topics(log, &texts("topic"))?;
            Ok(Reply { media_type: BYTES, bytes, note: None })
        }
        "records" => {
            let mut lines = Vec::new();
            let select = Select::topic(&topic()?.name);
            let (_, losses) =
                ndjson::write(log, &select, Jobs::ONE, &mut lines, &mut |_| ()).map_err(exported)?;
            Ok(export("application/x-ndjson", lines, &losses))
        }
        "csv" => {
            let (out, table) = (vec![(topic()?.get(), Vec::new())], (Kind::Csv, &TableOptions::default()));
            let (written, losses) =
                table::write(log, out, &Select::all(), table, &Provenance::new(name), &mut |_| ())
                    .map_err(exported)?;
            let text = written.into_iter().flat_map(|table| table.out).collect();
            Ok(export("text/csv", text, &losses))
        }
        "mcap" => {
            let (select, options) = (Select::all(), McapOptions::default());
            let done = mcap::write(
                explore.log(),
                &select,
                &options,
                &Provenance::new(name),
                Vec::new(),
                &mut |_| (),
            )
            .map_err(exported)?;
            Ok(export(BYTES, done.out, &done.losses))
        }
        "recover" => recover(log),
        _ => {
            let answer = explore.answer(request).map_err(|error| error.to_string())?;
            Ok(Reply { media_type: answer.media_type, bytes: answer.bytes, note: explore.losses() })
        }
    }
}

/// Returns a copy of the log without its damaged parts. The note states what is missing in it.
fn recover(log: &dyn LogReader) -> Result<Reply, String> {
    let mut bytes = Vec::new();
    let recovery = log.recover(&mut bytes, &RecoverOptions::default()).map_err(|error| error.to_string())?;
    let mut missing = recovery.left_out.clone();
    if recovery.lost_bytes() > 0 {
        missing.push(format!("{} lost bytes", recovery.lost_bytes()));
    }
    if recovery.missing_records > 0 {
        missing.push(format!("{} missing records", recovery.missing_records));
    }
    let note = (!missing.is_empty()).then(|| missing.join("; "));
    Ok(Reply { media_type: BYTES, bytes, note })
}

/// Media type of an answer without a type of its own.
const BYTES: &str = "application/octet-stream";

/// Returns a JSON answer.
fn document(value: &Value) -> Reply {
    Reply { media_type: "application/json", bytes: value.to_string().into_bytes(), note: None }
}

/// Returns an answer whose note lists the losses of an export.
fn export(media_type: &'static str, bytes: Vec<u8>, losses: &[Loss]) -> Reply {
    let texts = losses.iter().map(|Loss { topic, column, why, .. }| match &**column {
        "" => format!("{topic}: {why}"),
        column => format!("{topic}, {column}: {why}"),
    });
    let note = texts.collect::<Vec<_>>().join("; ");
    Reply { media_type, bytes, note: (!note.is_empty()).then_some(note) }
}

fn describe_log(explore: &Explore) -> Value {
    let log = explore.log();
    let info = log.info();
    let start = info.span().map(|span| span.0).or(info.start);
    json!({
        "format": log.format().id,
        "formatName": log.format().name,
        "version": info.version,
        "size": info.size,
        "state": info.state.name(),
        "recordCount": info.records,
        "lost": explore.losses(),
        "start": start.and_then(|start| start.to_unix(info.utc.as_ref())).map(|time| time.nanos / 1_000_000),
    })
}

fn describe_topic(topic: &Topic) -> Value {
    json!({
        "name": topic.name,
        "type": topic.type_name,
        "count": topic.count,
        "rate_hz": topic.rate_hz(),
    })
}

/// Answers a request that concerns no log.
///
/// - `start` is the first request of the page; see [`page::start`]. JavaScript adds the logs.
/// - `groups?name=A&name=B` divides the names of files into logs. Each log is a list of positions
///   in the list of names. The first is the log, and the others are its companion files.
///
/// # Errors
/// Returns an error if the request is unknown.
pub fn answer_without_log(request: &str) -> Result<Reply, String> {
    let (kind, query) = request.split_once('?').unwrap_or((request, ""));
    match kind {
        "start" => Ok(document(&page::start(&[], &[]))),
        "groups" => {
            let names: Vec<String> =
                form_urlencoded::parse(query.as_bytes()).map(|(_, name)| name.into_owned()).collect();
            Ok(document(&json!(groups(&names))))
        }
        _ => Err("no log is open".to_owned()),
    }
}

/// Divides files into logs by their names. A file is a companion of a log if a format says so, and
/// if both are in the same folder.
fn groups(names: &[String]) -> Vec<Vec<usize>> {
    let at = |name: &str| names.iter().position(|known| known == name);
    let companions = |name: &str| {
        let (folder, file) = name.rsplit_once('/').map_or(("", name), |(folder, file)| (folder, file));
        let full =
            |other: &str| if folder.is_empty() { other.to_owned() } else { format!("{folder}/{other}") };
        let others = FORMATS
            .iter()
            .filter_map(|format| format.files)
            .flat_map(|files| (files.others)(file, &|other| at(&full(other)).is_some()));
        others.filter_map(|other| at(&full(&other))).collect::<Vec<usize>>()
    };
    let others: Vec<Vec<usize>> = names.iter().map(|name| companions(name)).collect();
    let is_log = |number: &usize| !others.iter().any(|others| others.contains(number));
    (0..names.len()).filter(is_log).map(|number| [vec![number], others[number].clone()].concat()).collect()
}
