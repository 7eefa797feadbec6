//! Structures of a file around an offset: which record contains a byte, which field of the record,
//! and which records come before and after it.
//!
//! [`Backend::structure_at`](crate::backend::Backend::structure_at) returns a [`Structure`].

use std::collections::VecDeque;
use std::ops::Range;

use crate::internal::structure::FieldList;
pub use crate::internal::structure::FieldPlace;
use crate::{Timestamp, TopicId, Usage};

/// A part of a file that is not divided further in an overview, such as a header or a record. A
/// range of bytes that cannot be read is a region, too.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Region {
    /// Byte range of the region in the file.
    pub range: Range<u64>,
    /// Kind of the region in the terms of the log format, such as `data` or `file header`.
    pub kind: &'static str,
    /// Topic to which the region belongs, or `None` if it belongs to no topic.
    pub topic: Option<TopicId>,
    /// Time of the record, or `None` if the region has no time.
    pub time: Option<Timestamp>,
}

impl Region {
    /// Creates a region without a topic and without a time.
    pub fn new(kind: &'static str, range: Range<u64>) -> Self {
        Self { range, kind, topic: None, time: None }
    }

    /// Sets the topic and the time of the region.
    #[must_use]
    pub fn of_topic(self, topic: TopicId, time: Option<Timestamp>) -> Self {
        Self { topic: Some(topic), time, ..self }
    }

    /// Returns false if no structure was found in the region.
    pub fn is_readable(&self) -> bool {
        self.kind != Usage::UNREADABLE
    }
}

/// The structures of a file around an offset.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Structure {
    /// The last regions before `region`, in file order.
    pub before: Vec<Region>,
    /// The region that contains the offset.
    pub region: Region,
    /// The first regions after `region`, in file order.
    pub after: Vec<Region>,
    /// The fields of `region` in file order. A structure precedes the fields that it contains.
    pub fields: Vec<FieldPlace>,
}

/// The offset whose structures are wanted, and the number of regions before and after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Around {
    /// Offset of a byte in the file.
    pub at: u64,
    /// Maximum number of regions before and after the region that contains the byte.
    pub context: usize,
}

impl Structure {
    /// Finds the region that contains an offset. `size` is the size of the file in bytes.
    ///
    /// `few` and `many` are the regions of the file, which are merged by their offsets. Both are in
    /// file order. `few` is a list because its regions, such as headers, are found separately from
    /// the records. A range that is in neither of them is a region that cannot be read. `show` adds
    /// the fields of the region that was found.
    ///
    /// For example, a file of 90 bytes has the regions 0..16, 16..40 and 60..90. The offset 50 is in
    /// the region 40..60, which cannot be read.
    #[doc(hidden)]
    pub fn find(
        size: u64,
        around: Around,
        few: Vec<Region>,
        many: impl Iterator<Item = Region>,
        show: impl FnOnce(&Region, &mut FieldList),
    ) -> Self {
        let (mut few, mut many) = (few.into_iter().peekable(), many.peekable());
        let merged = std::iter::from_fn(|| match (few.peek(), many.peek()) {
            (Some(one), Some(other)) if other.range.start < one.range.start => many.next(),
            (None, _) => many.next(),
            _ => few.next(),
        });
        let file_end = std::iter::once(Region::new(Usage::UNREADABLE, size..size));
        let mut end = 0;
        let regions = merged.chain(file_end).flat_map(|mut region| {
            region.range.start = region.range.start.max(end);
            let gap = Region::new(Usage::UNREADABLE, end..region.range.start);
            end = region.range.end.max(end);
            [gap, region]
        });
        let mut regions = regions.filter(|region| !region.range.is_empty());
        let mut before = VecDeque::new();
        let region = loop {
            match regions.next() {
                Some(region) if region.range.contains(&around.at) => break region,
                Some(region) => before.push_back(region),
                None => break Region::new(Usage::UNREADABLE, size..size),
            }
            before.drain(..before.len().saturating_sub(around.context));
        };
        let after = regions.take(around.context).collect();
        let mut fields = FieldList { at: region.range.start, wanted: around.at, ..FieldList::default() };
        show(&region, &mut fields);
        // A damaged structure may have bytes after its last complete field.
        if let Ok(rest @ 1..) = usize::try_from(region.range.end.saturating_sub(fields.at)) {
            fields.section = "";
            fields.leaf("other bytes", rest, "");
        }
        Self { before: before.into(), region, after, fields: fields.list }
    }

    /// Returns the index in `fields` of the innermost field that contains the offset `at`. Returns
    /// `None` if no field contains it.
    pub fn field_at(&self, at: u64) -> Option<usize> {
        self.fields.iter().rposition(|field| field.range.contains(&at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(at: u64, context: usize) -> Structure {
        let header = |range| Region::new("header", range);
        let record = |range| Region::new("record", range);
        let records = [16..40, 60..90].map(record).into_iter();
        Structure::find(100, Around { at, context }, vec![header(0..16), header(90..95)], records, |_, _| {})
    }

    #[test]
    fn each_byte_is_in_a_region() {
        let expected = [
            (0, "header", 0..16),
            (15, "header", 0..16),
            (16, "record", 16..40),
            (50, "not readable", 40..60),
            (94, "header", 90..95),
            (99, "not readable", 95..100),
            (100, "not readable", 100..100),
            (u64::MAX, "not readable", 100..100),
        ];
        for (at, kind, range) in expected {
            assert_eq!(find(at, 0).region, Region::new(kind, range), "{at}");
        }
    }

    #[test]
    fn the_context_is_limited() {
        let starts = |regions: &[Region]| regions.iter().map(|region| region.range.start).collect::<Vec<_>>();
        let found = find(50, 1);
        assert_eq!((starts(&found.before), starts(&found.after)), (vec![16], vec![60]));
        let found = find(50, 9);
        assert_eq!((starts(&found.before), starts(&found.after)), (vec![0, 16], vec![60, 90, 95]));
    }

    #[test]
    fn regions_that_overlap_are_clipped() {
        let regions = [0..10, 5..8, 4..20].map(|range| Region::new("record", range)).into_iter();
        let found = Structure::find(20, Around { at: 12, context: 9 }, Vec::new(), regions, |_, _| {});
        assert_eq!(found.region.range, 10..20);
        assert_eq!((found.before.len(), found.after.len()), (1, 0));
    }
}
