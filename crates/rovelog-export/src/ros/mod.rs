//! Names and type definitions of ROS bag topics, for the files that are written from a bag.

#[cfg(feature = "mcap")]
pub(crate) mod cdr;
#[cfg(feature = "mcap")]
pub(crate) mod ros2;

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use rovelog::core::layout::Fit;
use rovelog::core::text::count;
use rovelog::rosbag12::msg::{FullText, SumMatch, Type, Types};
use rovelog::rosbag12::{BagReader, Definition, Publisher};
use rovelog::{LogReader as _, Record, Topic};

use crate::Loss;

/// Returns the output name of a topic, and the losses of renaming it.
pub(crate) fn written_name(bag: &BagReader, topic: &Topic) -> (String, Vec<Loss>) {
    if let Ok(own) = std::str::from_utf8(&bag.connections()[topic.id.index()].topic) {
        return (own.to_owned(), Vec::new());
    }
    let why = format!("its name is not UTF-8: it is written as {}", topic.name);
    (topic.name.clone(), vec![Loss::new(&topic.name, "", why)])
}

/// The line between the types of a full definition.
const SEPARATOR: &str = "================================================================================";

/// Types that were renamed without a change: the old name, the new one, and the MD5 sum of both.
const SUCCESSORS: &[(&str, &str, &str)] = &[
    ("roslib/Header", HEADER.0, HEADER.1),
    ("roslib/Log", "rosgraph_msgs/Log", "acffd30cd6b6de30f120938c17c593fb"),
    ("roslib/Clock", "rosgraph_msgs/Clock", "a9c97c1d230cfc112e270351a944ee47"),
    ("tf/tfMessage", "tf2_msgs/TFMessage", "94810edda583a504dfda3829e70d7eec"),
];

/// The header type, which ROS 2 has without `seq`.
const HEADER: (&str, &str) = ("std_msgs/Header", "2176decaecbce78abc3b96ef049fabed");

/// Returns the current name of a type that was renamed without a change.
fn successor(name: &str, sum: &str) -> Option<&'static str> {
    let name =
        name.strip_prefix("rostools/").map_or(Cow::Borrowed(name), |own| format!("roslib/{own}").into());
    SUCCESSORS.iter().find(|(old, _, same)| *old == name && *same == sum).map(|(_, new, _)| *new)
}

/// All messages of one topic with one type.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    /// The topic's name in the bag.
    pub(crate) topic: String,
    /// Full name of the type, as it is written.
    pub(crate) type_name: String,
    /// MD5 sum of its definition.
    pub(crate) sum: String,
    /// MD5 sum in the bag.
    given: &'a [u8],
    definition: &'a Definition,
    /// Names of the definition's types, as they are written.
    names: Vec<String>,
    /// For each type, true if it is the header, which ROS 2 has without `seq`.
    headers: Vec<bool>,
    /// Losses of the topic as a whole.
    pub(crate) losses: Vec<Loss>,
}

impl<'a> Line<'a> {
    /// Prepares the messages of `topic`. Returns the loss of all its records as an error if its
    /// type is defined nowhere.
    pub(crate) fn new(bag: &'a BagReader, topic: &Topic, modernize: bool) -> Result<Self, Loss> {
        let connection = &bag.connections()[topic.id.index()];
        let Some(definition) = connection.definition() else {
            let messages = count(topic.count, "message");
            let why =
                format!("no definition of {} in the bag: {messages} cannot be exported", topic.type_name);
            return Err(Loss::new(&topic.name, "", why));
        };
        let types = definition.types.all();
        let sums = definition.types.sums_v2();
        let new_name = |name: &str, sum: &str| {
            let new = if modernize { successor(name, sum) } else { None };
            new.unwrap_or(name).to_owned()
        };
        let mut names: Vec<_> =
            types.iter().zip(&sums).map(|(ty, sum)| new_name(ty.name(), &sum.0)).collect();
        let sum = sums.last().map_or_else(String::new, |sum| sum.0.clone());
        // A bag before V1.1 may leave the name open and give only the sum.
        let open = topic.type_name == "*";
        let root = types.last().filter(|_| open).map_or(topic.type_name.as_str(), Type::name);
        let type_name = new_name(root, &sum);
        if let Some(root) = names.last_mut() {
            root.clone_from(&type_name);
        }
        let headers = names.iter().zip(&sums).map(|(name, sum)| (&**name, &*sum.0) == HEADER).collect();
        let (topic, losses) = written_name(bag, topic);
        Ok(Self { topic, type_name, sum, given: &connection.md5, definition, names, headers, losses })
    }

