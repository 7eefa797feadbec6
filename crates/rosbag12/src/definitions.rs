//! Message definitions in a bag, and the choice of the definition that decodes a topic (section 6.5
//! of docs/formats/rosbag.md).

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use rovelog_core::internal::layout::{Layout, TextDecoding};

use crate::msg::{DefinitionError, FullText, SumMatch, Types, known, name_of_sum};
use crate::options::BagOptions;

/// Maximum size in bytes of the text of a definition. Longer texts are truncated.
const MAX_TEXT: usize = 4 << 20;

/// md5 sum of a message type that has neither fields nor constants.
const EMPTY_SUM: &[u8] = b"d41d8cd98f00b204e9800998ecf8427e";

/// Limit in bytes on the texts of other definitions that are parsed to resolve missing types. Eight
/// times the size of the texts in the bag is added to this limit. Without a limit, malicious bags
/// could take very long.
const MAX_OTHER_TEXT: u64 = 64 << 20;

/// Source of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// A definition record that has the topic, type and md5 sum of the messages.
    Topic,
    /// Another definition record in the bag that has the same md5 sum.
    SameMd5,
    /// Another definition record in the bag that has the same type name.
    SameType,
    /// The built-in catalogue of common types. The type was found by its md5 sum or by its name.
    Catalogue,
    /// A definition that the caller has provided.
    Layout,
}

impl Source {
    /// Returns the name of this source in text and JSON output.
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

/// A definition that decodes messages.
#[derive(Debug)]
#[non_exhaustive]
pub struct Definition {
    /// Source of the definition.
    pub source: Source,
    /// Full text of the definition. A definition from the catalogue has only the text of its root
    /// type.
    pub text: Arc<[u8]>,
    /// Root type of the definition and all types that it needs.
    pub types: Arc<Types>,
    /// Result of comparing the definition with the md5 sum in the bag.
    pub sum: SumMatch,
    /// Layout that decodes payloads according to the definition.
    pub layout: Arc<Layout>,
}

impl Definition {
    /// Returns whether the definition is only a guess. If a payload does not match a guessed
    /// definition exactly, the raw bytes of the payload are returned.
    pub fn is_guess(&self) -> bool {
        !matches!(self.source, Source::Topic) && !matches!(self.sum, SumMatch::V2 | SumMatch::V1)
    }
}

/// Content of a definition record in the bag.
#[derive(Debug)]
struct Record {
    /// Topic name as stored in the record.
    topic: Box<[u8]>,
    /// Type name as stored in the record.
    ty: Arc<[u8]>,
    /// md5 sum as stored in the record.
    md5: Arc<[u8]>,
    /// Text of the definition.
    text: Arc<[u8]>,
    /// Index of the first record that has the same type and text. The text is compiled once for all
    /// such records.
    same: usize,
    /// Offset in the file of the record.
    at: u64,
}

/// Result of compiling a definition: its types, and the layout that decodes payloads.
type Compiled = (Arc<Types>, Arc<Layout>);

/// Source of the text of a definition that is compiled.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum TextSource {
    Record(usize),
    Named(Source, String),
}

/// Type name and text of a definition, which are the key of compiled definitions.
type TypeAndText = (Arc<[u8]>, Arc<[u8]>);

/// All definition records of a bag that differ in topic, type, md5 sum or text.
#[derive(Debug, Default)]
pub(crate) struct DefinitionRecords {
    /// All records, in the order in which they were found.
    list: Vec<Record>,
    /// Map from a topic name to the indices of its definition records.
    by_topic: HashMap<Box<[u8]>, Vec<usize>>,
    /// Map from the type and text of a definition to the index of the first record with both.
    by_text: HashMap<TypeAndText, usize>,
    /// Map from an md5 sum to the indices of the first definition records with this md5 sum.
    by_md5: HashMap<Box<[u8]>, Vec<usize>>,
    /// Map from a type name to the indices of the first definition records with this type.
    by_type: HashMap<Box<[u8]>, Vec<usize>>,
    /// Map from a type name to the definition record that contains the text of this type, and the
    /// range of this text in the record.
    own_text: HashMap<String, (usize, Range<usize>)>,
    /// Total size in bytes of all texts in the records.
    bytes: u64,
}

