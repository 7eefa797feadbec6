//! Writes the Parquet files of a pack. Rows are written to the same file if their table, their
//! month and their columns are equal.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray as _;
use arrow_schema::Schema;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::errors::ParquetError;
use rovelog_export::ExportError;
use rovelog_export::table::{Floats, parquet_properties};
use serde::{Deserialize, Serialize};

use super::grouped::{FinishedFile, RowGroupWriter};
use super::member::short_hash;
use crate::ScaleError;

/// Limits on the memory that the open files of a pack use.
#[derive(Clone, Copy)]
struct Limits {
    /// Maximum total size in bytes of the rows that all open files keep in memory. Above this
    /// limit, the largest row group is written.
    held: usize,
    /// Maximum number of row groups in a file. The metadata of row groups is in memory until the
    /// file is complete. When the limit is reached, the rows of the table continue in another file.
    groups: usize,
}

const LIMITS: Limits = Limits { held: 64 << 20, groups: 64 };

/// A complete file in the staging folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Staged {
    /// Path of the file in the staging folder.
    pub(crate) path: PathBuf,
    /// Format id of the logs, such as `ulog`. Empty for the tables `_text` and `_events`, which
    /// contain rows of all formats.
    pub(crate) format: String,
    /// Name of the topic, without the number of its instance.
    pub(crate) topic: String,
    /// Month in which the logs start, for example `2026-05`, or `unknown`.
    pub(crate) month: String,
    /// Names and types of the columns in the file.
    pub(crate) columns: Vec<(String, String)>,
    /// Number that distinguishes files of the pack that have the same table, month and columns: the
    /// number of such files before, or a larger number if columns were widened.
    #[serde(default)]
    pub(crate) part: usize,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    /// SHA-256 of the file as hexadecimal digits.
    pub(crate) sha256: String,
}

impl Staged {
    /// Returns the name that the file gets in its table. The name consists of the id of the pack
    /// and a hash of the columns.
    pub(crate) fn name(&self, pack: &str) -> String {
        let columns = short_hash(self.columns.iter().flat_map(|(name, ty)| [&**name, &**ty]));
        let part = if self.part == 0 { String::new() } else { format!(".{}", self.part + 1) };
        // All files with the same columns have the same hash at the end of their names. Readers of
        // a table use this to group files.
        format!("{pack}{part}-{columns}.parquet")
    }
}

/// Returns `true` if `name` has the form of the names that [`Staged::name`] returns.
pub(crate) fn is_name(name: &str) -> bool {
    let is_hash = |text: &str| text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let Some((pack, columns)) = name.strip_suffix(".parquet").and_then(|stem| stem.split_once('-')) else {
        return false;
    };
    let (pack, part) = pack.split_once('.').unwrap_or((pack, "1"));
    is_hash(pack) && is_hash(columns) && part.parse::<usize>().is_ok()
}

/// Format, topic, month and columns of a file. Rows with the same key are written to the same file.
type FileKey = (String, String, String, Vec<(String, String)>);

/// A file to which rows are still added.
struct OpenFile {
    path: PathBuf,
    /// Number of earlier files in the pack with the same table, month and columns.
    part: usize,
    rows: RowGroupWriter,
}

/// The files of a pack that are being written.
pub(crate) struct Tables {
    /// Folder to which the files are written.
    staging: PathBuf,
    limits: Limits,
    open: BTreeMap<FileKey, OpenFile>,
    /// Total size in bytes of the rows that all open files keep in memory.
    held: usize,
    /// Files that are complete.
    staged: Vec<Staged>,
    /// Number of complete files for each combination of table, month and columns.
    parts: BTreeMap<FileKey, usize>,
}

impl Tables {
    pub(crate) fn new(staging: &Path) -> Self {
        let (staging, parts) = (staging.to_owned(), BTreeMap::new());
        Self { staging, limits: LIMITS, open: BTreeMap::new(), held: 0, staged: Vec::new(), parts }
    }

    /// Adds rows to the file for this combination of table, month and columns.
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
                let properties = parquet_properties(topic, &schema, Floats::Plain)?.build();
                let rows = RowGroupWriter::new(&path, &schema, properties).map_err(write_error(&path))?;
                place.insert(OpenFile { path, part, rows })
            }
        };
        let before = open.rows.held();
        open.rows.add(batch).map_err(write_error(&open.path))?;
        self.held = (self.held + open.rows.held()).saturating_sub(before);
        if self.held > self.limits.held { self.flush_largest() } else { Ok(()) }
    }

    /// Writes the largest row group to free memory. If the file then has the maximum number of row
    /// groups, the file is completed.
    fn flush_largest(&mut self) -> Result<(), ScaleError> {
        let Some((key, largest)) = self.open.iter_mut().max_by_key(|(_, open)| open.rows.held()) else {
            return Ok(());
        };
        self.held = self.held.saturating_sub(largest.rows.held());
        largest.rows.write_group().map_err(write_error(&largest.path))?;
        if largest.rows.groups() < self.limits.groups {
            return Ok(());
        }
        let key = key.clone();
        let Some(open) = self.open.remove(&key) else { return Ok(()) };
        self.parts.insert(key.clone(), open.part + 1);
        self.staged.push(complete(key, open)?);
        Ok(())
    }

    /// Completes all files. They are synced to disk, so that they can be committed afterwards.
    pub(crate) fn finish(mut self) -> Result<Vec<Staged>, ScaleError> {
        for (key, open) in self.open {
            self.staged.push(complete(key, open)?);
        }
        Ok(self.staged)
    }
}

/// Completes a file and returns its description.
fn complete((format, topic, month, columns): FileKey, open: OpenFile) -> Result<Staged, ScaleError> {
    let OpenFile { path, part, rows } = open;
    let count = rows.rows;
    let FinishedFile { bytes, sha256 } = rows.finish().map_err(write_error(&path))?;
    Ok(Staged { path, format, topic, month, columns, part, rows: count, bytes, sha256 })
}

/// Returns a function that adds the path of a file to an error that occurred when the file was
/// written.
pub(super) fn write_error(path: &Path) -> impl Fn(ParquetError) -> ScaleError {
    move |error| match ExportError::from(error) {
        ExportError::Io(error) => ScaleError::lake(path)(error),
        error => ScaleError::Export(error),
    }
}

/// Returns the names and types of the columns in a schema.
fn columns(schema: &Schema) -> Vec<(String, String)> {
    schema.fields().iter().map(|field| (field.name().clone(), field.data_type().to_string())).collect()
}

/// Returns the ids of the logs that have rows in a file.
pub(super) fn logs_in(path: &Path) -> Result<BTreeSet<String>, ScaleError> {
    let source = File::open(path).map_err(ScaleError::lake(path))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(source).map_err(write_error(path))?;
    let only = ProjectionMask::columns(builder.parquet_schema(), ["log"]);
    let mut logs = BTreeSet::new();
    for batch in builder.with_projection(only).build().map_err(write_error(path))? {
        let batch = batch?;
        let column = batch.column_by_name("log").and_then(|column| column.as_string_opt::<i32>());
        logs.extend(column.into_iter().flatten().flatten().map(str::to_owned));
    }
    Ok(logs)
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

    /// The limits are so small that a table has several row groups and files. Every row must be in
    /// exactly one file.
    #[test]
    fn long_tables_have_several_files() {
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
