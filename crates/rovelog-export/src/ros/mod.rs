//! Names and type definitions of the topics in a ROS bag, for exports to other file formats.

#[cfg(feature = "mcap")]
pub(crate) mod cdr;
pub(crate) mod convert;
mod names;
#[cfg(feature = "mcap")]
pub(crate) mod ros2;

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use rovelog::core::internal::layout::Fit;
use rovelog::core::internal::text::count;
use rovelog::rosbag12::msg::{FullText, Sum, SumMatch, Type, Types};
use rovelog::rosbag12::{BagReader, Definition, Publisher};
use rovelog::{LogReader as _, Record, Topic};

pub(crate) use self::names::Names;
use crate::Loss;

/// Returns the name of a topic in the output. If the name in the bag is not UTF-8, the name is
/// changed, and the change is returned as a loss.
pub(crate) fn written_name(bag: &BagReader, topic: &Topic) -> (String, Vec<Loss>) {
    if let Ok(own) = std::str::from_utf8(&bag.connections()[topic.id.index()].topic) {
        return (own.to_owned(), Vec::new());
    }
    let why = format!("its name is not UTF-8, so it is written as {}", topic.name);
    (topic.name.clone(), vec![Loss::new(&topic.name, "", why)])
}

/// Line between the types in a full message definition.
const SEPARATOR: &str = "================================================================================";

/// ROS types that were renamed without other changes. Each entry has the old name, the new name,
/// and the MD5 sum, which is the same for both types.
const SUCCESSORS: &[(&str, &str, &str)] = &[
    ("roslib/Header", HEADER.0, HEADER.1),
    ("roslib/Log", "rosgraph_msgs/Log", "acffd30cd6b6de30f120938c17c593fb"),
    ("roslib/Clock", "rosgraph_msgs/Clock", "a9c97c1d230cfc112e270351a944ee47"),
    ("tf/tfMessage", "tf2_msgs/TFMessage", "94810edda583a504dfda3829e70d7eec"),
];

/// Name and MD5 sum of the standard header type. In ROS 2, this type has no field `seq`.
const HEADER: (&str, &str) = ("std_msgs/Header", "2176decaecbce78abc3b96ef049fabed");

/// Returns the current name of a type that was renamed without other changes. The MD5 sum must also
/// match, because a bag may contain a different type with the old name.
fn successor(name: &str, sum: &str) -> Option<&'static str> {
    let name =
        name.strip_prefix("rostools/").map_or(Cow::Borrowed(name), |own| format!("roslib/{own}").into());
    SUCCESSORS.iter().find(|(old, _, same)| *old == name && *same == sum).map(|(_, new, _)| *new)
}

/// A message type as it is written to the output, with the types that it needs.
#[derive(Debug)]
pub(crate) struct ExportedType<'a> {
    /// The type, which is last, and the types that it needs.
    pub(crate) types: &'a Types,
    /// For each type, its name in the output.
    names: Vec<String>,
    /// For each type, true if it is the standard header.
    headers: Vec<bool>,
}

impl<'a> ExportedType<'a> {
    /// Prepares the export of a type that has not been renamed.
    pub(crate) fn new(types: &'a Types) -> Self {
        Self::renamed(types, &types.sums_v2(), |name, _| name.to_owned())
    }

    /// Prepares the export of a type. `sums` are the MD5 sums of all types. `new_name` is called
    /// with the name and the MD5 sum of each type, and returns the name in the output.
    fn renamed(types: &'a Types, sums: &[Sum], new_name: impl Fn(&str, &str) -> String) -> Self {
        let names: Vec<_> =
            types.all().iter().zip(sums).map(|(ty, sum)| new_name(ty.name(), &sum.0)).collect();
        let headers = names.iter().zip(sums).map(|(name, sum)| (&**name, &*sum.0) == HEADER).collect();
        Self { types, names, headers }
    }

    /// Returns the full name of the type in the output.
    pub(crate) fn type_name(&self) -> &str {
        self.names.last().map_or("", String::as_str)
    }

    /// Returns the name that the type with the index `index` has in the output.
    pub(crate) fn name(&self, index: usize) -> &str {
        &self.names[index]
    }

    /// Returns whether the type with the index `index` is the standard header. In ROS 2, this type
    /// has no field `seq`.
    pub(crate) fn is_header(&self, index: usize) -> bool {
        self.headers[index]
    }

    /// Returns whether the definition uses the type of the standard header.
    pub(crate) fn has_header(&self) -> bool {
        self.headers.contains(&true)
    }

    /// Calls `visit` with the index and name of each nested type, in the order of a full
    /// definition. If several types have the same name, only the first is visited.
    pub(crate) fn each_dependency(&self, mut visit: impl FnMut(usize, &str)) {
        let mut written = HashSet::from([self.type_name()]);
        for index in self.types.in_text_order() {
            let name = self.name(*index);
            if written.insert(name) {
                visit(*index, name);
            }
        }
    }
}

