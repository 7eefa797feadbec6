//! Rows with the padding of nested types as fields, as pyulog shows them. Padding of a topic's own
//! format is no field there either.

use std::collections::HashMap;
use std::sync::Arc;

use rovelog_core::Topic;
use rovelog_core::layout::{Element, Layout, Len, TextDecoder};
use rovelog_core::names::UniqueNames;

use crate::definitions::Definitions;
use crate::schema::{Basic, FormatText, is_padding};

/// Maximum number of values and nested types in a row: twice the limit of its leaves.
const MAX_VALUES: u64 = 1 << 17;

impl Definitions {
    /// Returns the layout of a topic's rows with the padding of nested types as fields. Returns `None` if a type was
    /// redefined since the topic was subscribed, so that the texts do not describe its rows any more.
    pub(crate) fn padded(&self, topic: &Topic) -> Option<Layout> {
        let layout = self.row_layout(topic).ok()?;
        let padded = Types { definitions: self, known: HashMap::new() }.layout(&topic.type_name, false, 0)?;
        let padded = Arc::into_inner(padded)?;
        // The limit of leaves holds for padding too.
        let is_same = padded.size() == Some(layout.trimmed as u64) && padded.values() <= MAX_VALUES;
        is_same.then_some(padded)
    }
}

/// The types of a topic, each laid out once.
struct Types<'a> {
    definitions: &'a Definitions,
    /// `None` for a type that is being laid out.
    known: HashMap<&'a str, Option<Arc<Layout>>>,
}

impl Types<'_> {
    fn layout(&mut self, name: &str, is_nested: bool, depth: usize) -> Option<Arc<Layout>> {
        let (name, text) = self.definitions.formats.definition(name)?;
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }
        if depth > self.definitions.limits().nesting {
            return None;
        }
        self.known.insert(name, None);
        let format = FormatText::parse(text.as_bytes())?;
        let mut layout = Layout::builder(name).with_text_decoding(&self.definitions.formats.decoding);
        let mut names = UniqueNames::default();
        for (ty, field) in format.fields() {
            let element = match Basic::parse(ty.base) {
                Some(Basic::Scalar(scalar)) => Element::Scalar(scalar),
                Some(Basic::Char) => Element::Char(TextDecoder::UTF8),
                None => Element::Struct(self.layout(ty.base, true, depth + 1)?),
            };
            if !is_nested && is_padding(field) {
                layout.padding(element.size()?.saturating_mul(ty.len.unwrap_or(1)));
                continue;
            }
            let len = ty.len.map_or(Some(Len::One), |len| u32::try_from(len).ok().map(Len::Fixed))?;
            layout.field(names.give(field), element, len, ty.to_string());
        }
        let layout = Arc::new(layout.finish());
        // The format of a topic is no part of its own rows.
        self.known.insert(name, is_nested.then(|| Arc::clone(&layout)));
        Some(layout)
    }
}