impl DefinitionRecords {
    /// Returns the number of records.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Adds a definition record of the bag, unless an equal record was added before.
    pub(crate) fn add(&mut self, topic: &[u8], ty: &[u8], md5: &[u8], text: &[u8], at: u64) {
        let text = &text[..text.len().min(MAX_TEXT)];
        let is_equal = |index: &usize| {
            let record = &self.list[*index];
            (&*record.ty, &*record.md5, &*record.text) == (ty, md5, text)
        };
        if self.by_topic.get(topic).is_some_and(|records| records.iter().any(is_equal)) {
            return;
        }
        let number = self.list.len();
        for (map, key) in [(&mut self.by_topic, topic), (&mut self.by_md5, md5), (&mut self.by_type, ty)] {
            // When a definition is looked up, only the first records with the same key are tried.
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
        // Thousands of topics may have the same definition, so records with equal definitions share
        // its text.
        let (ty, md5, text) = match self.list.get(same) {
            Some(Record { ty, md5: first_md5, text, .. }) => {
                let md5 = if **first_md5 == *md5 { Arc::clone(first_md5) } else { md5.into() };
                (Arc::clone(ty), md5, Arc::clone(text))
            }
            None => (ty, md5.into(), text),
        };
        self.list.push(Record { topic: topic.into(), ty, md5, text, same, at });
    }

    /// Returns the records that may decode the messages of a topic, each with its source, best
    /// first.
    fn candidates(&self, topic: &[u8], ty: &[u8], md5: &[u8]) -> Vec<(Source, usize)> {
        let mut found = Vec::new();
        let mut add = |source: Source, map: &HashMap<Box<[u8]>, Vec<usize>>, key: &[u8]| {
            found.extend(map.get(key).into_iter().flatten().map(|index| (source, *index)));
        };
        add(Source::Topic, &self.by_topic, topic);
        // The md5 sum `*` matches any definition, so it cannot identify a definition.
        if md5.len() == 32 {
            add(Source::SameMd5, &self.by_md5, md5);
        }
        add(Source::SameType, &self.by_type, ty);
        found.retain(|(source, index)| {
            let record = &self.list[*index];
            *source != Source::Topic || (&*record.ty, &*record.md5) == (ty, md5)
        });
        found
    }

    /// Returns the text of a type, if a record contains it.
    fn own_text(&self, name: &str) -> Option<&[u8]> {
        let (record, range) = self.own_text.get(name)?;
        self.list[*record].text.get(range.clone())
    }

    /// Returns the text of the definition record that has this topic, type and md5 sum, as stored.
    pub(crate) fn text_of(&self, topic: &[u8], ty: &[u8], md5: &[u8]) -> Option<&[u8]> {
        let record = |index: &usize| &self.list[*index];
        let same = |record: &&Record| (&*record.topic, &*record.ty, &*record.md5) == (topic, ty, md5);
        self.by_topic.get(topic)?.iter().map(record).find(same).map(|record| &*record.text)
    }
}

/// All message definitions that are available for a bag.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    /// Definition records of the bag.
    pub(crate) records: DefinitionRecords,
    /// Map from a type name to the definition that the caller has provided for this type.
    layouts: BTreeMap<String, Vec<u8>>,
    /// Maximum nesting depth of types in a definition.
    nesting: usize,
    /// Setting for decoding texts in messages.
    pub(crate) decoding: TextDecoding,
    /// Results of compiling definitions. Each result has the number of definition records at the
    /// time of compiling.
    compiled: HashMap<TextSource, (usize, Result<Compiled, DefinitionError>)>,
    /// Total size in bytes of the definition texts that were parsed or searched so far. It is
    /// limited, so that a hostile bag cannot make opening slow.
    used: u64,
}

/// Result of looking up the definition of a topic.
pub(crate) struct Lookup {
    /// Definition of the topic, or the reason why there is none.
    pub(crate) definition: Result<Arc<Definition>, Option<DefinitionError>>,
    /// The topic's own definition, if the bag has one that cannot be used.
    pub(crate) unusable: Option<Unusable>,
}