/// A topic of a bag with its type, as written to the output.
#[derive(Debug)]
pub(crate) struct ExportedTopic<'a> {
    /// Name of the topic in the output.
    pub(crate) topic: String,
    /// Type of the topic's messages in the output.
    pub(crate) ty: ExportedType<'a>,
    /// MD5 sum that was computed from the definition of the type, as it is written.
    pub(crate) sum: String,
    /// MD5 sum of the type according to the bag.
    given: &'a [u8],
    definition: &'a Definition,
    /// Losses that concern the whole topic.
    pub(crate) losses: Vec<Loss>,
}

impl<'a> ExportedTopic<'a> {
    /// Prepares the export of a topic. If the type of the topic is unknown, all records of the
    /// topic are lost. This loss is returned as the error.
    pub(crate) fn new(bag: &'a BagReader, topic: &Topic, modernize: bool) -> Result<Self, Loss> {
        let connection = &bag.connections()[topic.id.index()];
        let Some(definition) = connection.definition() else {
            let messages = count(topic.count, "message");
            let why =
                format!("the bag has no definition of {}, so {messages} cannot be exported", topic.type_name);
            return Err(Loss::new(&topic.name, "", why));
        };
        let types = definition.types.all();
        let sums = definition.types.sums_v2();
        let new_name = |name: &str, sum: &str| {
            let new = if modernize { successor(name, sum) } else { None };
            new.unwrap_or(name).to_owned()
        };
        let mut ty = ExportedType::renamed(&definition.types, &sums, new_name);
        let sum = sums.last().map_or_else(String::new, |sum| sum.0.clone());
        // In bags before V1.1, a topic may have only the MD5 sum of its type and no type name. The
        // name is then taken from the definition with this MD5 sum.
        let open = topic.type_name == "*";
        let root = types.last().filter(|_| open).map_or(topic.type_name.as_str(), Type::name);
        // The type of the topic is the last type in the definition.
        if let (Some(name), Some(header)) = (ty.names.last_mut(), ty.headers.last_mut()) {
            *name = new_name(root, &sum);
            *header = (&**name, &*sum) == HEADER;
        }
        let (topic, losses) = written_name(bag, topic);
        let given = &connection.md5;
        let mut exported = Self { topic, ty, sum, given, definition, losses };
        if !exported.has_unique_fields() {
            // The MD5 sum covers the names of fields, some of which change.
            let (text, nesting) = (exported.text().into_owned(), types.len());
            if let Ok(types) = Types::resolve(exported.ty.type_name(), text.as_bytes(), nesting, &|_| None) {
                exported.sum = types.sum_v2().0;
            }
        }
        Ok(exported)
    }

    /// Returns true if no type in the definition has a field twice. Otherwise, the definition is
    /// written with other names.
    fn has_unique_fields(&self) -> bool {
        let is_unique = |ty: &Type| {
            let mut names = HashSet::new();
            ty.message().fields.iter().all(|field| names.insert(&*field.name))
        };
        self.ty.types.all().iter().all(is_unique)
    }

