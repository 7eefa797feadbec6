//! A type with everything it needs, found in its full text, elsewhere, or in the catalogue.

use std::borrow::Cow;
use std::collections::HashMap;

use super::text::{Array, FullText, MessageText, Primitive, SyntaxError};

/// Types that one definition may need.
const MAX_TYPES: usize = 1024;

/// Why a definition cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DefinitionError {
    /// The text is empty.
    #[error("the definition is empty")]
    Empty,
    /// A line breaks the grammar.
    #[error("in {name}, {error}")]
    Syntax {
        /// The type.
        name: String,
        /// The line.
        error: SyntaxError,
    },
    /// A type that is needed is defined nowhere.
    #[error("{name}, which {user} has as a field, is not defined")]
    Missing {
        /// The missing type.
        name: String,
        /// The type that needs it.
        user: String,
    },
    /// A type contains itself.
    #[error("{name} contains itself")]
    Circular {
        /// The type.
        name: String,
    },
    /// Too deep, too many types, or too many values of fixed number.
    #[error("{name} is too large: {what}")]
    TooLarge {
        /// The type.
        name: String,
        /// Which limit it passes.
        what: &'static str,
    },
}

/// A type and all types in it.
#[derive(Clone, Debug)]
pub struct Types {
    /// The types; the last one is the root, and each is behind those it has as fields.
    pub(super) list: Vec<Type>,
    /// The indices in the order in which "gendeps" lists them: depth first, each once, the root
    /// left out.
    pub(super) in_text_order: Vec<usize>,
}

/// One of the [`Types`].
#[derive(Clone, Debug)]
pub struct Type {
    pub(super) name: String,
    pub(super) message: MessageText,
    pub(super) fields: Vec<Option<usize>>,
    pub(super) raw: Vec<u8>,
}

impl Type {
    /// Returns its full name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its fields and constants.
    pub fn message(&self) -> &MessageText {
        &self.message
    }

    /// Returns for each field the index of its type among [`Types::all`], where it is no primitive.
    pub fn nested(&self) -> &[Option<usize>] {
        &self.fields
    }

    /// Returns its own text as it was found.
    pub fn text(&self) -> &[u8] {
        &self.raw
    }
}

impl Types {
    /// Resolves the definition of `root`. What the text lacks is asked of `elsewhere`: the own text
    /// of a type by its full name.
    ///
    /// # Errors
    /// Returns an error if the text breaks the grammar, lacks a type, or is hostile.
    pub fn resolve(
        root: &str,
        text: &[u8],
        nesting: usize,
        elsewhere: &dyn Fn(&str) -> Option<Vec<u8>>,
    ) -> Result<Self, DefinitionError> {
        let full = FullText::split(text);
        // Of a name that is there twice, the first one counts.
        let sections = full.sections.iter().rev().map(|(name, text)| (&**name, *text)).collect();
        let mut resolver = Resolver {
            sections,
            elsewhere,
            nesting,
            root,
            known: HashMap::new(),
            types: Self { list: Vec::new(), in_text_order: Vec::new() },
            met: Vec::new(),
        };
        resolver.add(root, full.root.into(), 0)?;
        resolver.order();
        Ok(resolver.types)
    }

    /// Returns all types: the root is last, and each behind those it has as fields.
    pub fn all(&self) -> &[Type] {
        &self.list
    }

    /// Returns the indices among [`all`](Self::all) of the types in the root, in the order of a
    /// full text.
    pub fn in_text_order(&self) -> &[usize] {
        &self.in_text_order
    }

    /// Returns the names of the types in the root, in the order of a full text.
    pub fn dependencies(&self) -> impl Iterator<Item = &str> {
        self.in_text_order.iter().map(|index| self.list[*index].name.as_str())
    }

    /// Returns the full text, as "gendeps" writes it (section 6.1).
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

    /// Returns the root's constants.
    pub fn constants(&self) -> &[super::text::Constant] {
        self.list.last().map_or(&[], |root| &root.message.constants)
    }
}

