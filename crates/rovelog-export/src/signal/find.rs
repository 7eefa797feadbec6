//! Finds the signals of a log by name, pattern or expression.

use std::cell::OnceCell;

use rovelog::core::internal::topic::short;
use rovelog::{Error, LogReader, Topic};

use super::expression::Node;
use super::fields::{NamedField, measured_fields, named_fields};
use super::parse::{Scope, parse};
use super::pattern::{Pattern, around, is_match};
use super::suggest::{NoSignal, suggest};
use super::unit::Unit;
use crate::meaning;

/// A field that a signal uses.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Operand {
    /// Full name of the topic, such as `vehicle_attitude/0`.
    pub(crate) topic: String,
    /// Flat name of the field, such as `q[0]`.
    pub(crate) field: String,
    unit: Option<Unit>,
}

/// A value over time: either a field of a topic, or an expression that uses fields.
#[derive(Clone, Debug, PartialEq)]
pub struct Signal {
    name: String,
    unit: Option<String>,
    pub(super) node: Node,
    pub(super) operands: Vec<Operand>,
    /// Number of functions that depend on earlier rows, such as `derivative`.
    pub(super) memory_count: usize,
}

impl Signal {
    /// Creates a signal for a field of a topic. `field` is a flat name such as `q[0]`.
    pub fn of(topic: &str, field: &str) -> Self {
        let operand = Operand { topic: topic.to_owned(), field: field.to_owned(), unit: None };
        let name = format!("{}.{field}", short(topic));
        Self { name, unit: None, node: Node::Field(0), operands: vec![operand], memory_count: 0 }
    }

    /// Returns the topic and field, such as `vehicle_attitude.q[0]`. For an expression, returns the
    /// name that the user gave it, or its text.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the name without the topic, such as `q.roll` for `vehicle_attitude.q.roll`.
    pub fn name_in(&self, topic: &str) -> &str {
        let inside = self.name.strip_prefix(short(topic)).and_then(|name| name.strip_prefix('.'));
        inside.unwrap_or(&self.name)
    }

    /// Returns the unit of the values, if it is known.
    pub fn unit(&self) -> Option<&str> {
        self.unit.as_deref()
    }

    /// Returns the names of the topics that the signal uses. The signal has a value at each time of
    /// the first topic.
    pub fn topics(&self) -> Vec<&str> {
        let mut topics: Vec<&str> = Vec::new();
        for operand in &self.operands {
            if !topics.contains(&&*operand.topic) {
                topics.push(&operand.topic);
            }
        }
        topics
    }

    /// Returns the topic and field if the signal is a single field, and `None` otherwise.
    pub fn field(&self) -> Option<(&str, &str)> {
        match (&self.node, &self.operands[..]) {
            (Node::Field(0), [operand]) => Some((&operand.topic, &operand.field)),
            _ => None,
        }
    }

    /// Returns the flat names of the fields that the signal uses.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &str> {
        self.operands.iter().map(|operand| &*operand.field)
    }

    /// Returns whether the value in a row depends on earlier rows.
    pub(crate) fn has_memory(&self) -> bool {
        self.node.has_memory()
    }

    /// Returns the compared side of a condition as a signal, such as `x` in `x > 2`.
    pub(super) fn compared(&self) -> Self {
        let node = self.node.compared().clone();
        let unit = node.unit(&self.units()).ok().flatten();
        Self { unit, node, ..self.clone() }
    }

    pub(super) fn units(&self) -> Vec<Option<Unit>> {
        self.operands.iter().map(|operand| operand.unit).collect()
    }
}

/// A field of a log, given by the index of its topic and its index in the topic.
#[derive(Clone, Copy)]
struct FieldId {
    topic: usize,
    field: usize,
}

/// Part of a field name that is compared with a text.
#[derive(Clone, Copy)]
enum NamePart {
    Full,
    /// The last parts of a name. For example, `x` is the end of `pos.x`.
    End,
}

/// Looks up the signals of a log. The fields of a topic are read when they are first needed.
pub struct Signals<'a> {
    log: &'a dyn LogReader,
    /// Sorted indices of the topics to search.
    topics: Vec<usize>,
    /// The fields of each topic in `topics`. They are read when they are first needed.
    known: Vec<OnceCell<Result<Vec<NamedField>, NoSignal>>>,
}

