//! Converts rows to messages. A message contains a single row, a batch of several rows, or an
//! envelope: the minimum, mean and maximum of several rows.

use std::ops::Range;
use std::sync::Arc;

use rovelog::rld_format::RldReader;
use rovelog::rld_format::analysis::{Accumulator, Current, StatsOptions};
use rovelog::rld_format::clock::TimeMap;
use rovelog::rld_format::unit::{Scale, Unit};
use rovelog::{Field, FieldType, Scalar, Schema, Select};

use super::digital::range_bits;
use crate::ExportError;
use crate::mcap::proto::{bytes, double, uint, varint};

/// Kind of a message. Messages with the same time are written in the order of the kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Samples,
    Digital,
    Ambient,
}

/// Source of the values in a column of the messages. The numbers are indices in the result of the
/// accumulator.
enum Column {
    /// A range-valid flag, which states whether the value of a low-range current is valid.
    Valid(usize),
    /// An analog channel.
    Analog(usize, Scale),
    /// An electric current that is merged from its low and its high measuring range.
    Current(usize, Scale),
}

/// Converts rows to messages of one kind.
pub(super) struct Series<'a> {
    pub(super) reader: &'a RldReader,
    pub(super) kind: Kind,
    /// Mapping from rows to times.
    pub(super) times: &'a TimeMap,
    /// Computes the minimum, mean and maximum of several rows.
    sums: Accumulator<'a>,
    /// Number of rows in each message.
    pub(super) rows: u64,
    /// True if a message contains the values of all its rows. False if it contains their minimum,
    /// mean and maximum.
    pub(super) batch: bool,
    columns: Vec<Column>,
    pub(super) schema: Arc<Schema>,
}

impl<'a> Series<'a> {
    pub(super) fn new(
        reader: &'a RldReader,
        kind: Kind,
        rows: u64,
        batch: bool,
    ) -> Result<Self, ExportError> {
        let options = StatsOptions::default().with_powers(Vec::<String>::new());
        let sums = reader.accumulator(&options)?;
        let (mut columns, mut fields) = (Vec::new(), Vec::new());
        let is_unreduced = rows == 1 || batch;
        let field_type = |scalar| {
            let value = FieldType::Scalar(scalar);
            if batch { FieldType::List(Box::new(value)) } else { value }
        };
        let mut add = |column: Column, name: &str, unit: &str| {
            let (endings, scalar): (&[&str], _) = match column {
                Column::Valid(_) if is_unreduced => (&[""], Scalar::Bool),
                Column::Valid(_) => (&[""], Scalar::UInt32),
                _ if is_unreduced => (&[""], Scalar::Float64),
                _ => (&["_min", "_mean", "_max"], Scalar::Float64),
            };
            for ending in endings {
                fields.push(Field::new(format!("{name}{ending}"), field_type(scalar), "").with_unit(unit));
            }
            columns.push(column);
        };
        let channels = reader.channels();
        for (i, channel) in channels.iter().filter(|channel| !channel.is_binary).enumerate() {
            // Values without a physical unit are written as stored in the log.
            let (unit, scale) = match channel.physical() {
                Some(scale) => (suffix(channel.unit), Some(scale)),
                None => ("raw", Scale::new(0)),
            };
            let Some(scale) = scale else { continue };
            add(Column::Analog(i, scale), &named(&channel.name, unit), unit);
        }
        for (number, current) in sums.currents().iter().enumerate() {
            if let Some(scale) = Scale::new(current.scale).filter(|_| is_merged(current)) {
                add(Column::Current(number, scale), &named(&current.name, "A"), "A");
            }
        }
        let ranges = range_bits(channels);
        for (bit, channel) in channels.iter().enumerate().filter(|(bit, _)| ranges.contains(bit)) {
            add(Column::Valid(bit), &named(&channel.name, ""), "");
        }
        if batch {
            fields.push(Field::new("offset_ns", field_type(Scalar::Int64), "").with_unit("ns"));
        } else if rows > 1 {
            fields.push(Field::new("rows", FieldType::Scalar(Scalar::UInt32), ""));
        }
        let name = match kind {
            Kind::Ambient => "Ambient",
            _ if batch => "Batch",
            _ if rows > 1 => "Envelope",
            _ => "Samples",
        };
        let schema = Arc::new(Schema { name: name.to_owned(), fields });
        let times = reader.record_times();
        Ok(Self { reader, kind, times, sums, rows, batch, columns, schema })
    }

