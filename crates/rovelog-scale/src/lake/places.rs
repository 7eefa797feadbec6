//! Assignment of files to tables of a lake.
//!
//! A table is named after its topic. If a column contains texts in one log and numbers in another,
//! no type can represent both. So the rows of the topic are in two tables.
//!
//! # Example
//!
//! In the first log, the column `state` of `battery_status` contains texts, so the table is
//! `battery_status`. In the second log, the column contains numbers. The files of the first log are
//! moved to `battery_status__text`, and the second log gets the table `battery_status`. If the logs
//! are added in the opposite order, the result is the same, because numbers always get the plain
//! name.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use arrow_schema::{DataType, Field, Schema};
use serde::{Deserialize, Serialize};

use super::layout::{Lake, files_below, read_json, write_json};
use super::logs::TableFile;
use super::member::short_hash;
use super::rename::move_table;
use super::tables::{Staged, logs_in};
use crate::ScaleError;
use crate::union::wider;

/// Maximum length in bytes of a folder name that is formed from a topic. Most file systems allow
/// 255 bytes. The difference leaves room for suffixes such as `__2` and `.json.part`.
const MAX_NAME_LEN: usize = 200;

/// The columns of a table and their types.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TableColumns {
    /// Name of the topic whose rows are in the table.
    topic: String,
    /// Type of each column by its name.
    pub(super) columns: BTreeMap<String, String>,
}

/// Result of adding columns to a table.
enum Added {
    /// All columns fit into the table. The value describes the table with the added columns.
    Fits(TableColumns),
    /// The names of two columns differ only in upper and lower case.
    OtherCase,
    Conflict(Conflict),
}

/// A column whose values in the table and in a new file cannot be represented by one type.
struct Conflict {
    /// Name of the column.
    column: String,
    /// Kind of the values in the table.
    known: Kind,
    /// Kind of the values in the new file.
    new: Kind,
}

/// Kinds of values. No type can represent values of two different kinds. If a topic has values of
/// several kinds, the first kind in this order gets the table with the plain name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Number,
    Text,
    Time,
    Bytes,
    List,
    Struct,
    Other,
}

impl Kind {
    fn of(ty: &DataType) -> Self {
        match ty {
            DataType::Boolean => Self::Number,
            ty if ty.is_numeric() => Self::Number,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Self::Text,
            ty if ty.is_temporal() => Self::Time,
            DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_) => Self::Bytes,
            DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => Self::List,
            DataType::Struct(_) => Self::Struct,
            _ => Self::Other,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Text => "text",
            Self::Time => "time",
            Self::Bytes => "bytes",
            Self::List => "list",
            Self::Struct => "struct",
            Self::Other => "other",
        }
    }
}

impl TableColumns {
    fn empty(topic: &str) -> Self {
        Self { topic: topic.to_owned(), columns: BTreeMap::new() }
    }

    /// Returns the columns of this table after `columns` have been added. If the table already has
    /// a column, the result has a type that can represent both the old and the new values.
    fn with<'a>(&self, columns: impl IntoIterator<Item = (&'a String, &'a String)>) -> Added {
        let mut all = self.clone();
        for (name, ty) in columns {
            match all.columns.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
                None => {
                    all.columns.insert(name.clone(), ty.clone());
                }
                Some((known, _)) if known != name => return Added::OtherCase,
                Some((_, of)) if of == ty => {}
                Some((_, of)) => match wider_text(of, ty) {
                    Ok(both) => *of = both,
                    Err((known, new)) => {
                        return Added::Conflict(Conflict { column: name.clone(), known, new });
                    }
                },
            }
        }
        Added::Fits(all)
    }

    /// Returns the schema of a staged file after its columns have been converted to the types of
    /// this table.
    pub(super) fn schema_of(&self, file: &Staged) -> Option<Schema> {
        let field = |(name, _): &(String, String)| {
            let ty: DataType = self.columns.get(name)?.parse().ok()?;
            Some(Field::new(name, ty, true))
        };
        Some(Schema::new(file.columns.iter().map(field).collect::<Option<Vec<_>>>()?))
    }
}

/// Returns a type that can represent the values of the types `a` and `b`. If there is no such type,
/// returns the kinds of values that conflict. Types are strings in the notation of Arrow.
fn wider_text(a: &str, b: &str) -> Result<String, (Kind, Kind)> {
    let (Ok(a), Ok(b)) = (a.parse::<DataType>(), b.parse::<DataType>()) else {
        return Err((Kind::Other, Kind::Other));
    };
    let both = wider(&a, &b, "").map(|both| both.to_string());
    both.map_err(|_| conflict(&a, &b).unwrap_or((Kind::Other, Kind::Other)))
}

