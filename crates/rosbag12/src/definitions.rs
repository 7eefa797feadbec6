//! The definitions of a bag, and which of them decodes a topic's messages (section 6.5).

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use rovelog_core::layout::{Layout, TextDecoding};

use crate::msg::{DefinitionError, FullText, SumMatch, Types, known, name_of_sum};
use crate::options::BagOptions;

/// Bytes of a definition that are read.
const MAX_TEXT: usize = 4 << 20;

/// The sum of a type without fields and constants.
const EMPTY_SUM: &[u8] = b"d41d8cd98f00b204e9800998ecf8427e";

/// Bytes of texts that are looked up for definitions that lack them, beyond those of the bag
/// itself.
const ELSEWHERE: u64 = 64 << 20;

/// Where the definition of a topic comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// A definition record of the same topic, type and md5 sum.
    Topic,
    /// Another definition of the bag with the same md5 sum.
    SameMd5,
    /// Another definition of the bag with the same type.
    SameType,
    /// The built-in catalogue, by the md5 sum or by the type.
    Catalogue,
    /// A definition that the caller gave.
    Layout,
}

impl Source {
    /// Returns the word used in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Topic => "topic",
            Self::SameMd5 => "same md5",
            Self::SameType => "same type",
            Self::Catalogue => "catalogue",
            Self::Layout => "layouts",
        }
    }
}

/// A definition in use.
#[derive(Debug)]
#[non_exhaustive]
pub struct Definition {
    /// Where it comes from.
    pub source: Source,
    /// Its full text, or the own text of the type for one of the catalogue.
    pub text: Arc<[u8]>,
    /// Its types.
    pub types: Arc<Types>,
    /// How it agrees with the md5 sum that the bag gives.
    pub sum: SumMatch,
    /// How payloads are decoded by it.
    pub layout: Arc<Layout>,
}

impl Definition {
    /// Returns whether it is only a guess, so that a payload that does not fit it exactly is left
    /// as bytes.
    pub fn is_guess(&self) -> bool {
        !matches!(self.source, Source::Topic) && !matches!(self.sum, SumMatch::V2 | SumMatch::V1)
    }
}

/// A definition record.
#[derive(Debug)]
struct Record {
    topic: Box<[u8]>,
    ty: Arc<[u8]>,
    md5: Arc<[u8]>,
    text: Arc<[u8]>,
    /// The first record with this type and text, which is compiled for all of them.
    same: usize,
    at: u64,
}

/// A text that was compiled.
type Compiled = (Arc<Types>, Arc<Layout>);

/// What a text is compiled of: a record, or a type of the catalogue or the layouts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Of {
    Record(usize),
    Named(Source, String),
}

/// The type of a definition and its text, by which equal ones are found.
type TypeAndText = (Arc<[u8]>, Arc<[u8]>);

/// All definitions of a bag.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    records: Vec<Record>,
    by_topic: HashMap<Box<[u8]>, Vec<usize>>,
    by_text: HashMap<TypeAndText, usize>,
    by_md5: HashMap<Box<[u8]>, Vec<usize>>,
    by_type: HashMap<Box<[u8]>, Vec<usize>>,
    /// The own text of each type: its record, and where in the text.
    own_text: HashMap<String, (usize, Range<usize>)>,
    /// By type, given by the caller.
    layouts: BTreeMap<String, Vec<u8>>,
    nesting: usize,
    /// How the texts of messages are decoded.
    pub(crate) decoding: TextDecoding,
    /// What was compiled already; a failure with the number of records at that time.
    compiled: HashMap<Of, (usize, Result<Compiled, DefinitionError>)>,
    /// Bytes of texts compiled and looked up so far, and of those in the bag.
    used: u64,
    bytes: u64,
}

/// What was found for a topic: a definition, or why there is none; the offset of what could not be
/// used.
pub(crate) type Found = (Result<Arc<Definition>, Option<DefinitionError>>, Option<(u64, DefinitionError)>);

