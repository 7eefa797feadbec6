//! What a topic of a ROS bag is called, and how its type is defined, in files that are written of the bag.

pub(crate) mod cdr;
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

/// The name under which a topic is written, and what that loses.
pub(crate) fn written_name(bag: &BagReader, topic: &Topic) -> (String, Vec<Loss>) {
    if let Ok(own) = std::str::from_utf8(&bag.connections()[topic.id.index()].topic) {
        return (own.to_owned(), Vec::new());
    }
    let why = format!("its name is not UTF-8: it is written as {}", topic.name);
    (topic.name.clone(), vec![Loss::new(&topic.name, "", why)])
}

/// The line between the types of a full text.
const SEPARATOR: &str = "================================================================================";

/// Types that were renamed as they stood: the old name, the new one, and the sum of both.
const SUCCESSORS: &[(&str, &str, &str)] = &[
    ("roslib/Header", HEADER.0, HEADER.1),
    ("roslib/Log", "rosgraph_msgs/Log", "acffd30cd6b6de30f120938c17c593fb"),
    ("roslib/Clock", "rosgraph_msgs/Clock", "a9c97c1d230cfc112e270351a944ee47"),
    ("tf/tfMessage", "tf2_msgs/TFMessage", "94810edda583a504dfda3829e70d7eec"),
];

/// The header that ROS 2 has too, without its number.
const HEADER: (&str, &str) = ("std_msgs/Header", "2176decaecbce78abc3b96ef049fabed");

/// The name of today of a type that is still the same.
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
    /// The full name of the type, as it is written.
    pub(crate) type_name: String,
    /// The sum of its definition.
    pub(crate) sum: String,
    /// The sum that the bag gives.
    given: &'a [u8],
    definition: &'a Definition,
    /// What each of the definition's types is called, as it is written.
    names: Vec<String>,
    /// Which of them are the header that ROS 2 has without its number.
    headers: Vec<bool>,
    /// What was not carried of the topic as a whole.
    pub(crate) losses: Vec<Loss>,
}

impl<'a> Line<'a> {
    /// What is written of `topic`; the loss of all its records where its type is defined nowhere.
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
        // A bag of before V1.1 may leave the name open, and give the sum.
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

    /// The sum by which publishers and subscribers agree: the bag's own, where it is one of that kind.
    pub(crate) fn md5(&self) -> Cow<'_, str> {
        let sum = self.given.len() == 32 && self.given.iter().all(u8::is_ascii_hexdigit);
        match self.definition.sum {
            SumMatch::V2 | SumMatch::No if sum => String::from_utf8_lossy(self.given),
            _ => Cow::Borrowed(&self.sum),
        }
    }

    /// How the bag contradicts its own definition, if it does.
    pub(crate) fn contradiction(&self) -> Option<String> {
        let given = String::from_utf8_lossy(self.given);
        (self.definition.sum == SumMatch::No).then(|| {
            format!("its definition has the md5 sum {}, not {given}, and is written with its own", self.sum)
        })
    }

    /// Whether a payload may be handed on with the definition: one that is only a guess has to fit it.
    pub(crate) fn carries(&self, payload: &[u8]) -> bool {
        !self.definition.is_guess() || self.definition.layout.fit(payload) == Fit::Exact
    }

    /// The types of the definition.
    pub(crate) fn types(&self) -> &'a Types {
        &self.definition.types
    }

    /// What a type of the definition is called.
    pub(crate) fn name(&self, index: usize) -> &str {
        &self.names[index]
    }

    /// Whether a type of the definition is the header that ROS 2 has without its number.
    pub(crate) fn is_header(&self, index: usize) -> bool {
        self.headers[index]
    }

    /// Whether any is.
    pub(crate) fn has_header(&self) -> bool {
        self.headers.contains(&true)
    }

    /// The full text of the definition: as it stands in the bag, where other readers take that.
    pub(crate) fn text(&self) -> Cow<'a, str> {
        let types = self.types();
        let text = std::str::from_utf8(&self.definition.text);
        if let Ok(text) = text {
            let full = FullText::split(text.as_bytes());
            let separators = text.matches(&format!("\n{SEPARATOR}\nMSG: ")).count();
            let named = types.all().iter().zip(&self.names).all(|(ty, name)| ty.name() == name);
            let whole = types.dependencies().all(|name| full.section(name).is_some());
            if named && whole && separators == full.sections.len() {
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

    /// Calls `visit` with the types inside, in the order of a full text, each name once.
    pub(crate) fn each_dependency(&self, mut visit: impl FnMut(usize, &str)) {
        let mut written = HashSet::from([self.type_name.as_str()]);
        for index in self.types().in_text_order() {
            let name = self.name(*index);
            if written.insert(name) {
                visit(*index, name);
            }
        }
    }

    /// The own text of a type, in which fields of renamed types follow.
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

/// Whether readers find the type `name` where a type of `package` says `word`.
fn means(word: &str, package: &str, name: &str) -> bool {
    match word {
        "Header" => matches!(name, "std_msgs/Header" | "roslib/Header"),
        _ if word.contains('/') => word == name,
        _ => name.split_once('/') == Some((package, word)) || (package.is_empty() && word == name),
    }
}

/// What a line of a type's text is.
pub(crate) enum Part<'a> {
    /// A comment, or nothing.
    Other,
    Field(&'a rovelog::rosbag12::msg::FieldText),
    Constant(&'a rovelog::rosbag12::msg::Constant),
}

/// The lines of a type's text and what each is; the text was parsed before.
pub(crate) fn lines<'a>(ty: &'a Type, text: &'a str) -> impl Iterator<Item = (&'a str, Part<'a>)> {
    let (mut fields, mut constants) = (ty.message().fields.iter(), ty.message().constants.iter());
    text.lines().map(move |line| {
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

/// Something for each topic and each of those who published on it: in an old bag, each message says who did.
#[derive(Debug)]
pub(crate) struct ByPublisher<T>(Vec<HashMap<Publisher, T>>);

impl<T> ByPublisher<T> {
    pub(crate) fn new(bag: &BagReader) -> Self {
        Self(bag.topics().iter().map(|_| HashMap::new()).collect())
    }

    /// That of a record; `make` makes it where it is the first.
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