/// If two types cannot be combined, returns the kinds of their values. For lists and structs, these
/// are the kinds of the elements or fields that conflict.
fn conflict(a: &DataType, b: &DataType) -> Option<(Kind, Kind)> {
    match (a, b) {
        (DataType::List(a), DataType::List(b)) => conflict(a.data_type(), b.data_type()),
        (DataType::Struct(a), DataType::Struct(b)) => a.iter().find_map(|field| {
            let other = b.iter().find(|other| other.name() == field.name())?;
            conflict(field.data_type(), other.data_type())
        }),
        _ => wider(a, b, "").is_err().then(|| (Kind::of(a), Kind::of(b))),
    }
}

/// A table of the lake.
pub(super) struct Table {
    /// Path of the table relative to the folder of the lake.
    pub(super) path: String,
    /// Columns of the table, with the types that new files must use.
    pub(super) columns: TableColumns,
}

/// Rows of a topic that are not in the table named after the topic, because no column type can
/// represent the values of all logs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Split {
    /// Name of the topic.
    pub topic: String,
    /// Name of a column with values of several kinds.
    pub column: String,
    /// Kind of the column's values in these rows, for example `text`.
    pub kind: &'static str,
    /// Table that is named after the topic. It contains all rows of the topic that are not in
    /// `table`.
    pub plain: String,
    /// Table that contains the rows with values of this kind.
    pub table: String,
    /// Ids of the logs whose rows were written or moved to this table by the current `ingest`.
    pub logs: BTreeSet<String>,
}

impl std::fmt::Display for Split {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { topic, column, kind, plain, table, logs } = self;
        let logs = rovelog::core::internal::text::count(logs.len() as u64, "log");
        write!(
            f,
            "column {column} of topic {topic} has another type ({kind}) in {logs}, so these rows are in \
             the table {table} instead of {plain}; read both tables"
        )
    }
}

/// The tables of a lake, to which files are assigned.
pub(super) struct Places<'a> {
    lake: &'a Lake,
    names: TableNames,
    /// Rows that are not in the table named after their topic. The key is the name of the table
    /// that contains them.
    pub(super) splits: BTreeMap<String, Split>,
}

impl<'a> Places<'a> {
    /// Reads the names of the tables of a lake.
    pub(super) fn of(lake: &'a Lake) -> Result<Self, ScaleError> {
        Ok(Self { lake, names: TableNames::of(lake)?, splits: BTreeMap::new() })
    }

    /// Returns the table for a staged file. If the types of the table cannot represent the values
    /// of the file, they are replaced by wider types.
    ///
    /// `placed` lists the files of the same pack that were already assigned to tables. If a table
    /// of these files is renamed, the files are moved.
    pub(super) fn table_of(&mut self, file: &Staged, placed: &mut [TableFile]) -> Result<Table, ScaleError> {
        let columns = || file.columns.iter().map(|(name, ty)| (name, ty));
        let plain = plain_name(file);
        for number in 1_u32.. {
            let table = if number == 1 { plain.clone() } else { format!("{plain}__{number}") };
            let Some(known) = self.columns_of(&table, &file.topic)? else { continue };
            return match known.with(columns()) {
                Added::Fits(columns) => self.keep(table, &known, columns),
                Added::OtherCase => continue,
                Added::Conflict(conflict) if conflict.new < conflict.known => {
                    let to = self.beside(&table, conflict.known, &file.topic, || known.columns.iter())?;
                    let logs = move_table(self.lake, &table, &to.path, &known.topic, placed)?;
                    self.note(file, &conflict.column, conflict.known, (&table, &to.path), logs);
                    match TableColumns::empty(&file.topic).with(columns()) {
                        Added::Fits(columns) => self.keep(table, &known, columns),
                        _ => Err(ScaleError::Columns(format!(
                            "topic {} has several columns with the same name",
                            file.topic
                        ))),
                    }
                }
                Added::Conflict(conflict) => {
                    let to = self.beside(&table, conflict.new, &file.topic, columns)?;
                    let logs = logs_in(&file.path)?;
                    self.note(file, &conflict.column, conflict.new, (&table, &to.path), logs);
                    Ok(to)
                }
            };
        }
        Err(ScaleError::Columns(format!("topic {} has too many tables", file.topic)))
    }