impl Definitions {
    pub(crate) fn new(options: &BagOptions) -> Self {
        let decoding = TextDecoding::new(options.read.text_encoding);
        let (layouts, nesting) = (options.layouts.clone(), options.read.limits.nesting);
        Self { layouts, nesting, decoding, ..Self::default() }
    }

    /// Takes a definition record; whether it is new.
    pub(crate) fn take(&mut self, topic: &[u8], ty: &[u8], md5: &[u8], text: &[u8], at: u64) -> bool {
        let text = &text[..text.len().min(MAX_TEXT)];
        let same = |index: &usize| {
            let record = &self.records[*index];
            (&*record.ty, &*record.md5, &*record.text) == (ty, md5, text)
        };
        if self.by_topic.get(topic).is_some_and(|records| records.iter().any(same)) {
            return false;
        }
        let number = self.records.len();
        for (map, key) in [(&mut self.by_topic, topic), (&mut self.by_md5, md5), (&mut self.by_type, ty)] {
            // The first few of a kind are all that is ever tried.
            let list = map.entry(key.into()).or_default();
            if list.len() < 8 {
                list.push(number);
            }
        }
        if !text.trim_ascii().is_empty() {
            let full = FullText::split(text);
            let place = |part: &[u8]| {
                let start = part.as_ptr() as usize - text.as_ptr() as usize;
                start..start + part.len()
            };
            let root = String::from_utf8_lossy(ty).into_owned();
            self.own_text.entry(root).or_insert_with(|| (number, place(full.root)));
            for (name, part) in full.sections.iter().filter(|(_, part)| !part.is_empty()) {
                self.own_text.entry(name.to_string()).or_insert_with(|| (number, place(part)));
            }
        }
        self.bytes += text.len() as u64;
        let (ty, text): (Arc<[u8]>, Arc<[u8]>) = (ty.into(), text.into());
        let same = *self.by_text.entry((Arc::clone(&ty), Arc::clone(&text))).or_insert(number);
        let shared = self.records.get(same);
        let (ty, text) = shared.map_or((ty, text), |first| (Arc::clone(&first.ty), Arc::clone(&first.text)));
        let md5 =
            shared.filter(|first| *first.md5 == *md5).map_or(md5.into(), |first| Arc::clone(&first.md5));
        self.records.push(Record { topic: topic.into(), ty, md5, text, same, at });
        true
    }

    /// Returns the definition that decodes the messages of a topic.
    pub(crate) fn find(&mut self, topic: &[u8], ty: &[u8], md5: &[u8]) -> Found {
        let mut unusable = None;
        let mut why = None;
        let list =
            |map: &HashMap<Box<[u8]>, Vec<usize>>, key: &[u8]| map.get(key).cloned().unwrap_or_default();
        let of_topic = list(&self.by_topic, topic).into_iter().filter(|index| {
            let record = &self.records[*index];
            (&*record.ty, &*record.md5) == (ty, md5)
        });
        let by_sum = if md5.len() == 32 { list(&self.by_md5, md5) } else { Vec::new() };
        let candidates: Vec<_> = of_topic
            .map(|index| (Source::Topic, index))
            .chain(by_sum.into_iter().map(|index| (Source::SameMd5, index)))
            .chain(list(&self.by_type, ty).into_iter().map(|index| (Source::SameType, index)))
            .collect();
        for (source, index) in candidates {
            let record = &self.records[index];
            let (at, ty, text) = (record.at, Arc::clone(&record.ty), Arc::clone(&record.text));
            match self.definition(Of::Record(record.same), source, &ty, text, md5) {
                Ok(found) => return (Ok(found), unusable),
                Err(error) if source == Source::Topic => {
                    unusable = Some((at, error.clone()));
                    why = Some(error);
                }
                Err(error) => why = why.or(Some(error)),
            }
        }
        let name = String::from_utf8_lossy(ty);
        let sum = std::str::from_utf8(md5).ok().and_then(name_of_sum);
        // A known type of another sum is another type.
        let by_name = (md5.len() != 32).then_some(&*name);
        for name in sum.into_iter().chain(by_name) {
            if let Some(text) = known(name)
                && let Ok(found) = self.definition(
                    Of::Named(Source::Catalogue, name.to_owned()),
                    Source::Catalogue,
                    name.as_bytes(),
                    text.as_bytes().into(),
                    md5,
                )
            {
                return (Ok(found), unusable);
            }
        }
        if let Some(text) = self.layouts.get(&*name) {
            let (of, text) = (Of::Named(Source::Layout, name.to_string()), text.as_slice().into());
            match self.definition(of, Source::Layout, ty, text, md5) {
                Ok(found) => return (Ok(found), unusable),
                Err(error) => why = why.or(Some(error)),
            }
        }
        (Err(why), unusable)
    }

