//! Resolves a message type and all types that it needs.

use std::borrow::Cow;
use std::collections::HashMap;

use super::text::{Array, FullText, MessageText, Primitive, SyntaxError};

/// Maximum number of types in a message definition, including nested types.
const MAX_TYPES: usize = 1024;

/// Reason why a message definition cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DefinitionError {
    /// The text of the message definition is empty.
    #[error("the definition is empty")]
    Empty,
    /// A line of the message definition has a syntax error.
    #[error("the definition of {name} is invalid: {error}")]
    Syntax {
        /// Name of the type whose text has the error.
        name: String,
        /// Line that cannot be parsed.
        error: SyntaxError,
    },
    /// A type that the message definition needs is not defined anywhere.
    #[error("type {name} of a field in {user} is not defined")]
    Missing {
        /// Name of the missing type.
        name: String,
        /// Name of the type that has a field of the missing type.
        user: String,
    },
    /// A type contains itself.
    #[error("type {name} contains itself")]
    Circular {
        /// Name of the type that contains itself.
        name: String,
    },
    /// The message definition is nested too deeply, has too many types, or has too many values in
    /// arrays of fixed size.
    #[error("type {name} is too large: {what}")]
    TooLarge {
        /// Name of the type that exceeds the limit.
        name: String,
        /// Limit that is exceeded, in words.
        what: &'static str,
    },
}

/// A type and all types that it needs.
#[derive(Clone, Debug)]
pub struct Types {
    /// All types. Each type comes after the types of its fields, and the root type is last.
    pub(super) list: Vec<Type>,
    /// Indices of the types without the root type, in the order of the ROS tool "gendeps": depth
    /// first, each type once.
    pub(super) in_text_order: Vec<usize>,
}

/// One type of a resolved message definition.
#[derive(Clone, Debug)]
pub struct Type {
    /// Full name of the type.
    pub(super) name: String,
    /// Fields and constants of the type.
    pub(super) message: MessageText,
    /// For each field, the index of its type in the list of all types. `None` for a built-in type.
    pub(super) fields: Vec<Option<usize>>,
    /// Text of the type, as found in the definition.
    pub(super) raw: Vec<u8>,
}

impl Type {
    /// Returns the full name of the type.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the fields and constants of the type.
    pub fn message(&self) -> &MessageText {
        &self.message
    }

    /// For each field, returns the index of its type in [`Types::all`]. Returns `None` for a field
    /// of a built-in type.
    pub fn nested(&self) -> &[Option<usize>] {
        &self.fields
    }

    /// Returns the text of the type as it was found in the definition.
    pub fn text(&self) -> &[u8] {
        &self.raw
    }
}

impl Types {
    /// Resolves the definition of the type `root`. `text` is the full text of the definition. A
    /// nested type that is missing in the text is requested from `elsewhere`, which returns the
    /// text of a type by its full name.
    ///
    /// # Errors
    /// Returns an error if the text has a syntax error, needs a type that is not found, or exceeds
    /// a limit.
    pub fn resolve(
        root: &str,
        text: &[u8],
        nesting: usize,
        elsewhere: &dyn Fn(&str) -> Option<Vec<u8>>,
    ) -> Result<Self, DefinitionError> {
        let full = FullText::split(text);
        // If the full text defines a name twice, the first text is used.
        let sections = full.sections.iter().rev().map(|(name, text)| (&**name, *text)).collect();
        let mut resolver = Resolver {
            sections,
            elsewhere,
            nesting,
            root,
            known: HashMap::new(),
            list: Vec::new(),
            names: Vec::new(),
        };
        resolver.add(root, full.root.into(), 0)?;
        let index = |name: &String| resolver.known.get(name).copied().flatten();
        let in_text_order = resolver.names.iter().filter_map(index).collect();
        Ok(Self { list: resolver.list, in_text_order })
    }

    /// Returns all types. Each type comes after the types of its fields, and the root type is last.
    pub fn all(&self) -> &[Type] {
        &self.list
    }

    /// Returns the indices in [`all`](Self::all) of all types except the root type, in the order of
    /// a full text.
    pub fn in_text_order(&self) -> &[usize] {
        &self.in_text_order
    }

    /// Returns the names of all types that the root type needs, in the order of a full text.
    pub fn dependencies(&self) -> impl Iterator<Item = &str> {
        self.in_text_order.iter().map(|index| self.list[*index].name.as_str())
    }