    /// Returns the table for rows with a kind of values that the table `plain` cannot store.
    fn beside<'c, I: Iterator<Item = (&'c String, &'c String)>>(
        &mut self,
        plain: &str,
        kind: Kind,
        topic: &str,
        columns: impl Fn() -> I,
    ) -> Result<Table, ScaleError> {
        for number in 1_u32.. {
            let suffix = if number == 1 { String::new() } else { format!("__{number}") };
            let table = format!("{plain}__{}{suffix}", kind.name());
            if let Some(known) = self.columns_of(&table, topic)?
                && let Added::Fits(columns) = known.with(columns())
            {
                return self.keep(table, &known, columns);
            }
        }
        Err(ScaleError::Columns(format!("topic {topic} has too many tables")))
    }

    /// Returns the known columns of a table, which may be none. Returns `None` if the table cannot
    /// contain rows of the topic.
    fn columns_of(&self, table: &str, topic: &str) -> Result<Option<TableColumns>, ScaleError> {
        if self.names.is_other_case(table) {
            return Ok(None);
        }
        let known: Option<TableColumns> = read_json(&self.lake.columns(table))?;
        let known = known.unwrap_or_else(|| TableColumns::empty(topic));
        // Different topics can have the same folder name. For example, `/a/b` and `/a_b` both
        // become `a_b`.
        Ok(Some(known).filter(|known| known.topic == topic))
    }

    /// Writes the description of a table's columns if the columns have changed.
    fn keep(
        &mut self,
        path: String,
        known: &TableColumns,
        columns: TableColumns,
    ) -> Result<Table, ScaleError> {
        let file = self.lake.columns(&path);
        if *known != columns || !file.exists() {
            write_json(&file, &columns)?;
        }
        self.names.add(&path);
        Ok(Table { path, columns })
    }

    /// Records that rows of a topic are not in the table named after the topic.
    fn note(
        &mut self,
        file: &Staged,
        column: &str,
        kind: Kind,
        (plain, table): (&str, &str),
        logs: BTreeSet<String>,
    ) {
        let split = self.splits.entry(table.to_owned()).or_insert_with(|| Split {
            topic: file.topic.clone(),
            column: column.to_owned(),
            kind: kind.name(),
            plain: plain.to_owned(),
            table: table.to_owned(),
            logs: BTreeSet::new(),
        });
        split.logs.extend(logs);
    }
}

/// Returns the name of the table that is named after the topic of a file.
pub(super) fn plain_name(file: &Staged) -> String {
    // The tables `_text` and `_events` contain rows of all formats, so they are not in the folder
    // of a format.
    if file.format.is_empty() {
        file.topic.clone()
    } else {
        format!("{}/{}", file.format, folder_of(&file.topic))
    }
}

/// Names of all tables. The keys are the names in lower case. On a file system that ignores case,
/// two tables whose names differ only in case would have the same folder.
struct TableNames(HashMap<String, String>);

impl TableNames {
    fn of(lake: &Lake) -> Result<Self, ScaleError> {
        let mut names = Self(HashMap::new());
        let folder = lake.own().join("tables");
        for path in files_below(&folder, "json")? {
            let name = path.strip_prefix(&folder).unwrap_or(&path).with_extension("");
            let parts: Vec<_> = name.iter().map(|part| part.to_string_lossy()).collect();
            names.add(&parts.join("/"));
        }
        Ok(names)
    }

    fn add(&mut self, table: &str) {
        self.0.entry(table.to_ascii_lowercase()).or_insert_with(|| table.to_owned());
    }

    fn is_other_case(&self, table: &str) -> bool {
        self.0.get(&table.to_ascii_lowercase()).is_some_and(|known| known != table)
    }
}

/// Returns a folder name for a topic that every file system accepts. For example, `/camera/image`
/// becomes `camera_image`. A long name is shortened and ends with a hash of the topic.
fn folder_of(topic: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "_-.".contains(c) { c } else { '_' };
    let name: String = topic.trim_matches('/').chars().map(plain).collect();
    // Query engines ignore folders whose names start with a dot or an underscore.
    let hidden = name.is_empty() || name.starts_with(['.', '_']);
    let mut name = if hidden || is_reserved(&name) { format!("topic{name}") } else { name };
    if name.len() > MAX_NAME_LEN {
        // All characters are ASCII, so the name can be truncated at any byte.
        name.truncate(MAX_NAME_LEN - 17);
        name = format!("{name}-{}", short_hash([topic]));
    }
    // Windows removes dots at the end of a name.
    if name.ends_with('.') {
        name.push('_');
    }
    name
}