    fn definition(
        &mut self,
        of: Of,
        source: Source,
        ty: &[u8],
        text: Arc<[u8]>,
        md5: &[u8],
    ) -> Result<Arc<Definition>, DefinitionError> {
        let name = String::from_utf8_lossy(ty);
        let has_no_fields = || md5 == EMPTY_SUM || known(&name) == Some("");
        if text.trim_ascii().is_empty() && !has_no_fields() {
            return Err(DefinitionError::Empty);
        }
        let (types, layout) = self.compile(of, &name, &text)?;
        let sum = types.agrees(md5, &text);
        Ok(Arc::new(Definition { source, text, types, sum, layout }))
    }

    /// Returns whether the type, the sum and the definition that a connection states agree with each
    /// other, as far as its own text says.
    pub(crate) fn are_in_agreement(&self, ty: &[u8], md5: &[u8], text: &[u8]) -> bool {
        let name = String::from_utf8_lossy(ty);
        let sum = std::str::from_utf8(md5).ok().and_then(name_of_sum);
        sum.is_none_or(|known| *known == *name)
            && Types::resolve(&name, text, self.nesting, &|_| None)
                .is_ok_and(|types| types.agrees(md5, text) != SumMatch::No)
    }

    /// Compiles a text, once. What failed is tried again only while there is new to be found and
    /// work left.
    fn compile(&mut self, of: Of, name: &str, text: &[u8]) -> Result<Compiled, DefinitionError> {
        let budget = ELSEWHERE + 8 * self.bytes;
        match self.compiled.get(&of) {
            Some((_, Ok(compiled))) => return Ok(compiled.clone()),
            Some((records, Err(error))) if *records == self.records.len() || self.used > budget => {
                return Err(error.clone());
            }
            _ => {}
        }
        let used = Cell::new(self.used + text.len() as u64);
        let elsewhere = |name: &str| {
            let text = self.own_text(name)?;
            used.set(used.get() + text.len() as u64);
            (used.get() <= budget).then_some(text)
        };
        let types = Types::resolve(name, text, self.nesting, &elsewhere);
        let compiled = types.and_then(|types| {
            let layout = types.layout(&self.decoding)?;
            Ok((Arc::new(types), layout))
        });
        self.used = used.get();
        self.compiled.insert(of, (self.records.len(), compiled.clone()));
        compiled
    }

    /// Returns the own text of a type from anywhere in the bag, the catalogue or the layouts.
    fn own_text(&self, name: &str) -> Option<Vec<u8>> {
        let from_bag = || {
            let (record, range) = self.own_text.get(name)?;
            self.records[*record].text.get(range.clone()).map(<[u8]>::to_vec)
        };
        let from_layout = || Some(FullText::split(self.layouts.get(name)?).root.to_vec());
        from_bag().or_else(|| known(name).map(|text| text.as_bytes().to_vec())).or_else(from_layout)
    }

    /// Returns the text of the definition record of a topic, as it is in the bag.
    pub(crate) fn text_of(&self, topic: &[u8], ty: &[u8], md5: &[u8]) -> Option<&[u8]> {
        let record = |index: &usize| &self.records[*index];
        let same = |record: &&Record| (&*record.topic, &*record.ty, &*record.md5) == (topic, ty, md5);
        self.by_topic.get(topic)?.iter().map(record).find(same).map(|record| &*record.text)
    }
}