    /// Returns the MD5 sum by which publishers and subscribers match: the bag's own if it is an MD5
    /// sum.
    pub(crate) fn md5(&self) -> Cow<'_, str> {
        let sum = self.given.len() == 32 && self.given.iter().all(u8::is_ascii_hexdigit);
        match self.definition.sum {
            SumMatch::V2 | SumMatch::No if sum => String::from_utf8_lossy(self.given),
            _ => Cow::Borrowed(&self.sum),
        }
    }

    /// Returns how the bag contradicts its own definition, if it does.
    pub(crate) fn contradiction(&self) -> Option<String> {
        let given = String::from_utf8_lossy(self.given);
        (self.definition.sum == SumMatch::No).then(|| {
            format!("its definition has the md5 sum {}, not {given}, and is written with its own", self.sum)
        })
    }

    /// Returns whether a payload may be exported with the definition. An inferred definition must
    /// fit the payload.
    pub(crate) fn carries(&self, payload: &[u8]) -> bool {
        !self.definition.is_guess() || self.definition.layout.fit(payload) == Fit::Exact
    }

    /// Returns the types of the definition.
    pub(crate) fn types(&self) -> &'a Types {
        &self.definition.types
    }

    /// Returns the output name of a type of the definition.
    pub(crate) fn name(&self, index: usize) -> &str {
        &self.names[index]
    }

    /// Returns whether a type of the definition is the header, which ROS 2 has without `seq`.
    pub(crate) fn is_header(&self, index: usize) -> bool {
        self.headers[index]
    }

    /// Returns whether any type is that header.
    pub(crate) fn has_header(&self) -> bool {
        self.headers.contains(&true)
    }

    /// Returns the full definition text: the bag's own where other readers accept it.
    pub(crate) fn text(&self) -> Cow<'a, str> {
        let types = self.types();
        let text = std::str::from_utf8(&self.definition.text);
        if let Ok(text) = text {
            let full = FullText::split(text.as_bytes());
            let separators = text.matches(&format!("\n{SEPARATOR}\nMSG: ")).count();
            let named = types.all().iter().zip(&self.names).all(|(ty, name)| ty.name() == name);
            let whole = types.dependencies().all(|name| full.section(name).is_some());
            if named && whole && separators == full.sections.len() && !text.contains('\r') {
                return Cow::Borrowed(text);
            }
        }
        let Some(root) = types.all().len().checked_sub(1) else { return Cow::Borrowed("") };
        let mut out = String::new();
        self.section(root, &mut out);
        self.each_dependency(|index, name| {
            out.extend(["\n", SEPARATOR, "\nMSG: ", name, "\n"]);
            self.section(index, &mut out);
        });
        Cow::Owned(out)
    }

    /// Calls `visit` with the nested types, in the order of a full definition, each name once.
    pub(crate) fn each_dependency(&self, mut visit: impl FnMut(usize, &str)) {
        let mut written = HashSet::from([self.type_name.as_str()]);
        for index in self.types().in_text_order() {
            let name = self.name(*index);
            if written.insert(name) {
                visit(*index, name);
            }
        }
    }

    /// Writes the definition of one type, with the new names of renamed types.
    fn section(&self, index: usize, out: &mut String) {
        let ty = &self.types().all()[index];
        let package = self.name(index).split_once('/').map_or("", |(package, _)| package);
        let text = String::from_utf8_lossy(ty.text());
        let mut nested = ty.nested().iter();
        for (number, (line, part)) in lines(ty, &text).enumerate() {
            if number > 0 {
                out.push('\n');
            }
            let inside = if let Part::Field(_) = part { nested.next().copied().flatten() } else { None };
            match (part, inside.map(|index| self.name(index))) {
                (Part::Field(field), Some(name)) if !means(&field.ty, package, name) => {
                    match line.split_once(&field.ty) {
                        Some((before, behind)) => {
                            out.extend([before, name, behind]);
                        }
                        None => out.extend([name, " ", &field.name]),
                    }
                }
                _ => out.push_str(line),
            }
        }
        if text.ends_with('\n') {
            out.push('\n');
        }
    }
}

/// Returns whether readers resolve `word` in a type of `package` to the type `name`.
fn means(word: &str, package: &str, name: &str) -> bool {
    match word {
        "Header" => matches!(name, "std_msgs/Header" | "roslib/Header"),
        _ if word.contains('/') => word == name,
        _ => name.split_once('/') == Some((package, word)) || (package.is_empty() && word == name),
    }
}

/// Kind of a line in a type's definition.
pub(crate) enum Part<'a> {
    /// A comment or an empty line.
    Other,
    Field(&'a rovelog::rosbag12::msg::FieldText),
    Constant(&'a rovelog::rosbag12::msg::Constant),
}

/// Returns the lines of a definition, which was parsed before, with the kind of each.
pub(crate) fn lines<'a>(ty: &'a Type, text: &'a str) -> impl Iterator<Item = (&'a str, Part<'a>)> {
    let (mut fields, mut constants) = (ty.message().fields.iter(), ty.message().constants.iter());
    text.lines().map(move |line| {
        // The last line of a text may end in CR alone.
        let line = line.trim_end_matches('\r');
        let cut = line.split('#').next().unwrap_or_default().trim();
        let part = if cut.is_empty() {
            None
        } else if cut.contains('=') {
            constants.next().map(Part::Constant)
        } else {
            fields.next().map(Part::Field)
        };
        (line, part.unwrap_or(Part::Other))
    })
}

/// A value for each topic and each of its publishers. In an old bag, each message names its
/// publisher.
#[derive(Debug)]
pub(crate) struct ByPublisher<T>(Vec<HashMap<Publisher, T>>);

impl<T> ByPublisher<T> {
    pub(crate) fn new(bag: &BagReader) -> Self {
        Self(bag.topics().iter().map(|_| HashMap::new()).collect())
    }

    /// Returns the value for a record; `make` creates it at the first record.
    pub(crate) fn of<E>(
        &mut self,
        bag: &BagReader,
        record: &Record<'_>,
        make: impl FnOnce(&Publisher) -> Result<T, E>,
    ) -> Result<&mut T, E> {
        match self.0[record.topic.id.index()].entry(bag.publisher(record)) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(free) => {
                let new = make(free.key())?;
                Ok(free.insert(new))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn successors_are_the_same_types() {
        for (_, new, sum) in SUCCESSORS.iter().filter(|(_, new, _)| *new != "tf2_msgs/TFMessage") {
            let own = |name: &str| rovelog::rosbag12::msg::known(name).map(|text| text.as_bytes().to_vec());
            let types = Types::resolve(new, &own(new).unwrap(), 64, &own).unwrap();
            assert_eq!(types.sum_v2().0, *sum, "{new}");
        }
        assert_eq!(successor("rostools/Header", HEADER.1), Some("std_msgs/Header"));
        assert_eq!(successor("roslib/Log", HEADER.1), None, "another type of that name");
    }
}
