//! Selection of topics by name or regular expression, and of fields as signals are named.

use std::ffi::OsStr;
use std::path::Path;

use clap_complete::{ArgValueCompleter, CompletionCandidate};
use regex::Regex;
use rovelog::core::select::field_path;
use rovelog::core::topic::short;
use rovelog::{LogReader, Select, Topic};
use rovelog_export::signal::{NoSignal, Pattern, Signal, Signals, near, split_list};
use rovelog_export::text::{self, Keep};

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
    regex.is_match(&topic.name) || regex.is_match(short(&topic.name))
}

/// Returns whether `pattern` is a regular expression for the whole name of one of `topics`.
fn fits_any<'a>(pattern: &str, mut topics: impl Iterator<Item = &'a Topic>) -> bool {
    whole(pattern).is_ok_and(|regex| topics.any(|topic| matches(&regex, topic)))
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

    /// Adds the last records before the start to `select`, for those of `topics` that match. A pattern
    /// without a match is an error with similar names.
    pub(crate) fn add_to(&self, select: Select, topics: &[&Topic]) -> Result<Select, Failure> {
        if self.is_empty() {
            return Ok(select);
        }
        self.latched.iter().try_for_each(|regex| demand_match(regex, topics.iter().copied(), "-l"))?;
        let latched = topics.iter().filter(|topic| self.latched.iter().any(|regex| matches(regex, topic)));
        Ok(select.with_last_before_of(latched.map(|topic| topic.name.clone())))
    }
}

impl TopicArgs {
    /// Returns the selection of topics with these exact names; all if there are none.
    pub(crate) fn named(topics: &[String]) -> Self {
        Self { topics: topics.to_vec(), ..Self::default() }
    }

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
                let fits = regex != *name && fits_any(&regex, topics.iter());
                return Err(if fits {
                    failure.next(format!("for a pattern: -y '{regex}'"))
                } else {
                    failure
                });
            }
        }
        self.include.iter().try_for_each(|regex| demand_match(regex, topics.iter(), "-y"))
    }
}

/// Returns an error if a regular expression, given with `option`, matches none of `topics`.
fn demand_match<'a>(
    regex: &Regex,
    topics: impl Iterator<Item = &'a Topic> + Clone,
    option: &str,
) -> Result<(), Failure> {
    if topics.clone().any(|topic| matches(regex, topic)) {
        return Ok(());
    }
    let pattern = regex.as_str().trim_start_matches("^(?:").trim_end_matches(")$");
    let longer = [format!("{pattern}.*"), format!("/{pattern}"), format!(".*{pattern}.*")];
    let next = match longer.iter().find(|regex| fits_any(regex, topics.clone())) {
        Some(regex) => format!("for a part of the name: {option} '{regex}'"),
        None => near_topics(pattern, topics),
    };
    Err(Failure::usage(format!("no topic has a full name that matches {pattern}")).next(next))
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
    Failure::usage(format!("the log has no topic {name}")).next(near_topics(name, topics.iter()))
}

fn near_topics<'a>(name: &str, topics: impl Iterator<Item = &'a Topic>) -> String {
    let mut names = topics.map(|topic| topic.name.as_str()).peekable();
    if names.peek().is_none() {
        return "the log has no topics".to_owned();
    }
    near(name, names, "rovelog topics FILE")
}

/// Selection of fields.
#[derive(Clone, Default, clap::Args)]
pub(crate) struct FieldArgs {
    /// Only these fields: q, q[0..2], {x,y}, pos.*, TOPIC.q; also expressions: norm(q), p=V1*I1.
    /// Topics without any of them are skipped
    #[arg(long, value_name = "FIELD,..", value_parser = FieldList::new)]
    fields: Vec<FieldList>,
}

/// Fields of one option: patterns of names, and what may be expressions.
#[derive(Clone)]
struct FieldList(Vec<(String, Option<Pattern>)>);

impl FieldList {
    fn new(text: &str) -> Result<Self, String> {
        let item = |text: &str| match Pattern::new(text) {
            Ok(pattern) => Ok((text.to_owned(), Some(pattern))),
            Err(_) if text.contains('(') => Ok((text.to_owned(), None)),
            Err(error) => Err(error),
        };
        split_list(text).map(item).collect::<Result<_, _>>().map(Self)
    }
}

/// Returns a failure of the arguments that says what would match.
pub(crate) fn no_signal(error: NoSignal) -> Failure {
    let failure = Failure::usage(error.cause);
    if error.next.is_empty() {
        failure.next("names and functions: rovelog plot --help")
    } else {
        failure.next(error.next)
    }
}

impl FieldArgs {
    /// Returns the selection of these fields and expressions; all fields if there are none.
    pub(crate) fn named(fields: &[String]) -> Result<Self, Failure> {
        let lists = fields.iter().map(|field| FieldList::new(field).map_err(Failure::usage));
        Ok(Self { fields: lists.collect::<Result<_, _>>()? })
    }

    /// Returns the selected leaves of a topic's records; `None` if no field is selected.
    pub(crate) fn keep(&self, topic: &Topic) -> Option<Keep> {
        if self.fields.is_empty() {
            return Some(Keep::All);
        }
        let schema = topic.schema.as_deref()?;
        let kept: Vec<bool> = text::names(schema).iter().map(|name| self.keeps(&topic.name, name)).collect();
        kept.contains(&true).then_some(Keep::Leaves(kept))
    }