/// Returns `true` if Windows reserves a file name for a device. This also applies to names with an
/// extension.
fn is_reserved(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).to_ascii_uppercase();
    let numbered = |device| {
        let number = stem.strip_prefix(device);
        number.is_some_and(|number| matches!(number.as_bytes(), [b'1'..=b'9']))
    };
    matches!(&*stem, "CON" | "PRN" | "AUX" | "NUL") || numbered("COM") || numbered("LPT")
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
            sha256: String::new(),
        }
    }

    /// Returns the path of the table for a file with these columns. The file need not exist.
    fn path_of(places: &mut Places<'_>, topic: &str, columns: &[(&str, &str)]) -> String {
        places.table_of(&staged(topic, columns), &mut []).unwrap().path
    }

    #[test]
    fn a_type_that_changes_is_widened() {
        let folder = tempfile::tempdir().unwrap();
        let lake = Lake::new(folder.path());
        let mut places = Places::of(&lake).unwrap();
        let mut table = |topic: &str, columns: &[(&str, &str)]| path_of(&mut places, topic, columns);
        assert_eq!(table("battery_status", &[("v", "Float32")]), "ulog/battery_status");
        assert_eq!(table("battery_status", &[("v", "Float32"), ("i", "Float32")]), "ulog/battery_status");
        assert_eq!(table("battery_status", &[("v", "Int32")]), "ulog/battery_status");
        assert_eq!(table("battery_status", &[("v", "Boolean")]), "ulog/battery_status");
        assert_eq!(
            table("battery_status", &[("I", "Float32")]),
            "ulog/battery_status__2",
            "not by case only"
        );
        assert_eq!(table("battery_status", &[("i", "Float32")]), "ulog/battery_status");
        assert_eq!(table("/a/b", &[]), "ulog/a_b");
        assert_eq!(table("/a_b", &[]), "ulog/a_b__2", "another topic");
        assert_eq!(table("_x", &[]), "ulog/topic_x");
        assert!(places.splits.is_empty());
    }

    #[test]
    fn conflicting_kinds_are_found_inside_nested_types() {
        let kinds = |a: &str, b: &str| conflict(&a.parse().unwrap(), &b.parse().unwrap());
        assert_eq!(kinds("Int16", "Utf8"), Some((Kind::Number, Kind::Text)));
        assert_eq!(kinds("Utf8", "List(Utf8)"), Some((Kind::Text, Kind::List)));
        assert_eq!(kinds("List(Int8)", "List(Utf8)"), Some((Kind::Number, Kind::Text)));
        assert_eq!(kinds("Int8", "Float64"), None);
    }

    #[test]
    fn types_of_a_table_can_represent_all_values() {
        for (a, b, both) in [
            ("Int16", "Int32", Some("Int32")),
            ("Int64", "Int16", Some("Int64")),
            ("Float32", "Float64", Some("Float64")),
            ("Int16", "Float32", Some("Float32")),
            ("Int32", "Float32", Some("Float64")),
            ("Int64", "Float64", Some("Float64")),
            ("Boolean", "Int8", Some("Int8")),
            ("Boolean", "Float32", Some("Float32")),
            ("Boolean", "Utf8", None),
            (
                "List(Int16, field: 'element')",
                "List(Int32, field: 'element')",
                Some("List(Int32, field: 'element')"),
            ),
            ("Int16", "Utf8", None),
            ("Int16", "List(Int16, field: 'element')", None),
        ] {
            assert_eq!(wider_text(a, b).ok().as_deref(), both, "{a} and {b}");
            assert_eq!(wider_text(b, a).ok().as_deref(), both, "{b} and {a}");
        }
    }

    #[test]
    fn folders_are_safe_on_every_file_system() {
        let folder = tempfile::tempdir().unwrap();
        let lake = Lake::new(folder.path());
        let mut places = Places::of(&lake).unwrap();
        let mut table = |topic: &str| path_of(&mut places, topic, &[]);
        assert_eq!(table("Odom"), "ulog/Odom");
        assert_eq!(table("odom"), "ulog/odom__2", "another topic in the same folder on macOS and Windows");
        assert_eq!(table("Odom"), "ulog/Odom");
        assert_eq!(table("CON"), "ulog/topicCON");
        assert_eq!(table("aux."), "ulog/topicaux._");
        assert_eq!(table("NUL.csv"), "ulog/topicNUL.csv");
        assert_eq!(table("lpt1"), "ulog/topiclpt1");
        assert_eq!(table("trail."), "ulog/trail._");
        let (a, b) = ("n".repeat(255), format!("{}m", "n".repeat(254)));
        assert_ne!(table(&a), table(&b));
        assert!(table(&a).len() <= "ulog/".len() + MAX_NAME_LEN, "{}", table(&a));
    }
}
