//! Commits: files of a pack get their names in the tables, then the pack its file in `_logs`.

use std::collections::BTreeMap;
use std::fs;

use serde::{Deserialize, Serialize};

use super::layout::{Lake, Lock, read_json, write_json, write_whole};
use super::logs::{LogRow, Named, to_parquet};
use super::pack::Packed;
use super::tables::Staged;
use crate::ScaleError;

/// The columns of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct TableColumns {
    /// The topic that the table is of.
    topic: String,
    /// Types by the names of all columns that its files have.
    columns: BTreeMap<String, String>,
}

impl TableColumns {
    /// Returns whether a file can be added: columns are only ever added, and no type changes.
    fn admits(&self, file: &Staged) -> bool {
        let same = |(name, ty): &(String, String)| {
            let known = self.columns.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            known.is_none_or(|(known, of)| known == name && of == ty)
        };
        self.topic == file.topic && file.columns.iter().all(same)
    }
}

/// Adds a pack to the lake. What was there before stays; what is not named by a file in `_logs` is
/// not in the lake.
pub(crate) fn commit(lake: &Lake, _: &Lock, packed: &Packed) -> Result<(), ScaleError> {
    let mut files = Vec::new();
    for file in &packed.files {
        let table = table_of(lake, file)?;
        let folder = format!("{table}/month={}", file.month);
        let path = format!("{folder}/{}", file.name(&packed.id));
        let folder = lake.root().join(folder);
        fs::create_dir_all(&folder).map_err(ScaleError::lake(&folder))?;
        let target = lake.root().join(&path);
        fs::rename(&file.path, &target).map_err(ScaleError::lake(&target))?;
        files.push(Named { path, rows: file.rows, bytes: file.bytes });
    }
    write_logs(lake, &packed.id, &packed.logs, &files)
}

/// Writes the file of a pack in `_logs`: the moment at which the pack is in the lake.
fn write_logs(lake: &Lake, pack: &str, logs: &[LogRow], files: &[Named]) -> Result<(), ScaleError> {
    write_whole(&lake.logs().join(format!("{pack}.parquet")), &to_parquet(logs, files)?)
}

/// Returns the table of a file: that of its topic, or `<topic>__2` and so on if a column has another
/// type there.
fn table_of(lake: &Lake, file: &Staged) -> Result<String, ScaleError> {
    // Tables of all formats are the lake's own.
    let name = if file.format.is_empty() { file.topic.clone() } else { folder_of(&file.topic) };
    for number in 1_u32.. {
        let name = if number == 1 { name.clone() } else { format!("{name}__{number}") };
        let table = if file.format.is_empty() { name } else { format!("{}/{name}", file.format) };
        let path = lake.columns(&table);
        let known: Option<TableColumns> = read_json(&path)?;
        let is_known = known.is_some();
        let mut columns =
            known.unwrap_or_else(|| TableColumns { topic: file.topic.clone(), ..TableColumns::default() });
        if !columns.admits(file) {
            continue;
        }
        let before = is_known.then_some(columns.columns.len());
        columns.columns.extend(file.columns.iter().cloned());
        if Some(columns.columns.len()) > before {
            write_json(&path, &columns)?;
        }
        return Ok(table);
    }
    Err(ScaleError::Columns(format!("topic {} has too many tables", file.topic)))
}

/// Returns the name of a folder for a topic: `/camera/image` is `camera_image`.
fn folder_of(topic: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "_-.".contains(c) { c } else { '_' };
    let name: String = topic.trim_matches('/').chars().map(plain).collect();
    // A name that starts with a dot or an underscore is hidden, or one of the lake's own.
    if name.is_empty() || name.starts_with(['.', '_']) { format!("topic{name}") } else { name }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn staged(topic: &str, columns: &[(&str, &str)]) -> Staged {
        let columns = columns.iter().map(|(name, ty)| ((*name).to_owned(), (*ty).to_owned())).collect();
        let (format, month) = ("ulog".to_owned(), "unknown".to_owned());
        Staged {
            path: PathBuf::new(),
            format,
            topic: topic.to_owned(),
            month,
            columns,
            part: 0,
            rows: 1,
            bytes: 1,
        }
    }

    #[test]
    fn a_type_that_changes_makes_another_table() {
        let folder = tempfile::tempdir().unwrap();
        let lake = Lake::new(folder.path());
        let table = |topic: &str, columns: &[(&str, &str)]| table_of(&lake, &staged(topic, columns)).unwrap();
        assert_eq!(table("battery_status", &[("v", "Float32")]), "ulog/battery_status");
        assert_eq!(table("battery_status", &[("v", "Float32"), ("i", "Float32")]), "ulog/battery_status");
        assert_eq!(table("battery_status", &[("v", "Int32")]), "ulog/battery_status__2");
        assert_eq!(
            table("battery_status", &[("I", "Float32")]),
            "ulog/battery_status__2",
            "not by case only"
        );
        assert_eq!(table("battery_status", &[("i", "Float32")]), "ulog/battery_status");
        assert_eq!(table("/a/b", &[]), "ulog/a_b");
        assert_eq!(table("/a_b", &[]), "ulog/a_b__2", "another topic");
        assert_eq!(table("_x", &[]), "ulog/topic_x");
    }
}
