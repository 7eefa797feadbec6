//! Options that select topics and fields. Topics are selected by name or by regular expression.
//! Fields are selected by paths or expressions, in the syntax of signals.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::path::Path;

use clap_complete::engine::{PathCompleter, ValueCompleter as _};
use clap_complete::{ArgValueCompleter, CompletionCandidate};
use regex::Regex;
use rovelog::core::internal::topic::short;
use rovelog::core::select::field_path;
use rovelog::{AnyLog, LogReader, Select, Topic};
use rovelog_export::signal::{NoSignal, Pattern, Signal, Signals, measured_fields, split_list, suggest};
use rovelog_export::text::{self, Keep};

use crate::context::Context;
use crate::failure::Failure;
use crate::text::count;

/// Options that select topics.
#[derive(Clone, Default, clap::Args)]
pub(crate) struct TopicArgs {
    /// Use only topics whose whole name matches this regular expression; repeatable
    #[arg(short = 'y', long, value_name = "REGEX", value_parser = whole_name, conflicts_with_all = ["exclude", "topics"])]
    include: Vec<Regex>,
    /// Leave out topics whose whole name matches this regular expression; repeatable
    #[arg(short = 'n', long, value_name = "REGEX", value_parser = whole_name, conflicts_with = "topics")]
    exclude: Vec<Regex>,
    /// Use only the topics with these names; imu means imu/0
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', add = ArgValueCompleter::new(topic_names))]
    topics: Vec<String>,
}

/// Parses a regular expression that must match the whole name of a topic.
fn whole_name(pattern: &str) -> Result<Regex, String> {
    // The pattern is also parsed without the added parentheses. Otherwise the invalid pattern
    // `a)|(b` would become the valid pattern `(?:a)|(b)`.
    partial_name(pattern)?;
    partial_name(&format!("^(?:{pattern})$"))
}

/// Parses a regular expression that may match any part of a name.
pub(crate) fn partial_name(pattern: &str) -> Result<Regex, String> {
    // The last line of the error message describes the problem. The lines before it only show its
    // position in the pattern.
    Regex::new(pattern).map_err(|error| {
        let error = error.to_string();
        error.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
    })
}

/// Returns true if `regex` matches the whole name of `topic`. If the name ends with `/0`, the name
/// without this instance number may match instead.
fn matches(regex: &Regex, topic: &Topic) -> bool {
    regex.is_match(&topic.name) || regex.is_match(short(&topic.name))
}

/// Returns true if `pattern` is a valid regular expression that matches the whole name of at least
/// one of `topics`.
fn fits_any<'a>(pattern: &str, mut topics: impl Iterator<Item = &'a Topic>) -> bool {
    whole_name(pattern).is_ok_and(|regex| topics.any(|topic| matches(&regex, topic)))
}

/// Option that adds the last record before the start of the time window. It is useful for topics
/// that are published once, such as `/tf_static`.
#[derive(Clone, Default, clap::Args)]
pub(crate) struct LastBeforeArgs {
    /// With -S: also include the last record before the start, for topics whose whole name matches
    /// this regular expression; repeatable
    #[arg(short, long, value_name = "REGEX", value_parser = whole_name)]
    latched: Vec<Regex>,
}

impl LastBeforeArgs {
    pub(crate) fn is_empty(&self) -> bool {
        self.latched.is_empty()
    }

    /// Selects, in addition, the last record before the time window for each topic that the
    /// patterns match. If a pattern matches no topic, returns an error that suggests similar names.
    pub(crate) fn add_to(&self, select: Select, topics: &[&Topic]) -> Result<Select, Failure> {
        if self.is_empty() {
            return Ok(select);
        }
        self.latched.iter().try_for_each(|regex| require_match(regex, topics.iter().copied(), "-l"))?;
        let latched = topics.iter().filter(|topic| self.latched.iter().any(|regex| matches(regex, topic)));
        Ok(select.with_last_before_of(latched.map(|topic| topic.name.clone())))
    }
}

impl TopicArgs {
    /// Selects the topics with these exact names, or all topics if `topics` is empty.
    pub(crate) fn named(topics: &[String]) -> Self {
        Self { topics: topics.to_vec(), ..Self::default() }
    }