impl<'a> Signals<'a> {
    /// Creates a lookup that searches all topics of a log.
    pub fn new(log: &'a dyn LogReader) -> Self {
        Self::among(log, &log.topics().iter().collect::<Vec<_>>())
    }

    /// Creates a lookup that searches only these topics of a log.
    pub fn among(log: &'a dyn LogReader, topics: &[&Topic]) -> Self {
        let mut topics: Vec<usize> = topics.iter().map(|topic| topic.id.index()).collect();
        topics.sort_unstable();
        topics.dedup();
        Self { log, known: topics.iter().map(|_| OnceCell::new()).collect(), topics }
    }

    /// Returns the signals that a text names. The text is one of:
    ///
    /// - a field with its topic: `TOPIC.FIELD`,
    /// - a field alone, if only one topic has such a field,
    /// - an array, a struct or a topic, which stands for all of its fields,
    /// - a pattern such as `q[0..2]`,
    /// - an expression such as `V1 * I1H`, or `NAME=EXPRESSION` to name the result.
    ///
    /// # Errors
    /// Returns an error if no signal matches, if several topics have the field, or if an expression
    /// combines incompatible units.
    pub fn find(&self, text: &str) -> Result<Vec<Signal>, NoSignal> {
        let text = text.trim();
        let (name, body) = named(text);
        let unnamed = if name.is_none() { self.matching(body) } else { Err(NoSignal::new("", "")) };
        match unnamed {
            Ok(signals) => Ok(signals),
            Err(missing) if name.is_some() || is_expression(body) => {
                let mut signal = self.expression(body).map_err(|error| {
                    // `gyro*` may be an incomplete product, but is most likely meant as a pattern.
                    if error.next.is_empty() && !missing.cause.is_empty() && body.ends_with('*') {
                        missing
                    } else {
                        error
                    }
                })?;
                name.unwrap_or(text).clone_into(&mut signal.name);
                Ok(vec![signal])
            }
            Err(missing) => Err(missing),
        }
    }

    /// Returns the signal that a text names. The text must name a single signal.
    ///
    /// # Errors
    /// Returns the errors of [`find`](Self::find), and an error if the text names several signals.
    pub fn one(&self, text: &str) -> Result<Signal, NoSignal> {
        let mut found = self.find(text)?;
        match (found.pop(), found.first()) {
            (Some(signal), None) => Ok(signal),
            (_, first) => {
                let first = first.map_or("", |signal| signal.name());
                Err(NoSignal::new(format!("{text} names several signals"), format!("name one: {first}")))
            }
        }
    }

    /// Parses an expression.
    ///
    /// # Errors
    /// Returns the errors of [`find`](Self::find).
    pub(super) fn expression(&self, text: &str) -> Result<Signal, NoSignal> {
        self.expression_in(text, None)
    }

    /// Parses an expression. If `topic` is given, names are looked up in this topic first.
    fn expression_in(&self, text: &str, topic: Option<usize>) -> Result<Signal, NoSignal> {
        let mut scope = Fields { signals: self, topic, operands: Vec::new(), error: None, depth: 0 };
        let parsed = parse(text, &mut scope);
        let Fields { operands, error, .. } = scope;
        let (node, memory_count) = parsed.map_err(|cause| match error {
            // The parser returns only the text of a lookup error. The complete error also has the
            // hint.
            Some(error) if error.cause == cause => error,
            _ => NoSignal::new(cause, ""),
        })?;
        if operands.is_empty() {
            return Err(NoSignal::new(
                format!("{text} contains no signal"),
                "name a field in the expression, such as V1 * 2",
            ));
        }
        let units: Vec<_> = operands.iter().map(|operand| operand.unit).collect();
        let unit = node.unit(&units).map_err(|error| NoSignal::new(format!("{text}: {error}"), ""))?;
        Ok(Signal { name: text.to_owned(), unit, node, operands, memory_count })
    }

    /// Returns the signals whose names match a pattern.
    fn matching(&self, text: &str) -> Result<Vec<Signal>, NoSignal> {
        let pattern = Pattern::new(text).map_err(|error| NoSignal::new(error, ""))?;
        let mut signals = Vec::new();
        for choice in &pattern.choices {
            for id in self.matches(choice)? {
                let signal = self.signal(id)?;
                if !signals.contains(&signal) {
                    signals.push(signal);
                }
            }
        }
        Ok(signals)
    }