    /// Returns the full text of the definition, in the form that the ROS tool "gendeps" writes
    /// (section 6.1 of docs/formats/rosbag.md).
    pub fn full_text(&self) -> Vec<u8> {
        let mut text = self.list.last().map_or_else(Vec::new, |root| root.raw.clone());
        text.push(b'\n');
        for index in &self.in_text_order {
            let ty = &self.list[*index];
            text.extend_from_slice(&[b'='; 80]);
            text.extend_from_slice(format!("\nMSG: {}\n", ty.name).as_bytes());
            text.extend_from_slice(&ty.raw);
            text.push(b'\n');
        }
        text.pop();
        text
    }

    /// Returns the constants of the root type.
    pub fn constants(&self) -> &[super::text::Constant] {
        self.list.last().map_or(&[], |root| &root.message.constants)
    }
}

struct Resolver<'a> {
    /// Map from the name of a type to the text of the type, for all types in the full text.
    sections: HashMap<&'a str, &'a [u8]>,
    /// Function that returns the text of a type that is not in the full text.
    elsewhere: &'a dyn Fn(&str) -> Option<Vec<u8>>,
    /// Maximum nesting depth of types.
    nesting: usize,
    /// Full name of the root type.
    root: &'a str,
    /// Map from the name of a type to its index in the list of types. `None` while the type is
    /// being resolved, which detects types that contain themselves.
    known: HashMap<String, Option<usize>>,
    /// Types resolved so far.
    list: Vec<Type>,
    /// Names of the resolved types, in the order of their first use.
    names: Vec<String>,
}

impl<'a> Resolver<'a> {
    fn add(&mut self, name: &str, raw: Cow<'a, [u8]>, depth: usize) -> Result<usize, DefinitionError> {
        let too_large = |what| DefinitionError::TooLarge { name: self.root.to_owned(), what };
        if depth > self.nesting {
            return Err(too_large("types nested too deeply"));
        }
        if self.known.len() >= MAX_TYPES {
            return Err(too_large("more than 1024 types"));
        }
        let message = MessageText::parse(&raw)
            .map_err(|error| DefinitionError::Syntax { name: name.to_owned(), error })?;
        self.known.insert(name.to_owned(), None);
        let mut fields = Vec::with_capacity(message.fields.len());
        for field in &message.fields {
            if Primitive::named(&field.ty).is_some() {
                fields.push(None);
                continue;
            }
            let (inner, raw) = self.find(&field.ty, field.array == Array::One, name)?;
            fields.push(Some(match self.known.get(&inner) {
                Some(Some(index)) => *index,
                Some(None) => return Err(DefinitionError::Circular { name: inner }),
                None => {
                    self.names.push(inner.clone());
                    self.add(&inner, raw, depth + 1)?
                }
            }));
        }
        let index = self.list.len();
        self.list.push(Type { name: name.to_owned(), message, fields, raw: raw.into_owned() });
        self.known.insert(name.to_owned(), Some(index));
        Ok(index)
    }

    /// Returns the full name and the text of the type that `ty` refers to, if it is used in the
    /// type `user` (section 6.2 of docs/formats/rosbag.md). The text is empty if the type was
    /// resolved before.
    fn find(&self, ty: &str, single: bool, user: &str) -> Result<(String, Cow<'a, [u8]>), DefinitionError> {
        // Types were renamed over the years, so several full names may refer to the same type.
        let candidates: Vec<String> = if let Some((package, name)) = ty.split_once('/') {
            let mut names = vec![ty.to_owned()];
            names.extend(renamed(package, name));
            names
        } else {
            let package = user.split_once('/').map_or("", |(package, _)| package);
            let own = format!("{package}/{ty}");
            let headers = ["std_msgs/Header", "roslib/Header"].map(str::to_owned);
            match (ty, single) {
                // A single `Header` refers to the standard header, as in the ROS tool "genmsg".
                // roslib defined the standard header until 2010. An array of `Header` refers to a
                // type of the same package first.
                ("Header", true) => headers.into_iter().chain([own]).collect(),
                ("Header", false) => [own].into_iter().chain(headers).collect(),
                _ => vec![own],
            }
        };
        let here = |name: &String| Some((name.clone(), Cow::Borrowed(*self.sections.get(&**name)?)));
        let there = |name: &String| {
            let is_known = matches!(self.known.get(name), Some(Some(_)));
            let text = if is_known { Cow::default() } else { Cow::Owned((self.elsewhere)(name)?) };
            Some((name.clone(), text))
        };
        let found = candidates.iter().find_map(here).or_else(|| candidates.iter().find_map(there));
        found.ok_or_else(|| DefinitionError::Missing { name: ty.to_owned(), user: user.to_owned() })
    }
}

