//! The table of a file. It is named after its topic. If a column is text in one log and a number in
//! another, no type holds the values of both, and the rows are in two tables.
//!
//! Numbers have the plain name and other kinds a suffix, in whatever order the logs come: a table
//! of texts is moved to `battery_status__text` when the first numbers of the same column come.

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

/// Maximum length of a folder name in bytes. Most file systems allow 255, and suffixes such as
/// `__2` and `.json.part` need the rest.
const MAX_NAME_LEN: usize = 200;

/// The columns of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TableColumns {
    /// The topic that the table is of.
    topic: String,
    /// Types by the names of all columns that its files have.
    pub(super) columns: BTreeMap<String, String>,
}

/// Result of adding columns to a table.
enum Added {
    Fits(TableColumns),
    /// A column has the name of another one except for upper and lower case.
    OtherCase,
    Conflict(Conflict),
}

/// A column for which no type holds the values of both.
struct Conflict {
    column: String,
    known: Kind,
    new: Kind,
}

/// Kinds of values that no type holds together, in the order in which they get the plain name.
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

    /// Returns the columns with further ones, each in a type that holds the values of both.
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

    /// Returns the schema of a file of the table, in the types of the table.
    pub(super) fn schema_of(&self, file: &Staged) -> Option<Schema> {
        let field = |(name, _): &(String, String)| {
            let ty: DataType = self.columns.get(name)?.parse().ok()?;
            Some(Field::new(name, ty, true))
        };
        Some(Schema::new(file.columns.iter().map(field).collect::<Option<Vec<_>>>()?))
    }
}

/// Returns the type that holds the values of both types, or the kinds that exclude each other. All
/// types are written as Arrow shows them.
fn wider_text(a: &str, b: &str) -> Result<String, (Kind, Kind)> {
    let (Ok(a), Ok(b)) = (a.parse::<DataType>(), b.parse::<DataType>()) else {
        return Err((Kind::Other, Kind::Other));
    };
    let both = wider(&a, &b, "").map(|both| both.to_string());
    both.map_err(|_| conflict(&a, &b).unwrap_or((Kind::Other, Kind::Other)))
}

/// Returns the kinds that exclude each other, of the types themselves or of what is in them.
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

/// A table of the lake, and the types in which a new file has to store its columns.
pub(super) struct Table {
    pub(super) path: String,
    pub(super) columns: TableColumns,
}

/// Rows of a topic that are not in the table of its name, because no type holds the values of all
/// logs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Split {
    /// The topic.
    pub topic: String,
    /// A column that has several kinds of values.
    pub column: String,
    /// Kind of its values in these rows: `text`.
    pub kind: &'static str,
    /// The table of the topic's name, which has the other rows.
    pub plain: String,
    /// The table of these rows.
    pub table: String,
    /// Ids of the logs that have such rows, as far as this run added or moved them.
    pub logs: BTreeSet<String>,
}

impl std::fmt::Display for Split {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { topic, column, kind, plain, table, logs } = self;
        let logs = rovelog::core::text::count(logs.len() as u64, "log");
        write!(
            f,
            "topic {topic}: column {column} is of another kind ({kind}) in {logs}, whose rows are in {table}, not in {plain}; read both"
        )
    }
}

/// The tables of a lake.
pub(super) struct Places<'a> {
    lake: &'a Lake,
    names: TableNames,
    /// Splits, by table.
    pub(super) splits: BTreeMap<String, Split>,
}

impl<'a> Places<'a> {
    pub(super) fn of(lake: &'a Lake) -> Result<Self, ScaleError> {
        Ok(Self { lake, names: TableNames::of(lake)?, splits: BTreeMap::new() })
    }