struct Resolver<'a> {
    /// The texts of the types in the full text, by name.
    sections: HashMap<&'a str, &'a [u8]>,
    elsewhere: &'a dyn Fn(&str) -> Option<Vec<u8>>,
    nesting: usize,
    root: &'a str,
    /// The index of each type; `None` while it is being resolved.
    known: HashMap<String, Option<usize>>,
    types: Types,
    /// Names in the order in which they were first met.
    met: Vec<String>,
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
                    self.met.push(inner.clone());
                    self.add(&inner, raw, depth + 1)?
                }
            }));
        }
        let index = self.types.list.len();
        self.types.list.push(Type { name: name.to_owned(), message, fields, raw: raw.into_owned() });
        self.known.insert(name.to_owned(), Some(index));
        Ok(index)
    }

    /// Returns the full name and text of the type that `ty` means within `user` (section 6.2); the text
    /// of one that is known is not looked up again elsewhere.
    fn find(&self, ty: &str, single: bool, user: &str) -> Result<(String, Cow<'a, [u8]>), DefinitionError> {
        let candidates: Vec<String> = if let Some((package, name)) = ty.split_once('/') {
            let mut names = vec![ty.to_owned()];
            names.extend(renamed(package, name));
            names
        } else {
            let package = user.split_once('/').map_or("", |(package, _)| package);
            let own = format!("{package}/{ty}");
            let headers = ["std_msgs/Header", "roslib/Header"].map(str::to_owned);
            match (ty, single) {
                // As genmsg reads it; roslib has had it until 2010. A list is of the same package.
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

    fn order(&mut self) {
        let known = |name: &String| self.known.get(name).copied().flatten();
        self.types.in_text_order = self.met.iter().filter_map(known).collect();
    }
}

/// Other names of the same type: `rostools` became `roslib`, and that `std_msgs` and
/// `rosgraph_msgs`.
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
    fn hostile_definitions_are_refused() {
        let circle = b"B b\n===\nMSG: a/B\nA a\n===\nMSG: a/A\nB b";
        let error = Types::resolve("a/A", circle, 64, &nowhere).unwrap_err();
        assert!(matches!(error, DefinitionError::Circular { .. }), "{error}");
        let missing = Types::resolve("a/A", b"B b", 64, &nowhere).unwrap_err();
        assert_eq!(missing.to_string(), "B, which a/A has as a field, is not defined");
        let mut deep = b"T0 t".to_vec();
        for i in 0..70 {
            deep.extend(format!("\n===\nMSG: a/T{i}\nT{} t", i + 1).into_bytes());
        }
        deep.extend(b"\n===\nMSG: a/T70\nint8 x");
        let error = Types::resolve("a/A", &deep, 64, &nowhere).unwrap_err();
        assert!(matches!(error, DefinitionError::TooLarge { .. }), "{error}");
    }

    #[test]
    fn a_full_text_is_made_as_it_was() {
        let line = "=".repeat(80);
        let text = format!("B b\n\n{line}\nMSG: a/B\nC c\n\n{line}\nMSG: a/C\nint8 x\n");
        let types = Types::resolve("a/A", text.as_bytes(), 64, &nowhere).unwrap();
        assert_eq!(String::from_utf8(types.full_text()).unwrap(), text);
    }

    #[test]
    fn a_header_is_that_of_std_msgs_and_a_list_of_them_of_the_same_package() {
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

    /// Each costs as many bytes as the text has, for each field of the type.
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
    fn what_is_missing_is_found_elsewhere() {
        let elsewhere = |name: &str| (name == "std_msgs/Header").then(|| b"uint32 seq".to_vec());
        let types = Types::resolve("a/A", b"Header h\nroslib/Header k", 64, &elsewhere).unwrap();
        assert_eq!(types.dependencies().collect::<Vec<_>>(), ["std_msgs/Header"]);
    }
}