/// Returns older and newer names of the same type. The package `rostools` was renamed to `roslib`,
/// and `roslib` was split into `std_msgs` and `rosgraph_msgs`.
fn renamed(package: &str, name: &str) -> Vec<String> {
    match (package, name) {
        ("rostools", _) => vec![format!("roslib/{name}")],
        ("roslib", "Header") => vec!["std_msgs/Header".to_owned()],
        ("roslib", "Log" | "Clock") => vec![format!("rosgraph_msgs/{name}")],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nowhere(_: &str) -> Option<Vec<u8>> {
        None
    }

    #[test]
    fn types_are_listed_depth_first_each_once() {
        let text = b"Header h\nb/B b\nC c\n===\nMSG: std_msgs/Header\nuint32 seq\n===\nMSG: b/B\na/C c\n===\nMSG: a/C\nint8 x";
        let types = Types::resolve("a/A", text, 64, &nowhere).unwrap();
        assert_eq!(types.dependencies().collect::<Vec<_>>(), ["std_msgs/Header", "b/B", "a/C"]);
    }

    #[test]
    fn hostile_definitions_are_rejected() {
        let circle = b"B b\n===\nMSG: a/B\nA a\n===\nMSG: a/A\nB b";
        let error = Types::resolve("a/A", circle, 64, &nowhere).unwrap_err();
        assert!(matches!(error, DefinitionError::Circular { .. }), "{error}");
        let missing = Types::resolve("a/A", b"B b", 64, &nowhere).unwrap_err();
        assert_eq!(missing.to_string(), "type B of a field in a/A is not defined");
        let mut deep = b"T0 t".to_vec();
        for i in 0..70 {
            deep.extend(format!("\n===\nMSG: a/T{i}\nT{} t", i + 1).into_bytes());
        }
        deep.extend(b"\n===\nMSG: a/T70\nint8 x");
        let error = Types::resolve("a/A", &deep, 64, &nowhere).unwrap_err();
        assert!(matches!(error, DefinitionError::TooLarge { .. }), "{error}");
    }

    #[test]
    fn a_full_text_is_reproduced() {
        let line = "=".repeat(80);
        let text = format!("B b\n\n{line}\nMSG: a/B\nC c\n\n{line}\nMSG: a/C\nint8 x\n");
        let types = Types::resolve("a/A", text.as_bytes(), 64, &nowhere).unwrap();
        assert_eq!(String::from_utf8(types.full_text()).unwrap(), text);
    }

    #[test]
    fn header_is_std_msgs_header_but_an_array_belongs_to_the_package() {
        let all = |name: &str| name.ends_with("/Header").then(|| b"uint32 seq".to_vec());
        let of = |text: &[u8]| {
            let types = Types::resolve("a/A", text, 64, &all).unwrap();
            types.dependencies().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(of(b"Header h"), ["std_msgs/Header"]);
        assert_eq!(of(b"Header[] h"), ["a/Header"]);
        let own = b"\n===\nMSG: a/Header\nint8 x\n===\nMSG: roslib/Header\nint8 x";
        assert_eq!(of(&[&b"Header h"[..], own].concat()), ["roslib/Header"]);
        assert_eq!(of(&[&b"Header[2] h"[..], own].concat()), ["a/Header"]);
    }

    /// Without this, the text of a type would be copied for each field of the type.
    #[test]
    fn texts_are_looked_up_once_for_each_type() {
        let asked = std::cell::Cell::new(0);
        let elsewhere = |name: &str| {
            asked.set(asked.get() + 1);
            matches!(name, "a/B" | "a/C").then(|| b"int8 x\n".to_vec())
        };
        let text = ["B b\nC[] c\n".repeat(1000).as_bytes(), b"\n===\nMSG: a/C\nB b"].concat();
        let types = Types::resolve("a/A", &text, 64, &elsewhere).unwrap();
        assert_eq!(types.dependencies().collect::<Vec<_>>(), ["a/B", "a/C"]);
        assert_eq!((asked.get(), types.all()[1].text()), (1, &b"B b"[..]));
    }

    #[test]
    fn missing_types_are_requested() {
        let elsewhere = |name: &str| (name == "std_msgs/Header").then(|| b"uint32 seq".to_vec());
        let types = Types::resolve("a/A", b"Header h\nroslib/Header k", 64, &elsewhere).unwrap();
        assert_eq!(types.dependencies().collect::<Vec<_>>(), ["std_msgs/Header"]);
    }
}