    /// Returns the signal for a field.
    fn signal(&self, FieldId { topic, field }: FieldId) -> Result<Signal, NoSignal> {
        let known = &self.fields(topic)?[field];
        let name = format!("{}.{}", short(&self.log.topics()[topic].name), known.name);
        if let Some(text) = &known.expression {
            return Ok(Signal { name, ..self.expression_in(text, Some(topic))? });
        }
        Ok(Signal { name, unit: known.unit.clone(), ..self.plain(topic, known) })
    }

    fn plain(&self, topic: usize, known: &NamedField) -> Signal {
        let mut signal = Signal::of(&self.log.topics()[topic].name, &known.name);
        signal.operands[0].unit = known.unit.as_deref().and_then(Unit::parse);
        signal
    }

    fn fields(&self, topic: usize) -> Result<&[NamedField], NoSignal> {
        let Ok(at) = self.topics.binary_search(&topic) else { return Ok(&[]) };
        let of = &self.log.topics()[topic];
        let fields =
            self.known[at].get_or_init(|| named_fields(self.log, of).map_err(|error| unreadable(of, &error)));
        fields.as_deref().map_err(Clone::clone)
    }

    /// Returns every field that a glob matches. Topic names may contain dots, so each `.` in the
    /// glob is tried as the end of the topic name.
    fn matches(&self, name: &str) -> Result<Vec<FieldId>, NoSignal> {
        let topics = self.log.topics();
        let is_topic = |Topic { name: topic, .. }: &Topic, name: &str| {
            is_match(name, topic) || (is_match(name, short(topic)) && label(self.log, topic) != topic)
        };
        let mut found = Vec::new();
        // The last topic that the start of the glob names, and the field that the topic may lack.
        let mut missing = None;
        for (i, topic) in self.topics.iter().map(|i| (*i, &topics[*i])) {
            if is_topic(topic, name) {
                let measured = measured_fields(self.log, topic).map_err(|error| unreadable(topic, &error))?;
                found.extend(self.fields_where(i, |known| measured.contains(&known.name))?);
                missing = Some((i, ""));
                continue;
            }
            for (dot, _) in name.match_indices('.') {
                if is_topic(topic, &name[..dot]) {
                    let field = &name[dot + 1..];
                    missing = Some((i, field));
                    let mut inside = self.fields_named(i, field, NamePart::Full)?;
                    if inside.is_empty() {
                        inside = self.fields_named(i, field, NamePart::End)?;
                        self.check_unambiguous(i, field, &inside)?;
                    }
                    found.extend(inside);
                }
            }
        }
        if !found.is_empty() {
            return Ok(found);
        }
        match missing {
            Some((topic, field)) => Err(self.no_field(topic, field)),
            None => self.fields_of_any_topic(name),
        }
    }

    /// Returns the fields with a name that is given without a topic. Topics without rows are
    /// ignored.
    ///
    /// # Errors
    /// Returns an error if no topic or several topics have such fields.
    fn fields_of_any_topic(&self, name: &str) -> Result<Vec<FieldId>, NoSignal> {
        let topics = self.log.topics();
        let find = |part: NamePart| {
            let with_rows = self.topics.iter().filter(|topic| topics[**topic].count > 0);
            let found = with_rows.map(|topic| self.fields_named(*topic, name, part));
            found.collect::<Result<Vec<_>, _>>().map(|found| found.concat())
        };
        let mut found = find(NamePart::Full)?;
        if found.is_empty() {
            found = find(NamePart::End)?;
        }
        let mut of_topics: Vec<usize> = found.iter().map(|id| id.topic).collect();
        of_topics.dedup();
        match of_topics[..] {
            [] => Err(self.not_found(name)),
            [topic] => {
                self.check_unambiguous(topic, name, &found)?;
                Ok(found)
            }
            [..] => {
                let full = |topic: &usize| format!("{}.{name}", short(&topics[*topic].name));
                let full = of_topics.iter().take(3).map(full).collect::<Vec<_>>().join(", ");
                let more = if of_topics.len() > 3 { ", ..." } else { "" };
                let cause = format!("{} topics have a field {name}", of_topics.len());
                Err(NoSignal::new(cause, format!("also name the topic: {full}{more}")))
            }
        }
    }