    /// Returns true if the user gave no option that selects or excludes topics.
    pub(crate) fn is_empty(&self) -> bool {
        self.include.is_empty() && self.exclude.is_empty() && self.topics.is_empty()
    }

    /// Returns true if the options select `topic`.
    pub(crate) fn selects(&self, topic: &Topic) -> bool {
        if !self.topics.is_empty() {
            return self.topics.iter().any(|name| topic.answers_to(name));
        }
        if !self.include.is_empty() {
            return self.include.iter().any(|regex| matches(regex, topic));
        }
        !self.exclude.iter().any(|regex| matches(regex, topic))
    }

    /// Returns the topics that the options select. If a name or pattern matches no topic, returns
    /// an error that suggests similar names.
    pub(crate) fn pick<'a>(&self, topics: &'a [Topic]) -> Result<Vec<&'a Topic>, Failure> {
        self.require_matches(topics)?;
        Ok(topics.iter().filter(|topic| self.selects(topic)).collect())
    }

    /// Returns an error that suggests similar names if a name or pattern matches none of `topics`.
    pub(crate) fn require_matches(&self, topics: &[Topic]) -> Result<(), Failure> {
        for name in &self.topics {
            if !topics.iter().any(|topic| topic.answers_to(name)) {
                // Users often write shell patterns such as `vehicle_*` here, so the message shows
                // the equivalent regular expression.
                let failure = unknown_topic(name, topics);
                let regex = name.replace('*', ".*").replace('?', ".");
                let fits = regex != *name && fits_any(&regex, topics.iter());
                return Err(if fits {
                    failure.next(format!("to select topics by a pattern, use -y '{regex}'"))
                } else {
                    failure
                });
            }
        }
        self.include.iter().try_for_each(|regex| require_match(regex, topics.iter(), "-y"))
    }
}

/// Prints a note about each topic that continues one of the `selected` topics, but is not selected
/// itself. For example, `t/0#2` continues `t/0` after another format was subscribed.
pub(crate) fn note_further_series(log: &dyn LogReader, selected: &[&Topic], context: &Context) {
    let selected: HashSet<&str> = selected.iter().map(|topic| &*topic.name).collect();
    for topic in log.topics().iter().filter(|topic| topic.count > 0 && !selected.contains(&*topic.name)) {
        if let Some((name, _)) = topic.name.rsplit_once('#')
            && selected.contains(name)
        {
            let records = count(topic.count, "record");
            context.note(&format!(
                "{} with {records} continues {name}, but is not selected; to select both: --topics {name},{}",
                topic.name, topic.name
            ));
        }
    }
}

/// Returns an error if the regular expression `regex` matches none of `topics`. `option` is the
/// option by which the user gave it.
fn require_match<'a>(
    regex: &Regex,
    topics: impl Iterator<Item = &'a Topic> + Clone,
    option: &str,
) -> Result<(), Failure> {
    if topics.clone().any(|topic| matches(regex, topic)) {
        return Ok(());
    }
    let pattern = regex.as_str().trim_start_matches("^(?:").trim_end_matches(")$");
    // Users often give a pattern that matches only a part of a name. The shortest longer pattern
    // that matches a whole name is suggested.
    let longer = [format!("{pattern}.*"), format!("/{pattern}"), format!(".*{pattern}.*")];
    let next = match longer.iter().find(|regex| fits_any(regex, topics.clone())) {
        Some(regex) => format!("to match a part of a name, use {option} '{regex}'"),
        None => suggest_topics(pattern, topics),
    };
    Err(Failure::usage(format!("no topic has a name that matches {pattern} as a whole")).next(next))
}

/// Opens the log on the command line that is completed. A completion must not print errors. If the
/// log cannot be opened, there are no completions.
fn completed_log() -> Option<AnyLog> {
    // The shell passes the command line after `--`. The first word is the name of the program.
    let words = std::env::args_os().skip_while(|word| word != "--").skip(2);
    words.filter(|word| Path::new(word).is_file()).find_map(|path| rovelog::open(path).ok())
}

/// Returns the completions for `--topics`. These are the topics of the log named on the command
/// line.
fn topic_names(current: &OsStr) -> Vec<CompletionCandidate> {
    let log = completed_log();
    let topics = log.iter().flat_map(|log| log.topics());
    completions(current, topics.map(|topic| topic.name.clone()))
}