    /// Returns the MD5 sum by which ROS nodes decide whether a publisher and a subscriber have the
    /// same type. This is the sum in the bag. If the sum in the bag is invalid or was computed by
    /// an older method, or if names of fields change, the sum of the written definition is returned.
    pub(crate) fn md5(&self) -> Cow<'_, str> {
        let sum = self.given.len() == 32 && self.given.iter().all(u8::is_ascii_hexdigit);
        match self.definition.sum {
            SumMatch::V2 | SumMatch::No if sum && self.has_unique_fields() => {
                String::from_utf8_lossy(self.given)
            }
            _ => Cow::Borrowed(&self.sum),
        }
    }

    /// If the MD5 sum in the bag differs from that of the definition, returns a sentence about it.
    pub(crate) fn contradiction(&self) -> Option<String> {
        let stated = String::from_utf8_lossy(self.given);
        (self.definition.sum == SumMatch::No).then(|| {
            format!(
                "its definition has the md5 sum {}, although the bag states {stated}; the sum of the \
                 definition is written",
                self.sum
            )
        })
    }

    /// Returns whether a message may be exported with the definition. If the definition was
    /// inferred, it must fit the payload of the message exactly.
    pub(crate) fn accepts(&self, payload: &[u8]) -> bool {
        !self.definition.is_guess() || self.definition.layout.fit(payload) == Fit::Exact
    }

    /// Returns the full text of the definition. If other readers accept the text in the bag, this
    /// text is returned. Otherwise, a new text is written.
    pub(crate) fn text(&self) -> Cow<'a, str> {
        let types = self.ty.types;
        let text = std::str::from_utf8(&self.definition.text);
        if let Ok(text) = text {
            // Other readers require that each nested type has a section, that no type has a field
            // twice, and that lines do not end with a carriage return.
            let full = FullText::split(text.as_bytes());
            let separators = text.matches(&format!("\n{SEPARATOR}\nMSG: ")).count();
            let has_names = types.all().iter().zip(&self.ty.names).all(|(ty, name)| ty.name() == name);
            let is_complete = types.dependencies().all(|name| full.section(name).is_some());
            if has_names
                && is_complete
                && self.has_unique_fields()
                && separators == full.sections.len()
                && !text.contains('\r')
            {
                return Cow::Borrowed(text);
            }
        }
        let Some(root) = types.all().len().checked_sub(1) else { return Cow::Borrowed("") };
        let mut out = String::new();
        self.section(root, &mut out);
        self.ty.each_dependency(|index, name| {
            out.extend(["\n", SEPARATOR, "\nMSG: ", name, "\n"]);
            self.section(index, &mut out);
        });
        Cow::Owned(out)
    }

    /// Writes the definition of a single type. In its fields, old names of renamed types are
    /// replaced. If the type has a field twice, the second field gets a number, such as `x_2`.
    fn section(&self, index: usize, out: &mut String) {
        let ty = &self.ty.types.all()[index];
        let package = self.ty.name(index).split_once('/').map_or("", |(package, _)| package);
        let text = String::from_utf8_lossy(ty.text());
        let mut nested = ty.nested().iter();
        let mut names = Names::new(ty.message().fields.iter().map(|field| &*field.name), |_| true);
        for (number, (line, part)) in lines(ty, &text).enumerate() {
            if number > 0 {
                out.push('\n');
            }
            let Part::Field(field) = part else {
                out.push_str(line);
                continue;
            };
            let inside = nested.next().copied().flatten().map(|index| self.ty.name(index));
            let word = inside.filter(|name| !resolves_to(&field.ty, package, name)).unwrap_or(&field.ty);
            let name = names.next(&field.name, str::to_owned);
            if word == field.ty && *name == *field.name {
                out.push_str(line);
                continue;
            }
            match line.split_once(&field.ty) {
                // The name follows the type.
                Some((before, behind)) => {
                    out.extend([before, word, &behind.replacen(&*field.name, &name, 1)]);
                }
                None => out.extend([word, " ", &name]),
            }
        }
        if text.ends_with('\n') {
            out.push('\n');
        }
    }
}

/// Returns whether other readers resolve the type name `word` in a field to the type `name`.
/// `package` is the package of the type that contains the field.
fn resolves_to(word: &str, package: &str, name: &str) -> bool {
    match word {
        "Header" => matches!(name, "std_msgs/Header" | "roslib/Header"),
        _ if word.contains('/') => word == name,
        _ => name.split_once('/') == Some((package, word)) || (package.is_empty() && word == name),
    }
}

/// Kind of a line in the definition of a type.
pub(crate) enum Part<'a> {
    /// A comment or an empty line.
    Other,
    /// The definition of a field.
    Field(&'a rovelog::rosbag12::msg::FieldText),
    Constant(&'a rovelog::rosbag12::msg::Constant),
}

/// Returns each line of a type's definition with its kind. `text` is the text from which `ty` was
/// parsed.
pub(crate) fn lines<'a>(ty: &'a Type, text: &'a str) -> impl Iterator<Item = (&'a str, Part<'a>)> {
    let (mut fields, mut constants) = (ty.message().fields.iter(), ty.message().constants.iter());
    text.lines().map(move |line| {
        // `lines` removes a CR LF at the end of a line, but the last line of a text may end with a
        // single CR.
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

/// Map from a topic and publisher to a value, such as a channel. In old bags, each message states
/// its publisher, so a topic may have several publishers.
#[derive(Debug)]
pub(crate) struct ByPublisher<T>(Vec<HashMap<Publisher, T>>);

impl<T> ByPublisher<T> {
    pub(crate) fn new(bag: &BagReader) -> Self {
        Self(bag.topics().iter().map(|_| HashMap::new()).collect())
    }

    /// Returns the value for the topic and publisher of a record. If there is no value yet, `make`
    /// is called to create it.
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
    fn a_field_that_occurs_twice_gets_a_number() {
        let path = rovelog_testing::root().join("corpus/rosbag/definition-field-twice.bag");
        let bag = BagReader::open(path).unwrap();
        let topic = ExportedTopic::new(&bag, &bag.topics()[0], false).unwrap();
        let text = std::str::from_utf8(&topic.definition.text).unwrap();
        assert_eq!(text.matches(" x").count(), 2, "{text}");
        let second = text.rfind(" x").unwrap();
        assert_eq!(topic.text(), format!("{} x_2{}", &text[..second], &text[second + 2..]));
        assert_eq!(topic.md5(), topic.sum);
        let mut names = Names::new(["x", "x_2", "x"].into_iter(), |_| true);
        assert_eq!(
            ["x", "x_2", "x"].map(|name| names.next(name, str::to_owned).into_owned()),
            ["x", "x_2", "x_3"]
        );
    }

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