    /// Returns the fields of a topic that match a name.
    fn fields_named(&self, topic: usize, name: &str, part: NamePart) -> Result<Vec<FieldId>, NoSignal> {
        let is_glob = name.contains(['*', '?']);
        self.fields_where(topic, |known| {
            // A derived field matches only its exact name, so that `*` selects only stored fields.
            let matches = |field: &str| match known.expression {
                Some(_) => !is_glob && field == name,
                None => around(name, field),
            };
            match part {
                NamePart::Full => matches(&known.name),
                NamePart::End => suffixes(&known.name).any(matches),
            }
        })
    }

    fn fields_where(
        &self,
        topic: usize,
        condition: impl Fn(&NamedField) -> bool,
    ) -> Result<Vec<FieldId>, NoSignal> {
        let fields = self.fields(topic)?.iter().enumerate().filter(|(_, known)| condition(known));
        Ok(fields.map(|(field, _)| FieldId { topic, field }).collect())
    }

    /// Returns an error if a plain name is ambiguous within a topic. For example, `x` is ambiguous
    /// if the topic has the fields `v.x` and `w.x`.
    fn check_unambiguous(&self, topic: usize, name: &str, found: &[FieldId]) -> Result<(), NoSignal> {
        if name.contains(['*', '?']) {
            return Ok(());
        }
        let fields = self.fields(topic)?;
        let stem = |field: usize| {
            let full = &*fields[field].name;
            full.match_indices(name).last().map_or(full, |(at, _)| &full[..at])
        };
        let mut stems: Vec<&str> = found.iter().map(|id| stem(id.field)).collect();
        stems.sort_unstable();
        stems.dedup();
        if stems.len() < 2 {
            return Ok(());
        }
        let of = short(&self.log.topics()[topic].name);
        let named = stems.iter().take(3).map(|stem| format!("{stem}{name}")).collect::<Vec<_>>().join(", ");
        Err(NoSignal::new(format!("{of} has several fields {name}"), format!("name one of them: {named}")))
    }

    fn no_field(&self, topic: usize, field: &str) -> NoSignal {
        let of = &self.log.topics()[topic];
        let fields = match self.fields(topic) {
            Ok(fields) => fields,
            Err(error) => return error,
        };
        let names = fields.iter().map(|known| &*known.name);
        let all = format!("rovelog schema FILE {}", of.name);
        NoSignal::new(format!("topic {} has no numeric field {field}", of.name), suggest(field, names, &all))
    }

    /// Returns the error for a name that is neither a topic nor a field.
    fn not_found(&self, name: &str) -> NoSignal {
        let topics = self.log.topics();
        let first = name.split('.').next().unwrap_or(name);
        if topics.is_empty() {
            return NoSignal::new(format!("the log has no topic {first}"), "this log has no topics");
        }
        let mut names: Vec<String> = self.topics.iter().map(|topic| topics[*topic].name.clone()).collect();
        if !name.contains('.') {
            names.extend(self.signal_names());
        }
        let what = match self.topics[..] {
            _ if name.contains('.') => "topic",
            [topic] => return self.no_field(topic, name),
            _ => "topic or field",
        };
        let names = names.iter().map(String::as_str);
        NoSignal::new(format!("the log has no {what} {first}"), suggest(first, names, "rovelog topics FILE"))
    }

    /// Returns the names of all signals with rows, such as `battery_status.voltage_v`. Topics whose
    /// fields cannot be read are left out.
    fn signal_names(&self) -> Vec<String> {
        let topics = self.topics.iter().map(|topic| (*topic, &self.log.topics()[*topic]));
        let with_rows = topics.filter(|(_, topic)| topic.count > 0);
        let names = |(i, topic): (usize, &Topic)| {
            let fields = self.fields(i).unwrap_or_default().iter();
            fields.map(|field| format!("{}.{}", short(&topic.name), field.name)).collect::<Vec<_>>()
        };
        with_rows.flat_map(names).collect()
    }
}

