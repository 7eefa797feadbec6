//! Evaluates signals in one pass over a log, in time order.

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use rovelog::core::select::field_path;
use rovelog::{LogReader, Select, Topic};

use super::cursor::Cursor;
use super::find::{Signal, label};
use super::join::{Base, JoinOptions, Joined, join};
use super::program::{Columns, Program};
use crate::ExportError;

/// Iterator over the values of signals, in batches.
///
/// The first topic that the signals use determines the times of the rows. Any other topic
/// contributes its last row at or before each of these times.
pub struct Stream<'a> {
    rows: Rows<'a>,
    programs: Vec<Program>,
}

/// Source of the rows.
enum Rows<'a> {
    /// Rows of a single topic, because the signals use no other topic.
    One(Cursor<'a>),
    /// Joined rows of several topics.
    Several(Joined<'a>),
}

impl<'a> Stream<'a> {
    /// Evaluates `signals` within the time range of `select`.
    ///
    /// # Errors
    /// Returns an error if the log has no such topic or field, or cannot be read.
    pub fn new(log: &'a dyn LogReader, signals: &[&Signal], select: &Select) -> Result<Self, ExportError> {
        let mut names: Vec<&str> = Vec::new();
        for name in signals.iter().flat_map(|signal| signal.topics()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let topic = |name: &&str| log.topic(name).map(rovelog::core::TopicRef::get);
        let topics: Vec<&'a Topic> = names.iter().filter_map(topic).collect();
        let missing = || ExportError::Format(format!("the log has no topic {}", names.join(", ")));
        let (first, others) = topics.split_first().ok_or_else(missing)?;
        let fields = signals.iter().flat_map(|signal| signal.fields()).map(field_path);
        let select = select.clone().with_fields(fields);
        let rows = if others.is_empty() {
            Rows::One(Cursor::new(log, first, &select)?)
        } else {
            Rows::Several(join(log, Base::Topic(first), others, &select, (JoinOptions::default(), &[]))?)
        };
        let schema = match &rows {
            Rows::One(cursor) => &cursor.schema,
            Rows::Several(joined) => joined.schema(),
        };
        let columns = Columns::of(schema);
        let programs = signals.iter().map(|signal| {
            // In a joined table, the names of columns start with the topic.
            let program = Program::new(signal, &columns, |operand| match &rows {
                Rows::One(_) => operand.field.clone(),
                Rows::Several(_) => format!("{}.{}", label(log, &operand.topic), operand.field),
            });
            program.ok_or_else(|| ExportError::Format(format!("the log has no signal {}", signal.name())))
        });
        let programs = programs.collect::<Result<_, _>>()?;
        Ok(Self { rows, programs })
    }
}

impl Iterator for Stream<'_> {
    /// The times of the next rows, and the values of each signal at these times. A missing value is
    /// NaN.
    type Item = Result<(Vec<i64>, Vec<Vec<f64>>), ExportError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = match &mut self.rows {
            Rows::One(cursor) => cursor.next()?,
            Rows::Several(joined) => joined.next()?,
        };
        let batch = match batch {
            Ok(batch) => batch,
            Err(error) => return Some(Err(error)),
        };
        let values = self.programs.iter_mut().map(|program| program.values(&batch)).collect();
        let times = batch.column(0).as_primitive::<Int64Type>().values().to_vec();
        Some(Ok((times, values)))
    }
}

/// Calls `visit` with the time and value of a signal for each row within the time range of
/// `select`, in time order. A missing value is NaN.
///
/// # Errors
/// Returns an error if the log has no such topic or field, or cannot be read.
pub fn each(
    log: &dyn LogReader,
    signal: &Signal,
    select: &Select,
    visit: &mut dyn FnMut(i64, f64),
) -> Result<(), ExportError> {
    for item in Stream::new(log, &[signal], select)? {
        let (times, values) = item?;
        times.iter().zip(&values[0]).for_each(|(time, value)| visit(*time, *value));
    }
    Ok(())
}
