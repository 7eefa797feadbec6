//! The files of a pack while they are written: one for each table, month and set of columns.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use rovelog_export::ExportError;
use rovelog_export::table::{Floats, parquet_properties};
use serde::{Deserialize, Serialize};

use super::member::short_hash;
use crate::ScaleError;

/// Bytes that all open files together hold before the largest row group is written. Counted as they
/// will be in the file: the memory of a writer without rows is large, and is no reason to write.
const HELD: usize = 48 << 20;

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
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

impl Staged {
    /// Returns the digits by which files of one pack and table with other columns differ.
    pub(crate) fn columns_hash(&self) -> String {
        short_hash(self.columns.iter().flat_map(|(name, ty)| [&**name, &**ty]))
    }
}

/// Format, topic, month, and the columns.
type Key = (String, String, String, Vec<(String, String)>);

struct Open {
    path: PathBuf,
    writer: ArrowWriter<File>,
    rows: u64,
}

/// The open files of a pack.
pub(crate) struct Tables {
    staging: PathBuf,
    open: BTreeMap<Key, Open>,
    held: usize,
}

impl Tables {
    pub(crate) fn new(staging: &Path) -> Self {
        Self { staging: staging.to_owned(), open: BTreeMap::new(), held: 0 }
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
        let number = self.open.len();
        let open = match self.open.entry(key) {
            std::collections::btree_map::Entry::Occupied(open) => open.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => {
                fs::create_dir_all(&self.staging).map_err(ScaleError::lake(&self.staging))?;
                let path = self.staging.join(format!("{number}.parquet"));
                let file = File::create(&path).map_err(ScaleError::lake(&path))?;
                // Readers see plain Parquet: without Arrow's own description of the columns.
                let options = ArrowWriterOptions::new()
                    .with_properties(parquet_properties(topic, &schema, Floats::Plain)?.build())
                    .with_skip_arrow_metadata(true);
                let writer = ArrowWriter::try_new_with_options(file, schema, options).map_err(export)?;
                place.insert(Open { path, writer, rows: 0 })
            }
        };
        let before = open.writer.in_progress_size();
        open.writer.write(batch).map_err(export)?;
        open.rows += batch.num_rows() as u64;
        self.held = (self.held + open.writer.in_progress_size()).saturating_sub(before);
        if self.held > HELD { self.relieve() } else { Ok(()) }
    }

    /// Writes the largest row group.
    fn relieve(&mut self) -> Result<(), ScaleError> {
        if let Some(largest) = self.open.values_mut().max_by_key(|open| open.writer.in_progress_size()) {
            largest.writer.flush().map_err(export)?;
        }
        self.held = self.open.values().map(|open| open.writer.in_progress_size()).sum();
        Ok(())
    }

    /// Ends all files. They are on the disk before the next step names them.
    pub(crate) fn finish(self) -> Result<Vec<Staged>, ScaleError> {
        let mut staged = Vec::new();
        for ((format, topic, month, columns), open) in self.open {
            let file = open.writer.into_inner().map_err(export)?;
            file.sync_all().map_err(ScaleError::lake(&open.path))?;
            let bytes = file.metadata().map_err(ScaleError::lake(&open.path))?.len();
            staged.push(Staged { path: open.path, format, topic, month, columns, rows: open.rows, bytes });
        }
        Ok(staged)
    }
}

fn export(error: parquet::errors::ParquetError) -> ScaleError {
    ScaleError::Export(ExportError::from(error))
}

fn columns(schema: &Schema) -> Vec<(String, String)> {
    schema.fields().iter().map(|field| (field.name().clone(), field.data_type().to_string())).collect()
}
