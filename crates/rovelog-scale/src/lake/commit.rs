//! Adds the Parquet files of a pack to a lake. A pack is a group of logs that are added in one step.
//! First, the files of the pack are moved from the staging folder to the folders of their tables.
//! Then a file that describes the pack is written to the table `_logs`.

use std::fs::{self, File};
use std::sync::Arc;

use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use rovelog_export::table::{Floats, parquet_properties};

use super::grouped::{FinishedFile, RowGroupWriter};
use super::layout::{Lake, Lock, remove_if_there, write_atomically};
use super::logs::{LogRow, TableFile, from_parquet, to_parquet, with_table};
use super::pack::Packed;
use super::places::{Places, Split, TableColumns, plain_name};
use super::tables::{Staged, logs_in, write_error};
use crate::ScaleError;
use crate::union::fit;

/// Adds the files of a pack to the lake. A pack consists of logs that are added together. Returns
/// the topics whose rows are in several tables.
///
/// If the program is killed before the pack's file in the table `_logs` is written, the files of
/// the pack do not belong to the lake. The next `ingest` removes them.
pub(crate) fn commit(lake: &Lake, _: &Lock, packed: &Packed) -> Result<Vec<Split>, ScaleError> {
    let (mut files, mut places) = (Vec::new(), Places::of(lake)?);
    for (number, file) in packed.files.iter().enumerate() {
        let table = places.table_of(file, &mut files)?;
        let mut wide = widen(file, &table.columns)?;
        // After its columns have been widened, a file can have the same columns as another file of
        // the pack. So it gets a number that no other file has, and thus a different name.
        if let Some(wide) = &mut wide {
            wide.part = packed.files.len() + number;
        }
        let file = wide.as_ref().unwrap_or(file);
        let folder = format!("{}/month={}", table.path, file.month);
        let path = format!("{folder}/{}", file.name(&packed.id));
        let folder = lake.root().join(folder);
        fs::create_dir_all(&folder).map_err(ScaleError::lake(&folder))?;
        let target = lake.root().join(&path);
        fs::rename(&file.path, &target).map_err(ScaleError::lake(&target))?;
        files.push(TableFile { path, rows: file.rows, bytes: file.bytes, sha256: Some(file.sha256.clone()) });
    }
    // The table `_logs` states which topics of a log are not in the table that is named after the
    // topic. With this information, a reader finds all rows of the log.
    let mut rows = packed.logs.clone();
    for (staged, file) in packed.files.iter().zip(&files) {
        let table = file.path.rsplitn(3, '/').last().unwrap_or_default();
        if table == plain_name(staged) {
            continue;
        }
        let logs = logs_in(&lake.root().join(&file.path))?;
        for row in rows.iter_mut().filter(|row| logs.contains(&row.id)) {
            row.tables = with_table(&row.tables, &staged.topic, table);
        }
    }
    // If the pack is repaired, its table may have other columns than before, so the new files have
    // other names than the old files.
    let listed = lake.logs().join(format!("{}.parquet", packed.id));
    let before = if listed.exists() { from_parquet(&listed)?.1 } else { Vec::new() };
    write_logs(lake, &packed.id, &rows, &files)?;
    for old in before.iter().filter(|old| files.iter().all(|new| new.path != old.path)) {
        remove_if_there(&lake.root().join(&old.path))?;
    }
    Ok(places.splits.into_values().collect())
}

/// Writes a staged file again if the columns of its table have wider types than the file. Returns
/// `None` if the file already has the types of the table.
///
/// Readers of Parquet convert narrow integers to wider integers, but not to floats. If a column is
/// `Int32` in some logs and `Float32` in others, its type in the table is `Float64`, and all new
/// files must have this type.
fn widen(file: &Staged, table: &TableColumns) -> Result<Option<Staged>, ScaleError> {
    if file.columns.iter().all(|(name, ty)| table.columns.get(name) == Some(ty)) {
        return Ok(None);
    }
    let name = file.path.display().to_string();
    let schema = table.schema_of(file);
    let schema = Arc::new(schema.ok_or_else(|| ScaleError::Columns(format!("{name}: unknown types")))?);
    let path = file.path.with_extension("wide.parquet");
    let source = File::open(&file.path).map_err(ScaleError::lake(&file.path))?;
    let batches =
        ParquetRecordBatchReaderBuilder::try_new(source).and_then(ParquetRecordBatchReaderBuilder::build);
    let properties = parquet_properties(&file.topic, &schema, Floats::Plain)?.build();
    let mut rows = RowGroupWriter::new(&path, &schema, properties).map_err(write_error(&path))?;
    for batch in batches.map_err(write_error(&file.path))? {
        rows.add(&fit(&batch?, &schema, &name)?).map_err(write_error(&path))?;
    }
    let FinishedFile { bytes, sha256 } = rows.finish().map_err(write_error(&path))?;
    fs::remove_file(&file.path).map_err(ScaleError::lake(&file.path))?;
    let columns = schema.fields().iter().map(|field| (field.name().clone(), field.data_type().to_string()));
    let columns = columns.collect();
    Ok(Some(Staged { path, columns, bytes, sha256, ..file.clone() }))
}

/// Writes the file that describes a pack to the table `_logs`. A pack consists of logs that are
/// added together. It belongs to the lake as soon as this file exists.
fn write_logs(lake: &Lake, pack: &str, logs: &[LogRow], files: &[TableFile]) -> Result<(), ScaleError> {
    write_atomically(&lake.logs().join(format!("{pack}.parquet")), &to_parquet(logs, files)?)
}