/// A definition in the bag that cannot be used.
#[derive(Debug)]
pub(crate) struct Unusable {
    /// Offset of the definition.
    pub(crate) at: u64,
    /// Reason why the definition cannot be used.
    pub(crate) why: DefinitionError,
}

impl Definitions {
    pub(crate) fn new(options: &BagOptions) -> Self {
        let decoding = TextDecoding::new(options.read.text_encoding);
        let (layouts, nesting) = (options.layouts.clone(), options.read.limits.nesting);
        Self { layouts, nesting, decoding, ..Self::default() }
    }

    /// Returns the definition that decodes the messages of a topic.
    pub(crate) fn find(&mut self, topic: &[u8], ty: &[u8], md5: &[u8]) -> Lookup {
        let (mut unusable, mut why) = (None, None);
        for (source, index) in self.records.candidates(topic, ty, md5) {
            let record = &self.records.list[index];
            let (at, ty, text) = (record.at, Arc::clone(&record.ty), Arc::clone(&record.text));
            match self.definition(TextSource::Record(record.same), source, &ty, text, md5) {
                Ok(found) => return Lookup { definition: Ok(found), unusable },
                Err(error) if source == Source::Topic => {
                    unusable = Some(Unusable { at, why: error.clone() });
                    why = Some(error);
                }
                Err(error) => why = why.or(Some(error)),
            }
        }
        let name = String::from_utf8_lossy(ty);
        let sum = std::str::from_utf8(md5).ok().and_then(name_of_sum);
        // The type name is used only if there is no md5 sum, because a type with the same name but
        // a different md5 sum is a different type.
        let by_name = (md5.len() != 32).then_some(&*name);
        for name in sum.into_iter().chain(by_name) {
            if let Some(text) = known(name)
                && let Ok(found) = self.definition(
                    TextSource::Named(Source::Catalogue, name.to_owned()),
                    Source::Catalogue,
                    name.as_bytes(),
                    text.as_bytes().into(),
                    md5,
                )
            {
                return Lookup { definition: Ok(found), unusable };
            }
        }
        let Some(text) = self.layouts.get(&*name) else {
            return Lookup { definition: Err(why), unusable };
        };
        let (of, text) = (TextSource::Named(Source::Layout, name.to_string()), text.as_slice().into());
        let definition = self.definition(of, Source::Layout, ty, text, md5);
        Lookup { definition: definition.map_err(|error| why.or(Some(error))), unusable }
    }

    fn definition(
        &mut self,
        of: TextSource,
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

    /// Returns whether the type, md5 sum and definition of a connection agree with each other.
    pub(crate) fn are_in_agreement(&self, ty: &[u8], md5: &[u8], text: &[u8]) -> bool {
        let name = String::from_utf8_lossy(ty);
        let sum = std::str::from_utf8(md5).ok().and_then(name_of_sum);
        sum.is_none_or(|known| *known == *name)
            && Types::resolve(&name, text, self.nesting, &|_| None)
                .is_ok_and(|types| types.agrees(md5, text) != SumMatch::No)
    }

    /// Compiles the text of a definition, or returns the result of an earlier call. After a
    /// failure, compiling is tried again if definition records were added since, until the limit on
    /// parsed texts is reached.
    fn compile(&mut self, of: TextSource, name: &str, text: &[u8]) -> Result<Compiled, DefinitionError> {
        let budget = MAX_OTHER_TEXT + 8 * self.records.bytes;
        match self.compiled.get(&of) {
            Some((_, Ok(compiled))) => return Ok(compiled.clone()),
            // No definition record was added since the failure, so compiling would fail again.
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

    /// Returns the text of a type. The text comes from the bag, the catalogue or the caller.
    fn own_text(&self, name: &str) -> Option<Vec<u8>> {
        let from_layout = || Some(FullText::split(self.layouts.get(name)?).root);
        let text = self.records.own_text(name).or_else(|| known(name).map(str::as_bytes));
        text.or_else(from_layout).map(<[u8]>::to_vec)
    }
}
