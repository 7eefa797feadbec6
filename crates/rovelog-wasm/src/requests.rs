//! Requests of the npm package, in addition to those of the page.

use rovelog::core::internal::parallel::Jobs;
use rovelog::{RecoverOptions, Select, Topic};
use rovelog_explore::{Explore, page};
use rovelog_export::mcap::{self, McapOptions};
use rovelog_export::table::{self, Kind, TableOptions};
use rovelog_export::{ExportError, Exported, Loss, Provenance, ndjson};
use serde_json::{Value, json};

use crate::columns;

/// Answer to a request.
#[derive(Debug, Default)]
pub struct Reply {
    /// Media type of `bytes`.
    pub media_type: &'static str,
    /// Content of the answer.
    pub bytes: Vec<u8>,
    /// Text for the user about data of the log that the content does not contain: what cannot be read
    /// or, in an export, what its format cannot represent.
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
pub fn answer(explore: &Explore, request: &str) -> Result<Reply, String> {
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
    let provenance = Provenance::new(explore.name());
    let exported = |error: ExportError| error.to_string();
    let mut bytes = Vec::new();
    // Messages about data that the answer does not contain, in addition to the data of the log that
    // cannot be read.
    let mut missing = Vec::new();
    let media_type = match kind {
        "facts" => document(&describe_log(explore), &mut bytes),
        "topics" => document(&log.topics().iter().map(describe_topic).collect(), &mut bytes),
        "columns" => {
            bytes = columns::of_topic(topic()?, &texts("field"))?;
            BYTES
        }
        "tables" => {
            bytes = columns::of_topics(log, &texts("topic"))?;
            BYTES
        }
        "records" => {
            let select = Select::topic(&topic()?.name);
            let written = ndjson::write(log, &select, Jobs::ONE, &mut bytes, &mut |_| ());
            missing.extend(written.map_err(exported)?.losses.iter().map(describe_loss));
            "application/x-ndjson"
        }
        "csv" => {
            let (out, table) = (vec![(topic()?.get(), &mut bytes)], (Kind::Csv, &TableOptions::default()));
            let written = table::write(log, out, &Select::all(), table, &provenance, &mut |_| ());
            missing.extend(written.map_err(exported)?.1.iter().map(describe_loss));
            "text/csv"
        }
        "mcap" => {
            let (all, options) = (Select::all(), McapOptions::default());
            let written = mcap::write(explore.log(), &all, &options, &provenance, &mut bytes, &mut |_| ());
            let Exported { losses, notes, .. } = written.map_err(exported)?;
            missing.extend(losses.iter().map(describe_loss).chain(notes));
            BYTES
        }
        "recover" => {
            let recovery = log.recover(&mut bytes, &RecoverOptions::default());
            let recovery = recovery.map_err(|error| error.to_string())?;
            missing.extend(recovery.left_out);
            BYTES
        }
        _ => {
            let answer = explore.answer(request).map_err(|error| error.to_string())?;
            bytes = answer.bytes;
            answer.media_type
        }
    };
    // Damage may be found only while the log is read.
    missing.splice(0..0, explore.losses());
    let note = (!missing.is_empty()).then(|| missing.join("; "));
    Ok(Reply { media_type, bytes, note })
}

/// Media type of an answer without a type of its own.
const BYTES: &str = "application/octet-stream";

/// Writes a JSON answer. Returns its media type.
fn document(value: &Value, out: &mut Vec<u8>) -> &'static str {
    out.extend_from_slice(value.to_string().as_bytes());
    "application/json"
}

fn describe_loss(loss: &Loss) -> String {
    let Loss { topic, column, why, .. } = loss;
    if column.is_empty() { format!("{topic}: {why}") } else { format!("{topic}, {column}: {why}") }
}

fn describe_log(explore: &Explore) -> Value {
    let log = explore.log();
    let info = log.info();
    let start = info.data_start();
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
    let value = match kind {
        "start" => page::start(&[], &[]),
        "groups" => {
            let names: Vec<_> = form_urlencoded::parse(query.as_bytes()).map(|(_, name)| name).collect();
            json!(rovelog::group_by_log(&names.iter().map(|name| &**name).collect::<Vec<_>>()))
        }
        _ => return Err("no log is open".to_owned()),
    };
    let mut bytes = Vec::new();
    let media_type = document(&value, &mut bytes);
    Ok(Reply { media_type, bytes, note: None })
}