    /// Returns the first item that has signs of an expression.
    pub(crate) fn expression(&self) -> Option<&str> {
        self.items().map(|(text, _)| &**text).find(|text| text.contains(SIGNS))
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
        let wanted = names_of(topics).filter(|(topic, name)| self.keeps(topic, name));
        let mut paths: Vec<_> = wanted.map(|(_, name)| field_path(&name)).collect();
        paths.sort();
        paths.dedup();
        Some(paths)
    }

    /// Returns an error if something matches no field of `topics`. Expressions are not known here.
    pub(crate) fn demand(&self, topics: &[&Topic]) -> Result<(), Failure> {
        self.demand_of(&names_of(topics).collect::<Vec<_>>())
    }

    /// Returns an error if something matches none of `names`, each with its topic.
    pub(crate) fn demand_of(&self, names: &[(&str, String)]) -> Result<(), Failure> {
        let Some((text, _)) = self.items().find(|(_, pattern)| !is_there(pattern.as_ref(), names)) else {
            return Ok(());
        };
        let near = near(text, names.iter().map(|(_, name)| &**name), "rovelog schema FILE");
        Err(Failure::usage(format!("no selected topic has a field {text}")).next(near))
    }

    /// Returns what is no field of `topics` as signals: derived fields and expressions, once for each
    /// topic that has their fields; with `joined`, those of several topics too.
    pub(crate) fn derived(
        &self,
        log: &dyn LogReader,
        topics: &[&Topic],
        joined: bool,
    ) -> Result<Vec<Signal>, Failure> {
        self.derived_besides(&names_of(topics).collect::<Vec<_>>(), log, topics, joined)
    }

    /// As [`derived`](Self::derived), where `names` are known, each with its topic.
    pub(crate) fn derived_besides(
        &self,
        names: &[(&str, String)],
        log: &dyn LogReader,
        topics: &[&Topic],
        joined: bool,
    ) -> Result<Vec<Signal>, Failure> {
        let mut derived = Vec::new();
        for (text, _) in self.items().filter(|(_, pattern)| !is_there(pattern.as_ref(), names)) {
            let of_each = topics.iter().map(|topic| Signals::among(log, &[topic]).find(text));
            let found: Vec<Signal> = of_each.flatten().flatten().collect();
            if !found.is_empty() {
                derived.extend(found);
                continue;
            }
            let all = Signals::among(log, topics).find(text);
            match all {
                Ok(signals) if joined => derived.extend(signals),
                Ok(_) => {
                    return Err(Failure::usage(format!("{text} uses several topics"))
                        .next("make one table of them: rovelog export FILE --on TOPIC --join TOPIC"));
                }
                Err(error) if text.contains(SIGNS) => return Err(no_signal(error)),
                Err(_) => self.demand_of(names)?,
            }
        }
        Ok(derived)
    }

    /// Returns whether the field of a topic with this flat name is selected.
    pub(crate) fn keeps(&self, topic: &str, name: &str) -> bool {
        self.fields.is_empty()
            || self
                .items()
                .any(|(_, pattern)| pattern.as_ref().is_some_and(|it| matches_field(it, topic, name)))
    }

    fn items(&self) -> impl Iterator<Item = &(String, Option<Pattern>)> {
        self.fields.iter().flat_map(|list| &list.0)
    }
}

/// Signs of an expression.
const SIGNS: [char; 5] = ['(', '+', '-', ' ', '='];

/// Returns whether a pattern matches a field, with its topic or without.
fn matches_field(pattern: &Pattern, topic: &str, name: &str) -> bool {
    let short = short(topic);
    pattern.matches(name)
        || pattern.matches(&format!("{short}.{name}"))
        || (short != topic && pattern.matches(&format!("{topic}.{name}")))
}

fn is_there(pattern: Option<&Pattern>, names: &[(&str, String)]) -> bool {
    pattern.is_some_and(|pattern| names.iter().any(|(topic, name)| matches_field(pattern, topic, name)))
}

/// Returns the fields of topics by topic and flat name.
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
        let args = TopicArgs { include: vec![whole("vehicle_.*|imu/1").unwrap()], ..TopicArgs::default() };
        let kept = |name| args.keeps(&topic(name));
        assert!(kept("vehicle_status/0") && kept("imu/1"));
        assert!(!kept("my_vehicle_status/0") && !kept("imu/10"));
        let args = TopicArgs { exclude: vec![whole("imu").unwrap()], ..TopicArgs::default() };
        assert!(!args.keeps(&topic("imu/0")) && args.keeps(&topic("imu/1")));
        assert!(whole("a)|(b").is_err(), "the pattern may not break out of the anchors");
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
        let schema = Arc::new(schema);
        assert_eq!(text::names(&schema), ["pos.x", "pos.y", "q[0]", "q[1]", "qq"]);
        let kept = |globs: &[&str]| {
            let fields = globs.iter().map(|glob| FieldList::new(glob).unwrap()).collect();
            let mut topic = topic("t/0");
            topic.schema = Some(Arc::clone(&schema));
            FieldArgs { fields }
                .keep(&topic)
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
