//! The files of a pack while they are written: one for each table, month and set of columns.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use parquet::errors::ParquetError;
use rovelog_export::ExportError;
use rovelog_export::table::{Floats, parquet_properties};
use serde::{Deserialize, Serialize};

use super::grouped::Grouped;
use super::member::short_hash;
use crate::ScaleError;

/// What open files may need of memory.
#[derive(Clone, Copy)]
struct Limits {
    /// Bytes of rows that all open files together hold before the largest row group is written.
    held: usize,
    /// Row groups after which a table is continued in another file: what describes them is in memory
    /// until the file is complete.
    groups: usize,
}

const LIMITS: Limits = Limits { held: 64 << 20, groups: 64 };

/// A file that is written, and where it belongs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Staged {
    /// Its place in the staging folder.
    pub(crate) path: PathBuf,
    /// The format of its logs; empty for tables of all formats.
    pub(crate) format: String,
    /// The topic without its instance.
    pub(crate) topic: String,
    /// `2026-05`, or `unknown`.
    pub(crate) month: String,
    /// Names and types of its columns.
    pub(crate) columns: Vec<(String, String)>,
    /// Files of the same table, month and columns before it.
    #[serde(default)]
    pub(crate) part: usize,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

impl Staged {
    /// Returns the name of the file in its table, in a pack: with the digits by which files with
    /// other columns differ.
    pub(crate) fn name(&self, pack: &str) -> String {
        let columns = short_hash(self.columns.iter().flat_map(|(name, ty)| [&**name, &**ty]));
        let part = if self.part == 0 { String::new() } else { format!(".{}", self.part + 1) };
        // Readers of a table know by the end of the name which files have the same columns.
        format!("{pack}{part}-{columns}.parquet")
    }
}

/// Returns whether a file is named as [`Staged::name`] does.
pub(crate) fn is_name(name: &str) -> bool {
    let is_hash = |text: &str| text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let Some((pack, columns)) = name.strip_suffix(".parquet").and_then(|stem| stem.split_once('-')) else {
        return false;
    };
    let (pack, part) = pack.split_once('.').unwrap_or((pack, "1"));
    is_hash(pack) && is_hash(columns) && part.parse::<usize>().is_ok()
}

/// Format, topic, month, and the columns.
type Key = (String, String, String, Vec<(String, String)>);

struct Open {
    path: PathBuf,
    part: usize,
    rows: Grouped,
}

/// The open files of a pack.
pub(crate) struct Tables {
    staging: PathBuf,
    limits: Limits,
    open: BTreeMap<Key, Open>,
    held: usize,
    /// Files that are complete, and how many of them each table has.
    staged: Vec<Staged>,
    parts: BTreeMap<Key, usize>,
}

impl Tables {
    pub(crate) fn new(staging: &Path) -> Self {
        let (staging, parts) = (staging.to_owned(), BTreeMap::new());
        Self { staging, limits: LIMITS, open: BTreeMap::new(), held: 0, staged: Vec::new(), parts }
    }

    /// Adds rows to the file of their table, month and columns.
    pub(crate) fn write(
        &mut self,
        format: &str,
        topic: &str,
        month: &str,
        batch: &RecordBatch,
    ) -> Result<(), ScaleError> {
        let schema = batch.schema();
        let key = (format.to_owned(), topic.to_owned(), month.to_owned(), columns(&schema));
        let number = self.open.len() + self.staged.len();
        let part = self.parts.get(&key).copied().unwrap_or(0);
        let open = match self.open.entry(key) {
            std::collections::btree_map::Entry::Occupied(open) => open.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => {
                fs::create_dir_all(&self.staging).map_err(ScaleError::lake(&self.staging))?;
                let path = self.staging.join(format!("{number}.parquet"));
                let file = File::create(&path).map_err(ScaleError::lake(&path))?;
                let properties = parquet_properties(topic, &schema, Floats::Plain)?.build();
                let rows = Grouped::new(file, &schema, properties).map_err(written(&path))?;
                place.insert(Open { path, part, rows })
            }
        };
        let before = open.rows.held();
        open.rows.add(batch).map_err(written(&open.path))?;
        self.held = (self.held + open.rows.held()).saturating_sub(before);
        if self.held > self.limits.held { self.relieve() } else { Ok(()) }
    }