    /// Returns the table of a file, with columns widened as needed. `placed` are the files of the pack
    /// that have their places already: they are moved with their table.
    pub(super) fn table_of(&mut self, file: &Staged, placed: &mut [TableFile]) -> Result<Table, ScaleError> {
        let columns = || file.columns.iter().map(|(name, ty)| (name, ty));
        let plain = plain_name(file);
        for number in 1_u32.. {
            let table = if number == 1 { plain.clone() } else { format!("{plain}__{number}") };
            if self.names.is_other_case(&table) {
                continue;
            }
            let known: Option<TableColumns> = read_json(&self.lake.columns(&table))?;
            let known = known.unwrap_or_else(|| TableColumns::empty(&file.topic));
            if known.topic != file.topic {
                continue;
            }
            return match known.with(columns()) {
                Added::Fits(columns) => self.keep(table, &known, columns),
                Added::OtherCase => continue,
                Added::Conflict(conflict) if conflict.new < conflict.known => {
                    let (moved, of_table) = (&known, known.columns.iter());
                    let to = self.beside(&table, conflict.known, &file.topic, || of_table.clone())?;
                    let logs = move_table(self.lake, &table, &to.path, &moved.topic, placed)?;
                    self.note(file, &conflict.column, conflict.known, (&table, &to.path), logs);
                    match TableColumns::empty(&file.topic).with(columns()) {
                        Added::Fits(columns) => self.keep(table, &known, columns),
                        _ => {
                            Err(ScaleError::Columns(format!("topic {} has columns of one name", file.topic)))
                        }
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

    /// Returns the table for rows of a kind that the plain table cannot have.
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
            if self.names.is_other_case(&table) {
                continue;
            }
            let known: Option<TableColumns> = read_json(&self.lake.columns(&table))?;
            let known = known.unwrap_or_else(|| TableColumns::empty(topic));
            if known.topic == topic
                && let Added::Fits(columns) = known.with(columns())
            {
                return self.keep(table, &known, columns);
            }
        }
        Err(ScaleError::Columns(format!("topic {topic} has too many tables")))
    }

    /// Writes the columns of a table if they have changed.
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

/// Returns the table that is named after the topic of a file.
pub(super) fn plain_name(file: &Staged) -> String {
    // Tables of all formats are the lake's own.
    if file.format.is_empty() {
        file.topic.clone()
    } else {
        format!("{}/{}", file.format, folder_of(&file.topic))
    }
}

/// Names of the tables, by their names in lower case. A file system that ignores case would mix two
/// tables whose names differ in case only.
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

/// Returns a folder name for a topic that every file system accepts. `/camera/image` becomes
/// `camera_image`. A long name ends with a hash of the topic.
fn folder_of(topic: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "_-.".contains(c) { c } else { '_' };
    let name: String = topic.trim_matches('/').chars().map(plain).collect();
    // A name that starts with a dot or an underscore is hidden, or one of the lake's own.
    let hidden = name.is_empty() || name.starts_with(['.', '_']);
    let mut name = if hidden || is_reserved(&name) { format!("topic{name}") } else { name };
    if name.len() > MAX_NAME_LEN {
        // All characters are ASCII.
        name.truncate(MAX_NAME_LEN - 17);
        name = format!("{name}-{}", short_hash([topic]));
    }
    // Windows drops dots at the end of a name.
    if name.ends_with('.') {
        name.push('_');
    }
    name
}

/// Returns whether Windows reserves a file name for a device, with any extension.
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

    /// Returns the table of a file that is not there.
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
    fn the_kinds_that_exclude_each_other_are_found_inside_of_types() {
        let kinds = |a: &str, b: &str| conflict(&a.parse().unwrap(), &b.parse().unwrap());
        assert_eq!(kinds("Int16", "Utf8"), Some((Kind::Number, Kind::Text)));
        assert_eq!(kinds("Utf8", "List(Utf8)"), Some((Kind::Text, Kind::List)));
        assert_eq!(kinds("List(Int8)", "List(Utf8)"), Some((Kind::Number, Kind::Text)));
        assert_eq!(kinds("Int8", "Float64"), None);
    }

    #[test]
    fn types_of_a_table_hold_all_values() {
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