    /// Encodes the message for a range of rows.
    pub(super) fn message(&mut self, rows: Range<u64>) -> Vec<u8> {
        if self.batch {
            return self.batch_message(rows);
        }
        let sums = self.sums.stats(rows);
        let (mut out, mut number) = (Vec::new(), 0);
        let mut next = || {
            number += 1;
            number
        };
        for column in &self.columns {
            let (sums, scale) = match column {
                Column::Valid(bit) => {
                    uint(next(), sums.ones[*bit], &mut out);
                    continue;
                }
                Column::Analog(i, scale) => (&sums.channels[*i], *scale),
                Column::Current(i, scale) => (&sums.currents[*i], *scale),
            };
            let values = [sums.min(scale), sums.mean(scale), sums.max(scale)];
            // If a message has a single row, its minimum, mean and maximum are equal, so only one
            // of them is written.
            for value in &values[..if self.rows == 1 { 1 } else { 3 }] {
                // A value outside of the measuring range becomes NaN, so that plots show a gap.
                double(next(), value.unwrap_or(f64::NAN), &mut out);
            }
        }
        if self.rows > 1 {
            uint(next(), sums.rows, &mut out);
        }
        out
    }

    /// Encodes a message that has a list of values for each column. The last list has the time of
    /// each row in nanoseconds since the first row.
    fn batch_message(&mut self, rows: Range<u64>) -> Vec<u8> {
        let mut lists = vec![Vec::new(); self.columns.len()];
        let mut offsets = Vec::new();
        let start = self.times.time(rows.start);
        for row in rows {
            let offset = self.times.time(row).zip(start).map_or(0, |(time, start)| time.wrapping_sub(start));
            varint(offset.cast_unsigned(), &mut offsets);
            let sums = self.sums.stats(row..row + 1);
            for (column, list) in self.columns.iter().zip(&mut lists) {
                let value = match column {
                    Column::Valid(bit) => {
                        varint(sums.ones[*bit], list);
                        continue;
                    }
                    Column::Analog(i, scale) => sums.channels[*i].mean(*scale),
                    Column::Current(i, scale) => sums.currents[*i].mean(*scale),
                };
                list.extend_from_slice(&value.unwrap_or(f64::NAN).to_le_bytes());
            }
        }
        let mut out = Vec::new();
        for (number, list) in (1..).zip(lists.iter().chain([&offsets])) {
            bytes(number, list, &mut out);
        }
        out
    }
}

/// Divides the selected rows into segments in which times do not decrease. If a message has several
/// rows, a segment also ends at each gap, so that no message spans a gap.
pub(super) fn segments(series: &Series<'_>, select: &Select) -> Vec<Range<u64>> {
    let mut found: Vec<Range<u64>> = Vec::new();
    for rows in series.reader.rows_selected(select) {
        let mut row = rows.start;
        while row < rows.end {
            let end = series.times.segment(row).map_or(rows.end, |segment| segment.end.min(rows.end));
            let grows = |before: u64| series.times.time(before) <= series.times.time(row);
            match found.last_mut() {
                Some(last) if series.rows == 1 && last.end == row && grows(row - 1) => last.end = end,
                _ => found.push(row..end),
            }
            row = end;
        }
    }
    found
}

/// Returns whether a current was measured in a low and a high range.
fn is_merged(current: &Current) -> bool {
    current.low.is_some() && current.high.is_some()
}

/// Returns the field name for a channel, such as `v1_V` for `V1` in volts.
fn named(name: &str, unit: &str) -> String {
    let name = name.to_lowercase();
    if unit.is_empty() { name } else { format!("{name}_{unit}") }
}

/// Returns the symbol of a unit in a form that is valid in field names.
fn suffix(unit: Unit) -> &'static str {
    match unit {
        Unit::Percent => "percent",
        unit => unit.symbol(),
    }
}
