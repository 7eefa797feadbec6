//! Computes statistics of all fields of a log in one pass.
//!
//! Most topics are computed from their columns (`columns`). The other topics are computed from their
//! records (`records`).

mod columns;
mod number;
mod records;
mod running;

use rovelog::core::health::Pace;
use rovelog::core::internal::parallel::Jobs;
use rovelog::{Error, ErrorKind, LogReader, Select, Topic};

use crate::{ExportError, Loss, leaf};

pub use number::{Number, short};
pub use running::Statistics;

/// Flat name and statistics of each field of a topic. The fields are in the order of the schema. If
/// the topic has lists of variable length, they are in the order in which they first occurred.
pub type FieldStatistics = Vec<(String, Statistics)>;

/// Statistics of the selected records of a log.
#[derive(Debug, Default)]
pub struct LogStatistics {
    /// Statistics of each topic, by the index of the topic.
    pub fields: Vec<FieldStatistics>,
    /// Times of the topics for which they were read, by the index of the topic. The list is empty if
    /// no times were read.
    pub paces: Vec<Option<Pace>>,
    /// Records that cannot be decoded.
    pub losses: Vec<Loss>,
}

/// Function that is called with the approximate number of bytes of the log that are finished.
pub type Progress<'a> = dyn Fn(u64) + 'a;

/// Returns the statistics of all numeric fields in the selected records. Records that cannot be
/// decoded are skipped.
///
/// If `select.fields` is set, fields that are not selected may be missing in the result.
///
/// # Errors
/// Returns an error if a record cannot be read, or the topics have more than a million fields.
pub fn statistics(
    log: &dyn LogReader,
    select: &Select,
    jobs: Jobs,
    progress: &Progress<'_>,
) -> Result<LogStatistics, ExportError> {
    let (mut fields, mut paces) = (vec![None; log.topics().len()], Vec::new());
    if count_fields(log, select)? <= MAX_COLUMNS {
        columns::add(log, select, jobs, progress, &mut fields, &mut paces)?;
    }
    let is_missing = |topic: &Topic| fields[topic.id.index()].is_none() && topic.count > 0;
    let mut losses = Vec::new();
    if log.topics().iter().any(|topic| is_missing(topic) && select.keeps_topic(topic)) {
        records::add(log, select, jobs, progress, &mut fields, &mut losses)?;
    }
    let fields = fields.into_iter().map(Option::unwrap_or_default).collect();
    Ok(LogStatistics { fields, paces, losses })
}

/// Maximum number of fields of all topics. The statistics of a field need some hundred bytes. Real
/// logs have tens of thousands of fields.
const MAX_FIELDS: usize = 1_000_000;

/// Maximum number of fields of all topics for statistics from columns. A column needs several times
/// the memory of the statistics of its field.
const MAX_COLUMNS: usize = 20_000;

/// Returns the number of fields of all selected topics. An array of three numbers counts as three.
///
/// # Errors
/// Returns an error if there are more than [`MAX_FIELDS`]. A malicious log of 20 MB may declare a
/// hundred million fields.
fn count_fields(log: &dyn LogReader, select: &Select) -> rovelog::Result<usize> {
    let topics = log.topics().iter().filter(|topic| topic.count > 0 && select.keeps_topic(topic));
    let fields = topics.filter_map(|topic| topic.schema.as_deref()).map(|schema| leaf::count(schema, true));
    let fields = fields.fold(0, usize::saturating_add);
    if fields <= MAX_FIELDS {
        return Ok(fields);
    }
    let what = format!("the topics have {fields} fields, but statistics are limited to {MAX_FIELDS} fields");
    Err(Error::new("rovelog", ErrorKind::LimitExceeded, None, what)
        .with_next("select fewer topics: --topics NAME"))
}
