//! The trait [`Backend`]: the parts of a reader that a format implements and callers do not use.

use std::io::Write;
use std::ops::Range;

use crate::internal::edit::Edit;
use crate::internal::layout::EscapedTexts;
use crate::internal::partial::Unread;
use crate::internal::{memory, order};
use crate::reader::Records;
#[cfg(feature = "arrow")]
use crate::reader::{Batches, TopicBatches};
use crate::{Around, Error, ErrorKind, LogReader, Result, Select, Structure, TopicId};

/// The parts of a reader behind [`LogReader`]. `LogReader` checks the arguments before it calls
/// them: the selected records are in parts of the log that were read, and the topics exist.
///
/// The methods with the feature `arrow` have default bodies. Otherwise, a crate that enables the
/// feature would break implementations in crates that do not enable it.
pub trait Backend: Send + Sync {
    /// Returns this reader as a trait object.
    fn as_log(&self) -> &dyn LogReader;

    /// Implements [`LogReader::records`]. Memory use must not depend on the size of the file.
    fn read_records<'a>(&'a self, select: &Select) -> Records<'a>;

    /// Returns the selected records, but no error for missing records. The caller must report the
    /// lost data of [`LogReader::losses`] instead.
    fn intact_records<'a>(&'a self, select: &Select) -> Records<'a> {
        let is_loss = |error: &crate::Error| error.kind == ErrorKind::DataLost;
        Box::new(self.as_log().records(select).filter(move |record| !record.as_ref().is_err_and(is_loss)))
    }

    /// Implements [`TopicRef::columns`](crate::TopicRef::columns).
    ///
    /// # Errors
    /// Returns an error if the records of the topic cannot be decoded, or if the format has no
    /// columns.
    #[cfg(feature = "arrow")]
    fn read_columns<'a>(&'a self, _: TopicId, _: &Select) -> Result<Batches<'a>> {
        let format = self.as_log().format();
        let why = format!("{} logs have no columns", format.name);
        Err(Error::new(format.id, ErrorKind::Unsupported, None, why))
    }

    /// Implements [`LogReader::batches`]. The default implementation reads the topics one after the
    /// other. A format can override it to read all topics in one pass.
    #[cfg(feature = "arrow")]
    fn read_batches<'a>(&'a self, select: &Select) -> TopicBatches<'a> {
        let select = select.clone();
        let topics = self.as_log().topics().iter();
        let topics = topics.filter(|topic| topic.count > 0 && select.keeps_topic(topic)).collect::<Vec<_>>();
        // A topic whose records cannot be decoded has no batches.
        let columns =
            move |topic: &'a crate::Topic| Some((topic.id, self.read_columns(topic.id, &select).ok()?));
        let columns = topics.into_iter().filter_map(columns);
        Box::new(columns.flat_map(|(id, batches)| batches.map(move |batch| Ok((id, batch?)))))
    }

    /// Returns the topics with selected records that cannot be decoded, each with the number of
    /// these records. Such records are missing from columns. The numbers are complete after the
    /// columns have been read.
    ///
    /// Only records that are otherwise intact are counted. Lost byte ranges are in
    /// [`LogReader::losses`].
    fn undecodable(&self, _: &Select) -> Vec<(TopicId, u64)> {
        Vec::new()
    }

    /// Implements [`TopicRef::definition`](crate::TopicRef::definition).
    fn topic_definition(&self, _: TopicId) -> Option<String> {
        None
    }

    /// Returns the text fields with escaped bytes that were read since the last call of this
    /// method. Bytes that are not UTF-8 are escaped, so nothing is lost. Set
    /// [`ReadOptions::text_encoding`](crate::ReadOptions::text_encoding) to decode such fields.
    fn take_escaped_texts(&self) -> Vec<EscapedTexts> {
        Vec::new()
    }

    /// Returns the size in bytes of the buffers that one pass over the records needs, such as
    /// decompressed blocks of the log. The default implementation returns 0.
    fn buffer_bytes(&self) -> usize {
        0
    }

    /// Checks that the memory for one pass over the records can be allocated.
    ///
    /// # Errors
    /// Returns an error if memory is not sufficient.
    fn check_memory(&self) -> Result<()> {
        let log = self.as_log();
        let records = usize::try_from(log.info().records).unwrap_or(usize::MAX);
        // Records are sorted by their positions. Merging two sorted halves needs further memory for
        // one half.
        let places = records.min(order::MAX_PLACES) * size_of::<order::Place>();
        memory::check(places + places / 2 + self.buffer_bytes())
            .map_err(|error| Error::io(log.format().id, error))
    }

    /// Returns the byte ranges of the file that were not read, or `None` if the format always needs
    /// the whole file.
    fn unread(&self) -> Option<&Unread> {
        None
    }

    /// Returns the byte ranges of the file that must be fetched before the selected records can be
    /// read.
    ///
    /// The list is empty if the records can be read now. `None` means that the whole file is
    /// needed. After fetching the ranges, the caller opens the log again and repeats the call,
    /// because the fetched bytes can refer to more ranges.
    fn needed(&self, _: &Select) -> Option<Vec<Range<u64>>> {
        None
    }

    /// Returns the structures of the file around an offset, which is on the scale of the byte ranges
    /// in diagnostics. The default implementation finds no structures.
    fn structure_at(&self, around: Around) -> Structure {
        Structure::find(self.as_log().info().size, around, Vec::new(), std::iter::empty(), |_, _| {})
    }
    /// Writes a copy of the log in which `edit` changes values in place. All bytes that are not
    /// changed stay the same, except where a block of the log is compressed again.
    ///
    /// # Errors
    /// Returns an error if writing fails, or if the format does not support this.
    fn rewrite(&self, _edit: &mut Edit<'_>, _out: &mut dyn Write) -> Result<()> {
        let format = self.as_log().format();
        let why = format!("values of {} logs cannot be changed in place", format.name);
        Err(Error::new(format.id, ErrorKind::Unsupported, None, why))
    }
}