/// Returns the completions for `--fields`. These are the fields of all topics of the log named on
/// the command line.
fn field_names(current: &OsStr) -> Vec<CompletionCandidate> {
    let log = completed_log();
    let fields: BTreeSet<String> = log.iter().flat_map(signals).map(|(_, field)| field).collect();
    completions(current, fields)
}

/// Returns the completions for signals, such as `battery_status.voltage_v`, of the log named on the
/// command line. The argument may also be a file.
pub(crate) fn signal_names(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut found = PathCompleter::any().complete(current);
    let log = completed_log();
    let names = log.iter().flat_map(signals).map(|(topic, field)| format!("{topic}.{field}"));
    found.extend(completions(current, names));
    found
}

/// Returns the topic and the name of each measured field.
fn signals(log: &AnyLog) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for topic in log.topics().iter().filter(|topic| topic.count > 0) {
        let fields = measured_fields(&**log, topic).unwrap_or_default();
        found.extend(fields.into_iter().map(|field| (short(&topic.name).to_owned(), field)));
    }
    found
}

/// Returns the names that continue the last element of a list that is separated by commas.
fn completions(current: &OsStr, names: impl IntoIterator<Item = String>) -> Vec<CompletionCandidate> {
    let Some(current) = current.to_str() else { return Vec::new() };
    let start = current.rfind(',').map_or(0, |comma| comma + 1);
    let (before, last) = current.split_at(start);
    let names = names.into_iter().filter(|name| name.starts_with(last));
    names.map(|name| CompletionCandidate::new(format!("{before}{name}"))).collect()
}

/// Returns the failure for a topic that does not exist in the log. It suggests similar names.
pub(crate) fn unknown_topic(name: &str, topics: &[Topic]) -> Failure {
    Failure::usage(format!("the log has no topic {name}")).next(suggest_topics(name, topics.iter()))
}

/// Returns advice with the names of topics that are similar to `name`.
fn suggest_topics<'a>(name: &str, topics: impl Iterator<Item = &'a Topic>) -> String {
    let mut names = topics.map(|topic| topic.name.as_str()).peekable();
    if names.peek().is_none() {
        return "choose another log, because this log has no topics".to_owned();
    }
    suggest(name, names, "rovelog topics FILE")
}

/// Options that select fields of topics.
#[derive(Clone, Default, clap::Args)]
pub(crate) struct FieldArgs {
    /// Use only these fields (q, q[0..2], {x,y}, pos.*, TOPIC.q) and computed values (norm(q),
    /// p=V1*I1); topics without any of them are left out
    #[arg(long, value_name = "FIELD,..", value_parser = FieldList::new)]
    #[arg(add = ArgValueCompleter::new(field_names))]
    fields: Vec<FieldList>,
}

/// Items of one `--fields` option.
#[derive(Clone)]
struct FieldList(Vec<FieldItem>);

impl FieldList {
    fn new(text: &str) -> Result<Self, String> {
        split_list(text).map(FieldItem::new).collect::<Result<_, _>>().map(Self)
    }
}

/// A field or an expression that the user selected.
#[derive(Clone)]
struct FieldItem {
    text: String,
    /// Pattern parsed from the text. `None` if the text can only be an expression.
    pattern: Option<Pattern>,
}

impl FieldItem {
    fn new(text: &str) -> Result<Self, String> {
        let pattern = match Pattern::new(text) {
            Ok(pattern) => Some(pattern),
            // A text with a parenthesis is not a pattern, but it may be a function call.
            // Expressions are parsed later, when the topics of the log are known.
            Err(_) if text.contains('(') => None,
            Err(error) => return Err(error),
        };
        Ok(Self { text: text.to_owned(), pattern })
    }

    /// Returns true if the pattern matches the name of a field, either alone or preceded by the
    /// name of its topic.
    fn matches(&self, topic: &str, name: &str) -> bool {
        let Some(pattern) = &self.pattern else { return false };
        let short = short(topic);
        pattern.matches(name)
            || pattern.matches(&format!("{short}.{name}"))
            || (short != topic && pattern.matches(&format!("{topic}.{name}")))
    }

    /// Returns true if the pattern matches at least one of `names`, which are pairs of topic and
    /// field.
    fn matches_any(&self, names: &[(&str, String)]) -> bool {
        names.iter().any(|(topic, name)| self.matches(topic, name))
    }
}