/// Resolves the names in an expression and collects its operands.
struct Fields<'s, 'a> {
    signals: &'s Signals<'a>,
    /// Index of the topic that is searched first, if any.
    topic: Option<usize>,
    operands: Vec<Operand>,
    /// The first error that occurred while a name was looked up.
    error: Option<NoSignal>,
    /// Number of derived fields whose expressions are being resolved.
    depth: usize,
}

impl Fields<'_, '_> {
    /// Stores the first lookup error, because the parser returns only its text without the hint.
    /// Returns the text of `error`.
    fn record_error(&mut self, error: NoSignal) -> String {
        let cause = error.cause.clone();
        self.error.get_or_insert(error);
        cause
    }
}

impl Scope for Fields<'_, '_> {
    fn fields(&mut self, name: &str) -> Result<Vec<Node>, String> {
        let signals = self.signals;
        let own = self.topic.map(|topic| signals.fields_named(topic, name, NamePart::Full)).transpose();
        let own = own.map_err(|error| self.record_error(error))?.unwrap_or_default();
        let found = if own.is_empty() {
            let pattern = Pattern::new(name)?;
            let all = pattern.choices.iter().map(|choice| signals.matches(choice));
            let all: Result<Vec<_>, NoSignal> = all.collect();
            all.map(|all| all.concat()).map_err(|error| self.record_error(error))?
        } else {
            own
        };
        let found = found.into_iter().map(|FieldId { topic, field }| {
            let known = &signals.fields(topic).map_err(|error| self.record_error(error))?[field];
            if let Some(text) = &known.expression {
                // The expression of a derived field only names stored fields, so deeper nesting
                // would be a defect.
                self.depth += 1;
                let before = self.topic.replace(topic);
                let node = if self.depth > 2 {
                    Err("derived".to_owned())
                } else {
                    parse(text, self).map(|(node, _)| node)
                };
                self.topic = before;
                self.depth -= 1;
                return node;
            }
            let [operand] = <[Operand; 1]>::try_from(signals.plain(topic, known).operands)
                .map_err(|_| "a field is one operand".to_owned())?;
            let number = self.operands.iter().position(|known| *known == operand).unwrap_or_else(|| {
                self.operands.push(operand);
                self.operands.len() - 1
            });
            Ok(Node::Field(number))
        });
        found.collect()
    }

    fn state(&self, field: usize, name: &str) -> Option<i64> {
        let operand = self.operands.get(field)?;
        let topic = self.signals.log.topic(&operand.topic)?;
        let names = meaning::names(topic.get(), &operand.field);
        names.iter().find(|(_, known)| known.eq_ignore_ascii_case(name)).map(|(value, _)| *value)
    }
}

/// Returns the error for a topic whose fields cannot be read.
fn unreadable(topic: &Topic, error: &Error) -> NoSignal {
    let next = error.next.as_deref().unwrap_or("list all problems of the log: rovelog check FILE");
    NoSignal::new(format!("topic {} cannot be read: {error}", topic.name), next)
}

/// Returns the column prefix for a topic in a table of several topics. This is the topic name
/// without the instance number `/0`. If another topic has the shorter name, it is the full name.
pub(crate) fn label<'t>(log: &dyn LogReader, topic: &'t str) -> &'t str {
    let short = short(topic);
    let is_other = short != topic && log.topic(short).is_none_or(|found| found.name != topic);
    if is_other { topic } else { short }
}

/// Returns the last parts of a flat name, such as `b.c` and `c` for `a.b.c`.
fn suffixes(name: &str) -> impl Iterator<Item = &str> {
    name.match_indices('.').map(|(dot, _)| &name[dot + 1..])
}

/// Splits a text `NAME=EXPRESSION` into its two parts. The name is `None` if the text has no name.
fn named(text: &str) -> (Option<&str>, &str) {
    match text.split_once('=') {
        Some((name, body))
            if !body.starts_with('=')
                && !name.trim().is_empty()
                && name.trim().chars().all(|c| c.is_alphanumeric() || c == '_') =>
        {
            (Some(name.trim()), body.trim())
        }
        _ => (None, text),
    }
}

/// Returns whether a text contains an operator or a function call, so that it may be an expression.
fn is_expression(text: &str) -> bool {
    text.contains(['+', '-', '^', '(', '<', '>', '=', '!', '&', '|', '%', ' ', '`'])
        || text.trim_matches(['*', '/']).contains(['*', '/'])
}
