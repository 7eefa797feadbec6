//! Selection of topics by name or regular expression, and of fields by glob; suggestions for
//! misspelt names.

use std::ffi::OsStr;
use std::path::Path;

use clap_complete::{ArgValueCompleter, CompletionCandidate};
use regex::Regex;
use rovelog::core::select::field_path;
use rovelog::{FieldType, Schema, Select, Topic};

use crate::failure::Failure;

/// Selection of topics.
#[derive(Clone, Default, clap::Args)]
pub(crate) struct TopicArgs {
    /// Only topics whose full name matches; repeatable
    #[arg(short = 'y', long, value_name = "REGEX", value_parser = whole, conflicts_with_all = ["exclude", "topics"])]
    include: Vec<Regex>,
    /// Skip topics whose full name matches; repeatable
    #[arg(short = 'n', long, value_name = "REGEX", value_parser = whole, conflicts_with = "topics")]
    exclude: Vec<Regex>,
    /// Only these topics, by exact name; /0 is optional
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', add = ArgValueCompleter::new(topic_names))]
    topics: Vec<String>,
}

/// Parses a regular expression for a whole name.
fn whole(pattern: &str) -> Result<Regex, String> {
    part(pattern)?;
    part(&format!("^(?:{pattern})$"))
}

/// Parses a regular expression that may match anywhere.
pub(crate) fn part(pattern: &str) -> Result<Regex, String> {
    // The last line of the crate's message says what is wrong; the lines before mark the position.
    Regex::new(pattern).map_err(|error| {
        let error = error.to_string();
        error.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
    })
}

/// Returns whether `regex` matches the whole name of `topic`, with or without the instance `/0`.
fn matches(regex: &Regex, topic: &Topic) -> bool {
    regex.is_match(&topic.name) || topic.name.strip_suffix("/0").is_some_and(|name| regex.is_match(name))
}

/// Returns whether `pattern` is a regular expression for the whole name of one of `topics`.
fn fits_any(pattern: &str, topics: &[Topic]) -> bool {
    whole(pattern).is_ok_and(|regex| topics.iter().any(|topic| matches(&regex, topic)))
}

/// Selection of topics whose last value before the start is included.
#[derive(Clone, Default, clap::Args)]
pub(crate) struct LastBeforeArgs {
    /// With -S, include the last record before the start of topics whose full name matches;
    /// repeatable
    #[arg(short, long, value_name = "REGEX", value_parser = whole)]
    latched: Vec<Regex>,
}

impl LastBeforeArgs {
    pub(crate) fn is_empty(&self) -> bool {
        self.latched.is_empty()
    }

    /// Adds the last records before the start to `select`, for those of `topics` that match.
    pub(crate) fn add_to(&self, select: Select, topics: &[&Topic]) -> Select {
        if self.is_empty() {
            return select;
        }
        let latched = topics.iter().filter(|topic| self.latched.iter().any(|regex| matches(regex, topic)));
        select.with_last_before_of(latched.map(|topic| topic.name.clone()))
    }
}

impl TopicArgs {
    /// Returns whether no topic was selected or excluded.
    pub(crate) fn is_empty(&self) -> bool {
        self.include.is_empty() && self.exclude.is_empty() && self.topics.is_empty()
    }

    /// Returns whether `topic` is selected.
    pub(crate) fn keeps(&self, topic: &Topic) -> bool {
        if !self.topics.is_empty() {
            return self.topics.iter().any(|name| topic.answers_to(name));
        }
        if !self.include.is_empty() {
            return self.include.iter().any(|regex| matches(regex, topic));
        }
        !self.exclude.iter().any(|regex| matches(regex, topic))
    }

    /// Returns the selected topics; a name or pattern without a match is an error with similar
    /// names.
    pub(crate) fn pick<'a>(&self, topics: &'a [Topic]) -> Result<Vec<&'a Topic>, Failure> {
        self.demand(topics)?;
        Ok(topics.iter().filter(|topic| self.keeps(topic)).collect())
    }

    /// Returns an error if a name or a pattern matches none of `topics`.
    pub(crate) fn demand(&self, topics: &[Topic]) -> Result<(), Failure> {
        for name in &self.topics {
            if !topics.iter().any(|topic| topic.answers_to(name)) {
                let failure = unknown_topic(name, topics);
                let regex = name.replace('*', ".*").replace('?', ".");
                let fits = regex != *name && fits_any(&regex, topics);
                return Err(if fits {
                    failure.next(format!("for a pattern: -y '{regex}'"))
                } else {
                    failure
                });
            }
        }
        for regex in &self.include {
            if !topics.iter().any(|topic| matches(regex, topic)) {
                let pattern = regex.as_str().trim_start_matches("^(?:").trim_end_matches(")$");
                let longer = [format!("{pattern}.*"), format!(".*{pattern}.*")];
                let next = match longer.iter().find(|regex| fits_any(regex, topics)) {
                    Some(regex) => format!("for a part of the name: -y '{regex}'"),
                    None => near_topics(pattern, topics),
                };
                return Err(
                    Failure::usage(format!("no topic has a full name that matches {pattern}")).next(next)
                );
            }
        }
        Ok(())
    }
}

