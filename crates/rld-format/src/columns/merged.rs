//! Columns of merged currents: one with the values, and one with the range from which each value
//! was taken.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::types::Int8Type;
use arrow_array::{ArrayRef, DictionaryArray, Float64Array, Int8Array, Int64Array, StringArray};
use arrow_schema::{DataType, Field};
use rovelog_core::Select;
use rovelog_core::internal::columns::metadata;

use super::options::{GROUP, Merging, Values};
use crate::analysis::{Current, Merger, Source, currents};
use crate::reader::RldReader;
use crate::schema::Channel;
use crate::unit::Scale;

/// Names of the sources of values, in the order of their dictionary keys.
const SOURCES: [&str; 3] = ["low", "high", "transition"];

/// Builds the two columns of a merged current: its values and their sources.
#[derive(Debug)]
pub(super) struct MergedColumn {
    current: Current,
    margin: u64,
    /// Scale that converts values to amperes. `None` if the column has raw values.
    scale: Option<Scale>,
    /// True if the column of values is selected.
    with_values: bool,
    /// True if the column of sources is selected.
    with_sources: bool,
}

impl MergedColumn {
    /// Returns a builder for each selected current of a log.
    pub(super) fn of(channels: &[Channel], select: &Select, merging: Merging, values: Values) -> Vec<Self> {
        let column = |current: Current| {
            let with_values = select.keeps_field(&current.name);
            let with_sources = with_values || select.keeps_field(&source_name(&current));
            let scale = Scale::new(current.scale).filter(|_| values == Values::Physical);
            let current = if merging.derived { current.deriving() } else { current };
            Self { current, margin: merging.margin, scale, with_values, with_sources }
        };
        currents(channels).into_iter().map(column).filter(|column| column.with_sources).collect()
    }

    /// Returns the Arrow fields of the selected columns. Values are in amperes, or raw values at
    /// the scale of the low channel.
    pub(super) fn fields(&self) -> Vec<Field> {
        let exponent = self.current.scale;
        let (data_type, unit) = match self.scale {
            Some(_) => (DataType::Float64, "A".to_owned()),
            None => (DataType::Int64, crate::unit::raw_unit(crate::unit::Unit::Ampere, exponent)),
        };
        let pairs = [
            ("rld.quantity", "current".to_owned()),
            ("rld.scale", exponent.to_string()),
            ("rld.unit", "A".to_owned()),
            ("unit", unit),
            ("rld.margin", self.margin.to_string()),
        ];
        let keys = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
        let value = Field::new(&self.current.name, data_type, true).with_metadata(metadata(pairs));
        let source = Field::new(source_name(&self.current), keys, true);
        let both = [self.with_values.then_some(value), self.with_sources.then_some(source)];
        both.into_iter().flatten().collect()
    }

    /// Returns the selected columns of the merged current, for the row numbers in `rows`.
    pub(super) fn arrays(&self, reader: &RldReader, merger: &mut Merger, rows: &Range<u64>) -> Vec<ArrayRef> {
        let count = usize::try_from(rows.end - rows.start).unwrap_or_default();
        let (mut values, mut sources) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for run in reader.runs(rows.clone(), GROUP) {
            merger.merge(reader, &self.current, self.margin, run, |source, value| {
                values.push((source != Source::Missing).then_some(value));
                sources.push(match source {
                    Source::Low => Some(0),
                    Source::High => Some(1),
                    Source::Transition => Some(2),
                    Source::Missing => None,
                });
            });
        }
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(2);
        if self.with_values {
            arrays.push(match self.scale {
                Some(scale) => {
                    let physical = values.iter().map(|value| value.map(|value| scale.apply(value)));
                    Arc::new(physical.collect::<Float64Array>())
                }
                None => Arc::new(Int64Array::from(values)),
            });
        }
        if self.with_sources {
            let names = Arc::new(StringArray::from(SOURCES.to_vec()));
            arrays.push(Arc::new(DictionaryArray::<Int8Type>::new(Int8Array::from(sources), names)));
        }
        arrays
    }
}

fn source_name(current: &Current) -> String {
    format!("{}_source", current.name)
}