/// Converts the error for a signal that does not exist to a failure with advice.
pub(crate) fn signal_failure(error: NoSignal) -> Failure {
    let failure = Failure::usage(error.cause);
    if error.next.is_empty() {
        failure.next("for the names of signals and the functions, see rovelog plot --help")
    } else {
        failure.next(error.next)
    }
}

impl FieldArgs {
    /// Selects the fields and expressions in `fields`. If `fields` is empty, selects all fields.
    pub(crate) fn named(fields: &[String]) -> Result<Self, Failure> {
        let lists = fields.iter().map(|field| FieldList::new(field).map_err(Failure::usage));
        Ok(Self { fields: lists.collect::<Result<_, _>>()? })
    }

    /// Returns the selected fields of a topic, including nested fields and array elements. Returns
    /// `None` if no field of the topic is selected.
    pub(crate) fn selected_leaves(&self, topic: &Topic) -> Option<Keep> {
        if self.fields.is_empty() {
            return Some(Keep::All);
        }
        let schema = topic.schema.as_deref()?;
        let kept: Vec<bool> =
            text::names(schema).iter().map(|name| self.selects(&topic.name, name)).collect();
        kept.contains(&true).then_some(Keep::Leaves(kept))
    }

    /// Returns the first of the selected fields that looks like an expression.
    pub(crate) fn expression(&self) -> Option<&str> {
        self.items().map(|item| &*item.text).find(|text| text.contains(SIGNS))
    }

    /// Returns true if no option selects fields, so that all fields are selected.
    pub(crate) fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Returns the paths of the selected fields in `topics`. Returns `None` if all fields are
    /// selected. The paths contain no array indices, because arrays are selected as whole columns.
    pub(crate) fn paths(&self, topics: &[&Topic]) -> Option<Vec<String>> {
        if self.fields.is_empty() {
            return None;
        }
        let wanted = names_of(topics).filter(|(topic, name)| self.selects(topic, name));
        let mut paths: Vec<_> = wanted.map(|(_, name)| field_path(&name)).collect();
        paths.sort();
        paths.dedup();
        Some(paths)
    }

    /// Returns an error if a field given by the user matches no field of `topics`. If the user may
    /// also give expressions, use [`derived`](Self::derived) instead.
    pub(crate) fn require_matches(&self, topics: &[&Topic]) -> Result<(), Failure> {
        self.require_matches_in(&names_of(topics).collect::<Vec<_>>())
    }

    /// Returns an error if a field given by the user matches none of `names`, which are pairs of
    /// topic and field.
    pub(crate) fn require_matches_in(&self, names: &[(&str, String)]) -> Result<(), Failure> {
        let Some(FieldItem { text, .. }) = self.items().find(|item| !item.matches_any(names)) else {
            return Ok(());
        };
        let near = suggest(text, names.iter().map(|(_, name)| &**name), "rovelog schema FILE");
        Err(Failure::usage(format!("no selected topic has a field {text}")).next(near))
    }

    /// Returns the signals for those items of `--fields` that are derived fields or expressions,
    /// and not fields of a topic. If several topics have the fields that an item needs, the item
    /// becomes one signal for each of these topics. If `joined` is true, an expression may use
    /// fields of several topics.
    pub(crate) fn derived(
        &self,
        log: &dyn LogReader,
        topics: &[&Topic],
        joined: bool,
    ) -> Result<Vec<Signal>, Failure> {
        self.derived_except(&names_of(topics).collect::<Vec<_>>(), log, topics, joined)
    }