/// Returns the completions for `--topics`: the topics of the log named on the command line.
fn topic_names(current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(current) = current.to_str() else { return Vec::new() };
    // The command line, with the program's name first, follows `--`.
    let words = std::env::args_os().skip_while(|word| word != "--").skip(2);
    let log = words.filter(|word| Path::new(word).is_file()).find_map(|path| rovelog::open(path).ok());
    let topics = log.iter().flat_map(|log| log.topics());
    let names = topics.map(|topic| topic.name.clone()).filter(|name| name.starts_with(current));
    names.map(CompletionCandidate::new).collect()
}

/// Returns the error for an unknown topic.
pub(crate) fn unknown_topic(name: &str, topics: &[Topic]) -> Failure {
    Failure::usage(format!("the log has no topic {name}")).next(near_topics(name, topics))
}

fn near_topics(name: &str, topics: &[Topic]) -> String {
    if topics.is_empty() {
        return "the log has no topics".to_owned();
    }
    near(name, topics.iter().map(|topic| topic.name.as_str()), "rovelog topics FILE")
}

/// Returns `did you mean a, b or c? All of them: rovelog topics FILE`, with the three of `names`
/// that are most similar to `name`.
pub(crate) fn near<'a>(name: &str, names: impl Iterator<Item = &'a str>, all: &str) -> String {
    match nearest(name, names).as_slice() {
        [] => format!("list all: {all}"),
        [one] => format!("did you mean {one}? List all: {all}"),
        [rest @ .., last] => format!("did you mean {} or {last}? List all: {all}", rest.join(", ")),
    }
}

/// Maximum number of names that are compared with a misspelt one: a hostile log has 65 536.
const MOST_COMPARED: usize = 4096;

/// Returns the three of `names` that are most similar to `name`.
fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut ranked: Vec<_> = names.take(MOST_COMPARED).map(|other| (distance(name, other), other)).collect();
    ranked.sort_unstable();
    ranked.dedup();
    ranked.into_iter().take(3).map(|(_, name)| name).collect()
}

/// Returns the edit distance of two names, ignoring case; a part of a name is nearer than any
/// misspelling.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.to_lowercase(), b.to_lowercase());
    let b = b.strip_suffix("/0").unwrap_or(&b);
    if a.len() > 2 && b.contains(&a) {
        return 1;
    }
    strsim::levenshtein(&a, b) * 2
}

/// Parses a pattern for names of fields: it matches the field and everything inside it; `*` is any
/// text, `?` any character.
pub(crate) fn glob(text: &str) -> Result<Regex, String> {
    let pattern = regex::escape(text).replace(r"\*", ".*").replace(r"\?", ".");
    part(&format!(r"^{pattern}(?:$|[.\[])"))
}

/// Selection of fields.
#[derive(Clone, Default, clap::Args)]
pub(crate) struct FieldArgs {
    /// Only these fields, e.g. q, q[0], pos.*; topics without any of them are skipped
    #[arg(long, value_name = "GLOB,..", value_delimiter = ',', value_parser = Glob::new)]
    fields: Vec<Glob>,
}

/// A pattern for names of fields: it matches the field and everything inside it; `*` is any text,
/// `?` any character.
#[derive(Clone)]
struct Glob {
    text: String,
    regex: Regex,
}

impl Glob {
    fn new(text: &str) -> Result<Self, String> {
        Ok(Self { text: text.to_owned(), regex: glob(text)? })
    }
}

/// The selected leaves of a record, by index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    All,
    Leaves(Vec<bool>),
}

impl Keep {
    /// Returns whether the leaf with this index is selected.
    pub(crate) fn leaf(&self, place: usize) -> bool {
        match self {
            Self::All => true,
            Self::Leaves(leaves) => leaves.get(place).copied().unwrap_or(false),
        }
    }
}

impl FieldArgs {
    /// Returns the selected leaves of records with `schema`; `None` if no field is selected.
    pub(crate) fn keep(&self, schema: Option<&Schema>) -> Option<Keep> {
        if self.fields.is_empty() {
            return Some(Keep::All);
        }
        let schema = schema?;
        let kept: Vec<bool> = leaves(schema).iter().map(|name| self.keeps(name)).collect();
        kept.contains(&true).then_some(Keep::Leaves(kept))
    }

    /// Returns whether all fields are selected.
    pub(crate) fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Returns the paths of the selected fields of `topics` without indices, as for selecting
    /// columns: an array is kept whole. `None` for all.
    pub(crate) fn paths(&self, topics: &[&Topic]) -> Option<Vec<String>> {
        if self.fields.is_empty() {
            return None;
        }
        let names = topics.iter().filter_map(|topic| topic.schema.as_deref()).flat_map(leaves);
        let wanted = names.filter(|name| self.keeps(name));
        let mut paths: Vec<_> = wanted.map(|name| field_path(&name)).collect();
        paths.sort();
        paths.dedup();
        Some(paths)
    }

