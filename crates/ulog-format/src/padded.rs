//! Row layouts that contain the padding of nested types as fields.
//!
//! The specification says that padding should not be displayed. pyulog hides only the padding of a
//! topic's own format and returns the padding of nested types as ordinary fields. Programs that
//! replace pyulog need the same fields.

use std::collections::HashMap;
use std::sync::Arc;

use rovelog_core::Topic;
use rovelog_core::internal::layout::{Element, Layout, Len, TextDecoder};
use rovelog_core::internal::names::UniqueNames;

use crate::definitions::Definitions;
use crate::schema::{Basic, FormatText, is_padding};

/// Maximum number of values and nested types in a row with its padding. It is twice the default of
/// [`Limits::leaves`](rovelog_core::Limits).
const MAX_VALUES: u64 = 1 << 17;

impl Definitions {
    /// Returns the layout of a topic's rows in which the padding of nested types consists of
    /// fields.
    ///
    /// Returns `None` if a type was redefined after the topic was subscribed, because the current
    /// definitions do not describe its rows.
    pub(crate) fn padded(&self, topic: &Topic) -> Option<Layout> {
        let layout = self.row_layout(topic).ok()?;
        let padded = Types { definitions: self, known: HashMap::new() }.layout(&topic.type_name, false, 0)?;
        let padded = Arc::into_inner(padded)?;
        // If the size of the row differs, a type was redefined. The number of values is limited
        // here, because `layout` does not count the elements of padding arrays.
        let is_same = padded.size() == Some(layout.trimmed_len as u64) && padded.values() <= MAX_VALUES;
        is_same.then_some(padded)
    }
}

/// Computes the layouts of the types in a topic's rows. The layout of each type is computed once.
struct Types<'a> {
    definitions: &'a Definitions,
    /// Layouts by type name. An entry is `None` while the layout of its type is being computed. If
    /// this type is needed again during that time, the type contains itself and is rejected.
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
            layout.field(names.assign(field), element, len, ty.to_string());
        }
        let layout = Arc::new(layout.finish());
        // The top-level format cannot be nested in its own rows, so its layout is not stored. The
        // caller is then the only owner of the `Arc`, and can take the layout out of it.
        self.known.insert(name, is_nested.then(|| Arc::clone(&layout)));
        Some(layout)
    }
}