    /// Returns the signals for those items of `--fields` that match none of `names`. `names` are
    /// the existing fields, as pairs of topic and field. The signals are found as in
    /// [`derived`](Self::derived).
    pub(crate) fn derived_except(
        &self,
        names: &[(&str, String)],
        log: &dyn LogReader,
        topics: &[&Topic],
        joined: bool,
    ) -> Result<Vec<Signal>, Failure> {
        let mut derived = Vec::new();
        for FieldItem { text, .. } in self.items().filter(|item| !item.matches_any(names)) {
            // Several topics may have the fields of an expression such as `norm(q)`, so the
            // expression is tried with each topic alone.
            let of_each = topics.iter().map(|topic| Signals::among(log, &[topic]).find(text));
            let found: Vec<Signal> = of_each.flatten().flatten().collect();
            if !found.is_empty() {
                derived.extend(found);
                continue;
            }
            // No single topic has all fields of the expression, so it is tried with all topics
            // together.
            let all = Signals::among(log, topics).find(text);
            match all {
                Ok(signals) if joined => derived.extend(signals),
                Ok(_) => {
                    return Err(Failure::usage(format!(
                        "the expression {text} uses fields of several topics, which this command cannot \
                         combine"
                    ))
                    .next("join the topics into one table: rovelog export FILE --on TOPIC --join TOPIC"));
                }
                Err(error) if text.contains(SIGNS) => return Err(signal_failure(error)),
                Err(_) => self.require_matches_in(names)?,
            }
        }
        Ok(derived)
    }

    /// Returns true if the options select the field `name` of `topic`. `name` includes the path and
    /// the array index, as in `q[0]`.
    pub(crate) fn selects(&self, topic: &str, name: &str) -> bool {
        self.fields.is_empty() || self.items().any(|item| item.matches(topic, name))
    }

    fn items(&self) -> impl Iterator<Item = &FieldItem> {
        self.fields.iter().flat_map(|list| &list.0)
    }
}

/// Characters that occur in expressions but not in field patterns.
const SIGNS: [char; 5] = ['(', '+', '-', ' ', '='];

/// Returns all fields of `topics` as pairs of topic and field, including nested fields. Names of
/// fields include the path and the array index, as in `pos.x` and `q[0]`.
fn names_of<'a>(topics: &[&'a Topic]) -> impl Iterator<Item = (&'a str, String)> {
    topics.iter().flat_map(|topic| {
        let leaves = topic.schema.as_deref().map(text::names).unwrap_or_default();
        leaves.into_iter().map(|name| (&*topic.name, name))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rovelog::{Field, FieldType, Scalar, Schema, TopicId};

    use super::*;

    fn topic(name: &str) -> Topic {
        Topic::new(TopicId(0), name.to_owned(), String::new(), None)
    }

    #[test]
    fn a_regex_has_to_match_the_whole_name() {
        let args =
            TopicArgs { include: vec![whole_name("vehicle_.*|imu/1").unwrap()], ..TopicArgs::default() };
        let kept = |name| args.selects(&topic(name));
        assert!(kept("vehicle_status/0") && kept("imu/1"));
        assert!(!kept("my_vehicle_status/0") && !kept("imu/10"));
        let args = TopicArgs { exclude: vec![whole_name("imu").unwrap()], ..TopicArgs::default() };
        assert!(!args.selects(&topic("imu/0")) && args.selects(&topic("imu/1")));
        assert!(whole_name("a)|(b").is_err(), "the pattern may not break out of the anchors");
    }

    #[test]
    fn selecting_a_field_selects_its_leaves() {
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
        let schema = Arc::new(schema);
        assert_eq!(text::names(&schema), ["pos.x", "pos.y", "q[0]", "q[1]", "qq"]);
        let kept = |globs: &[&str]| {
            let fields = globs.iter().map(|glob| FieldList::new(glob).unwrap()).collect();
            let mut topic = topic("t/0");
            topic.schema = Some(Arc::clone(&schema));
            FieldArgs { fields }
                .selected_leaves(&topic)
                .map(|keep| (0..5).map(|i| u8::from(keep.leaf(i))).collect::<Vec<_>>())
        };
        assert_eq!(kept(&[]), Some(vec![1, 1, 1, 1, 1]));
        assert_eq!(kept(&["q"]), Some(vec![0, 0, 1, 1, 0]));
        assert_eq!(kept(&["q[1]", "pos.*"]), Some(vec![1, 1, 0, 1, 0]));
        assert_eq!(kept(&["?q"]), Some(vec![0, 0, 0, 0, 1]));
        assert_eq!(kept(&["*.y"]), Some(vec![0, 1, 0, 0, 0]));
        assert_eq!(kept(&["x"]), None);
        assert_eq!(kept(&["{pos,q[0..0]}"]), Some(vec![1, 1, 1, 0, 0]));
        assert_eq!(kept(&["t.pos.x,t/0.qq"]), Some(vec![1, 0, 0, 0, 1]));
    }
}