    /// Returns an error if a glob matches no field of `topics`.
    pub(crate) fn demand(&self, topics: &[&Topic]) -> Result<(), Failure> {
        let schemas = topics.iter().filter_map(|topic| topic.schema.as_deref());
        self.demand_of(&schemas.flat_map(leaves).collect::<Vec<_>>())
    }

    /// Returns an error if a glob matches none of `names`.
    pub(crate) fn demand_of(&self, names: &[String]) -> Result<(), Failure> {
        let missing = |glob: &&Glob| !names.iter().any(|name| glob.regex.is_match(name));
        let Some(glob) = self.fields.iter().find(missing) else { return Ok(()) };
        let near = near(&glob.text, names.iter().map(String::as_str), "rovelog schema FILE");
        Err(Failure::usage(format!("no selected topic has a field {}", glob.text)).next(near))
    }

    /// Returns whether the field with this flat name is selected.
    pub(crate) fn keeps(&self, name: &str) -> bool {
        self.fields.is_empty() || self.fields.iter().any(|glob| glob.regex.is_match(name))
    }
}

/// Returns the flat names of all leaves in the order of a record's values: `pos.x`, `q[0]`.
pub(crate) fn leaves(schema: &Schema) -> Vec<String> {
    let mut names = Vec::new();
    for field in &schema.fields {
        leaves_of(&field.name, &field.ty, &mut names);
    }
    names
}

fn leaves_of(path: &str, ty: &FieldType, names: &mut Vec<String>) {
    match ty {
        FieldType::Struct(schema) => {
            for field in &schema.fields {
                leaves_of(&format!("{path}.{}", field.name), &field.ty, names);
            }
        }
        FieldType::Array(element, len) => {
            for i in 0..*len {
                leaves_of(&format!("{path}[{i}]"), element, names);
            }
        }
        FieldType::Time | FieldType::Duration => {
            names.extend(["sec", "nsec"].map(|part| format!("{path}.{part}")));
        }
        _ => names.push(path.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rovelog::{Field, Scalar, TopicId};

    use super::*;

    fn topic(name: &str) -> Topic {
        Topic::new(TopicId(0), name.to_owned(), String::new(), None)
    }

    #[test]
    fn a_regex_has_to_match_the_whole_name() {
        let args = TopicArgs { include: vec![whole("vehicle_.*|imu/1").unwrap()], ..TopicArgs::default() };
        let kept = |name| args.keeps(&topic(name));
        assert!(kept("vehicle_status/0") && kept("imu/1"));
        assert!(!kept("my_vehicle_status/0") && !kept("imu/10"));
        let args = TopicArgs { exclude: vec![whole("imu").unwrap()], ..TopicArgs::default() };
        assert!(!args.keeps(&topic("imu/0")) && args.keeps(&topic("imu/1")));
        assert!(whole("a)|(b").is_err(), "the pattern may not break out of the anchors");
    }

    #[test]
    fn near_names_are_those_a_person_would_mean() {
        let names = ["vehicle_attitude/0", "vehicle_status/0", "battery_status/0", "imu/0"];
        assert_eq!(nearest("vehicle_atitude", names.into_iter())[0], "vehicle_attitude/0");
        assert_eq!(nearest("battery", names.into_iter())[0], "battery_status/0");
        assert_eq!(nearest("IMU", names.into_iter()).len(), 3);
        assert_eq!(nearest("IMU", names.into_iter())[0], "imu/0");
    }

    #[test]
    fn fields_are_selected_with_everything_inside() {
        let float = FieldType::Scalar(Scalar::Float32);
        let pos = Schema {
            name: "pos".into(),
            fields: vec![Field::new("x", float.clone(), "float"), Field::new("y", float.clone(), "float")],
        };
        let schema = Schema {
            name: "t".into(),
            fields: vec![
                Field::new("pos", FieldType::Struct(Arc::new(pos)), "pos"),
                Field::new("q", FieldType::Array(Box::new(float.clone()), 2), "float[2]"),
                Field::new("qq", float, "float"),
            ],
        };
        assert_eq!(leaves(&schema), ["pos.x", "pos.y", "q[0]", "q[1]", "qq"]);
        let kept = |globs: &[&str]| {
            let fields = globs.iter().map(|glob| Glob::new(glob).unwrap()).collect();
            FieldArgs { fields }
                .keep(Some(&schema))
                .map(|keep| (0..5).map(|i| u8::from(keep.leaf(i))).collect::<Vec<_>>())
        };
        assert_eq!(kept(&[]), Some(vec![1, 1, 1, 1, 1]));
        assert_eq!(kept(&["q"]), Some(vec![0, 0, 1, 1, 0]));
        assert_eq!(kept(&["q[1]", "pos.*"]), Some(vec![1, 1, 0, 1, 0]));
        assert_eq!(kept(&["?q"]), Some(vec![0, 0, 0, 0, 1]));
        assert_eq!(kept(&["*.y"]), Some(vec![0, 1, 0, 0, 0]));
        assert_eq!(kept(&["x"]), None);
    }
}