    /// Writes the largest row group.
    fn relieve(&mut self) -> Result<(), ScaleError> {
        let Some((key, largest)) = self.open.iter_mut().max_by_key(|(_, open)| open.rows.held()) else {
            return Ok(());
        };
        self.held = self.held.saturating_sub(largest.rows.held());
        largest.rows.write_group().map_err(written(&largest.path))?;
        if largest.rows.groups() < self.limits.groups {
            return Ok(());
        }
        let key = key.clone();
        let Some(open) = self.open.remove(&key) else { return Ok(()) };
        self.parts.insert(key.clone(), open.part + 1);
        self.staged.push(complete(key, open)?);
        Ok(())
    }

    /// Ends all files. They are on the disk before the next step names them.
    pub(crate) fn finish(mut self) -> Result<Vec<Staged>, ScaleError> {
        for (key, open) in self.open {
            self.staged.push(complete(key, open)?);
        }
        Ok(self.staged)
    }
}

/// Ends a file.
fn complete((format, topic, month, columns): Key, open: Open) -> Result<Staged, ScaleError> {
    let Open { path, part, rows } = open;
    let count = rows.rows;
    let bytes = rows.finish().map_err(written(&path))?;
    Ok(Staged { path, format, topic, month, columns, part, rows: count, bytes })
}

/// Returns a converter of errors in writing a file.
fn written(path: &Path) -> impl Fn(ParquetError) -> ScaleError {
    move |error| match ExportError::from(error) {
        ExportError::Io(error) => ScaleError::lake(path)(error),
        error => ScaleError::Export(error),
    }
}

fn columns(schema: &Schema) -> Vec<(String, String)> {
    schema.fields().iter().map(|field| (field.name().clone(), field.data_type().to_string())).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::fs::File;
    use std::sync::Arc;

    use arrow_array::cast::AsArray as _;
    use arrow_array::types::Int64Type;
    use arrow_array::{ArrayRef, Int64Array, ListArray, RecordBatch};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    use super::{Limits, Tables};

    fn batch(numbers: std::ops::Range<i64>) -> RecordBatch {
        let lists = numbers.clone().map(|n| Some(vec![Some(n); 3]));
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists));
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers));
        RecordBatch::try_from_iter([("n", numbers), ("list", lists)]).unwrap()
    }

    /// With row groups and files as small as it gets, every row is in one of them once.
    #[test]
    fn a_long_table_is_in_several_files() {
        let folder = tempfile::tempdir().unwrap();
        let mut tables = Tables::new(folder.path());
        tables.limits = Limits { held: 20_000, groups: 2 };
        for at in 0..400_i64 {
            let topic = if at % 4 == 0 { "rare" } else { "often" };
            tables.write("ulog", topic, "2026-05", &batch(10 * at..10 * at + 10)).unwrap();
        }
        let staged = tables.finish().unwrap();
        let names: BTreeSet<_> = staged.iter().map(|file| (&file.topic, file.name("pack"))).collect();
        assert_eq!(names.len(), staged.len(), "each file has a name of its own");
        let mut found: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
        for file in &staged {
            let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&file.path).unwrap()).unwrap();
            assert!(reader.metadata().num_row_groups() <= 3, "two, and what is left");
            assert_eq!(reader.metadata().file_metadata().num_rows(), i64::try_from(file.rows).unwrap());
            let rows = found.entry(&file.topic).or_default();
            for batch in reader.build().unwrap() {
                let batch = batch.unwrap();
                let numbers = batch.column(0).as_primitive::<Int64Type>();
                for (row, number) in numbers.values().iter().enumerate() {
                    let list = batch.column(1).as_list::<i32>().value(row);
                    assert_eq!(list.as_primitive::<Int64Type>().values()[..], [*number; 3]);
                }
                rows.extend(numbers.values());
            }
        }
        assert!(staged.iter().any(|file| file.part > 2), "several files");
        for (topic, keeps) in [("rare", true), ("often", false)] {
            let expected: Vec<i64> = (0..4000).filter(|n| (n / 10 % 4 == 0) == keeps).collect();
            let mut rows = found.remove(topic).unwrap();
            rows.sort_unstable();
            assert_eq!(rows, expected, "{topic}");
        }
    }
}
