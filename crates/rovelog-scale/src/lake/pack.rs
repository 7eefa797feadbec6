//! The task of a worker. It writes the logs of a pack to Parquet files in the staging folder, and
//! returns a row of `_logs` for each log.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::path::Path;
use std::sync::Arc;

use rovelog::{Select, TopicId};
use rovelog_export::table::in_passes;
use serde::{Deserialize, Serialize};

use super::logs::{LogRow, Status};
use super::member::{Member, Pack};
use super::tables::{Staged, Tables};
use super::{events, logs};
use crate::rows::Rows;
use crate::types::Rules;
use crate::{ScaleError, Wanted};

/// Reason why a worker has not written the files of its pack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    /// A log cannot be read to its end, and another attempt would fail, too.
    Refused(String),
    /// A log cannot be read at present, but another attempt may succeed.
    Unread(String),
    /// The worker could not be started, or could not write files. The same failure is expected for
    /// all logs, so no more logs are added.
    Stopped(String),
    /// The worker ended without giving an answer. The task is tried again.
    Ended(String),
}

/// The files and rows that a worker has written for a pack.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Packed {
    /// Id of the pack.
    pub id: String,
    /// Parquet files in the staging folder.
    pub(crate) files: Vec<Staged>,
    /// Rows of `_logs`, one for each log of the pack.
    pub logs: Vec<LogRow>,
}

/// Writes the rows of all logs in a pack to new files in the folder `staging`. If a log is too
/// damaged to be opened, it only gets a row of `_logs` with the error.
///
/// # Errors
/// Returns an error in these cases. The logs must then be divided into smaller packs.
///
/// - A file cannot be written.
/// - A log cannot be read at present, or has changed.
/// - A log can be opened, but reading its records fails.
pub fn write(pack: &Pack, staging: &Path) -> Result<Packed, ScaleError> {
    let mut tables = Tables::new(staging);
    let mut rows = Vec::new();
    for member in &pack.logs {
        rows.push(add(&mut tables, member, &pack.id)?);
    }
    Ok(Packed { id: pack.id.clone(), files: tables.finish()?, logs: rows })
}

/// Writes the rows of a log to the files of its tables. Returns the row of the log for `_logs`.
fn add(tables: &mut Tables, member: &Member, pack: &str) -> Result<LogRow, ScaleError> {
    let uri = &member.log.uri;
    let log = match member.log.open() {
        Ok(log) => log,
        Err(error) => match error.failure() {
            Failure::Refused(why) => return Ok(LogRow::failed(member, pack, why)),
            _ => return Err(error),
        },
    };
    let mut row = LogRow::of(member, pack, &log);
    let month = row.month();
    let (id, everything) = (Arc::from(member.id()), Wanted::default());
    // The selection `everything` has no time window, so the function never returns here.
    let Some(window) = everything.window(&*log) else { return Ok(row) };
    for group in in_passes(log.topics().iter().filter(|topic| topic.count > 0), |topic| topic, false) {
        let select = Select::topics(group.iter().map(|topic| topic.name.as_str()));
        let ids: BTreeSet<TopicId> = group.iter().map(|topic| topic.id).collect();
        let mut topics: BTreeMap<TopicId, Rows> = BTreeMap::new();
        for item in log.batches(&select) {
            let (topic, batch) = item.map_err(ScaleError::batch(uri))?;
            // Several topics can have the same name, and the selection contains all of them. Topics
            // that are not in `ids` belong to another group, so they are skipped here.
            if !ids.contains(&topic) {
                continue;
            }
            let rows = match topics.entry(topic) {
                Entry::Occupied(rows) => rows.into_mut(),
                Entry::Vacant(empty) => {
                    let known = &log.topics()[topic.index()];
                    let rows = Rows::new(&*log, known, &id, window, Rules::default(), None, None);
                    empty.insert(rows.map_err(ScaleError::batch(uri))?)
                }
            };
            let batch = rows.convert(&batch).map_err(ScaleError::batch(uri))?;
            tables.write(log.format().id, rows.topic(), &month, &batch)?;
        }
        row.lost_values += topics.values().map(|rows| rows.lost).sum::<u64>();
    }
    let without_columns = log.topics().iter().filter(|topic| topic.schema.is_none());
    let undecodable = log.undecodable(&Select::all()).into_iter().map(|(_, records)| records);
    row.lost_records = without_columns.map(|topic| topic.count).chain(undecodable).sum();
    if row.lost_values + row.lost_records > 0 && row.status == Status::Ok {
        row.status = Status::Partial;
    }
    events::texts(&log, member.id(), &mut |batch| tables.write("", "_text", &month, batch))?;
    if let Some(batch) = events::events(&log, member.id())? {
        tables.write("", "_events", &month, &batch)?;
    }
    // If the file has changed while it was read, the rows may be a mixture of two versions. In this
    // case, the error causes all files of the pack to be discarded.
    member.log.verify()?;
    logs::describe(&mut row, &log);
    Ok(row)
}
