//! A worker's task: the logs of a pack as staged Parquet files, and a row for each log.

use std::path::Path;
use std::sync::Arc;

use rovelog::Select;
use serde::{Deserialize, Serialize};

use super::logs::{LogRow, Status};
use super::member::{Member, Pack};
use super::tables::{Staged, Tables};
use super::{events, logs};
use crate::error::Blame;
use crate::rows::Rows;
use crate::{ScaleError, Wanted};

/// What a worker has made of a pack.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Packed {
    /// The pack.
    pub id: String,
    pub(crate) files: Vec<Staged>,
    /// A row for each log.
    pub logs: Vec<LogRow>,
}

/// Writes the rows of a pack's logs to new files in the folder `staging`. A log that is damaged so
/// that it cannot be opened is a row with an error.
///
/// # Errors
/// Returns an error if a file cannot be written, a log cannot be read now, has changed, or fails in
/// the middle: then the pack has to be divided.
pub fn write(pack: &Pack, staging: &Path) -> Result<Packed, ScaleError> {
    let mut tables = Tables::new(staging);
    let mut rows = Vec::new();
    for member in &pack.logs {
        rows.push(add(&mut tables, member, &pack.id)?);
    }
    Ok(Packed { id: pack.id.clone(), files: tables.finish()?, logs: rows })
}

fn add(tables: &mut Tables, member: &Member, pack: &str) -> Result<LogRow, ScaleError> {
    let uri = &member.log.uri;
    let log = match member.log.open() {
        Ok(log) => log,
        Err(error) if error.blame() == Blame::Log => {
            return Ok(LogRow::failed(member, pack, error.to_string()));
        }
        Err(error) => return Err(error),
    };
    let mut row = LogRow::of(member, pack, &log);
    let month = row.month();
    let (id, everything) = (Arc::from(member.id()), Wanted::default());
    // Without a filter of times every log has a window.
    let Some(window) = everything.window(&*log) else { return Ok(row) };
    let mut topics = Vec::new();
    topics.resize_with(log.topics().len(), || None);
    for item in log.batches(&Select::all()) {
        let (topic, batch) = item.map_err(ScaleError::batch(uri))?;
        let rows = match &mut topics[topic.index()] {
            Some(rows) => rows,
            empty => {
                let known = &log.topics()[topic.index()];
                let rows = Rows::new(&*log, known, (&id, window, false), None);
                empty.insert(rows.map_err(ScaleError::batch(uri))?)
            }
        };
        let batch = rows.convert(&batch).map_err(ScaleError::batch(uri))?;
        tables.write(log.format().id, rows.topic(), &month, &batch)?;
    }
    row.lost_values = topics.iter().flatten().map(|rows| rows.lost).sum();
    let without_columns = log.topics().iter().filter(|topic| topic.schema.is_none());
    let undecodable = log.undecodable(&Select::all()).into_iter().map(|(_, records)| records);
    row.lost_records = without_columns.map(|topic| topic.count).chain(undecodable).sum();
    if row.lost_values + row.lost_records > 0 && row.status == Status::Ok {
        row.status = Status::Partial;
    }
    events::texts(&log, member.id(), &mut |batch| tables.write("", "_text", &month, batch))?;
    if let Some(batch) = events::of(&log, member.id())? {
        tables.write("", "_events", &month, &batch)?;
    }
    // Rows of a file that has changed meanwhile are of no log.
    member.log.verify()?;
    logs::describe(&mut row, &log);
    Ok(row)
}
