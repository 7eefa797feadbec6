//! Opens a V2.0 bag by scanning all of its records.

use std::ops::Range;

use rovelog_core::internal::index::Span;
use rovelog_core::internal::scan::{Scan as _, Window};
use rovelog_core::internal::{memory, ranges, text};
use rovelog_core::{Bytes, Diagnostics};

use super::buffer::DataStatus;
use super::compression::DecompressionLimit;
use super::content::{
    Chunk, ConnectionKey, ConnectionRecord, Content, Header as BagHeader, IndexRange, Info, OriginIds,
    ScopedConn,
};
use super::loader::{Loader, buffer_bytes};
use super::probe::{Probe, ProbedRecord, probe};
use super::records::Hints;
use super::scan::{ChunkExtent, LengthSource, Loss, Step, TopScan};
use super::wire::{self, ConnectionCount, Header, IndexEntry, VER};
use crate::diagnostics as rules;
use crate::error::BagError;
use crate::index::Index;
use crate::message::usize_of;
use crate::options::BagOptions;
use crate::scan::Scanner;
use crate::sections::Section;
use crate::wire::list_len;

/// Name of the encryption plugin that does not encrypt anything.
const NO_ENCRYPTOR: &[u8] = b"rosbag/NoEncryptor";

impl Scanner {
    /// Scans the whole bag. The scanner must be new.
    ///
    /// Returns the connection records that came after the first message with their connection id.
    /// If this list is not empty, the caller scans the bag again and passes the list as `late`, so
    /// that the earlier messages get their topic too.
    pub(crate) fn read_all(
        &mut self,
        bytes: &Bytes,
        index: &mut Index,
        options: &BagOptions,
        late: &[ConnectionKey],
    ) -> Result<Vec<ConnectionKey>, BagError> {
        let cap = DecompressionLimit::of(&options.read.limits);
        // The index section is needed before the chunks are read, because it declares connections
        // for messages that come before their own connection record.
        let lost = self.read_top_records(Window::whole(bytes), cap);
        // `rosbag reindex` leaves zero bytes before the index. These bytes are not a loss if they
        // end where the index starts. The start of the index is known only now that the whole file
        // was scanned.
        let (zeros, lost): (Vec<_>, Vec<_>) = lost.into_iter().partition(|loss| {
            loss.is_zeros(&bytes[usize_of(loss.at)..usize_of(loss.end)]) && self.is_before_index(*loss)
        });
        memory::check(buffer_bytes(&self.content.chunks))?;
        let lost = ranges::joined(self.read_chunks(bytes, cap, late, lost));
        let mut skipped: Vec<_> = lost.into_iter().map(|range| (range, true)).collect();
        let lines = self.sections.iter().map(|section| section.offset..section.first_record);
        skipped.extend(lines.filter(|line| !line.is_empty()).map(|line| (line, false)));
        for zeros in zeros {
            self.report_zeros(zeros);
            skipped.push((zeros.at..zeros.end, false));
        }
        // `Index` expects ranges in file order.
        skipped.sort_by_key(|(range, _)| range.start);
        for (range, is_lost) in skipped {
            if is_lost { index.add_lost(range) } else { index.add_skipped(range) }
        }
        self.finish_chunks(bytes.len() as u64);
        Ok(self.content.late_connections().collect())
    }

    /// Finds all chunks and reads the records between them. Returns the lost bytes between chunks.
    fn read_top_records(&mut self, window: Window<'_>, cap: DecompressionLimit) -> Vec<Loss> {
        let mut losses = Vec::new();
        self.content.begin_section();
        let mut scan = TopScan::new(self.line.len, cap);
        loop {
            // The window is the whole file, so a scan step never needs more bytes.
            match scan.step(window).expect("the window reaches the end of the file") {
                Step::Line { at, end } => self.start_section(at, end),
                Step::Record { at, end } => self.add_top_record(window, at, end),
                Step::Chunk(extent) => self.add_chunk(window, extent),
                Step::Lost(loss) => losses.push(loss),
                Step::End => return losses,
            }
        }
    }

    /// Starts a section, that is, another bag in the same file. The version line at offset 0 starts
    /// no new section, because the first section exists already.
    pub(super) fn start_section(&mut self, at: u64, end: u64) {
        if at == 0 {
            return;
        }
        self.sections.push(Section::new(at, end));
        self.diagnostics.push(&rules::APPENDED_SECTION, at..end, || {
            format!("another bag starts at byte {at}; its messages are read with its own connections")
        });
        self.content.begin_section();
    }

    /// Returns whether a range of lost bytes ends at the index position that the bag header states,
    /// and all chunks listed in the index were found. By rule K26 in docs/formats/rosbag.md, zero
    /// bytes in such a range are not a loss. This function must be called after the whole file was
    /// scanned.
    pub(super) fn is_before_index(&self, Loss { at, end, .. }: Loss) -> bool {
        // The section that contains the range is the last section that starts at or before the
        // range.
        let Some(number) = self.sections.iter().rposition(|section| section.offset <= at) else {
            return false;
        };
        let (section, content) = (&self.sections[number], &self.content);
        let of_section = |of: u32| of as usize == number;
        let chunks = content.chunks.iter().filter(|chunk| of_section(chunk.section)).count();
        let infos = content.infos.iter().filter(|info| of_section(info.section)).count();
        section.records.first_at == Some(end)
            && section.index_pos.and_then(|pos| pos.checked_add(section.offset)) == Some(end)
            && chunks > 0
            && chunks == infos
    }

    pub(super) fn report_zeros(&mut self, Loss { at, end, .. }: Loss) {
        self.diagnostics.push(&rules::ZEROS_BEFORE_INDEX, at..end, || {
            let zeros = text::count(end - at, "zero byte");
            format!("the bag has {zeros} between the chunks and the index; no chunk is missing")
        });
    }

    pub(super) fn report_lost_record(&mut self, Loss { at, end, rule }: Loss) {
        // The connection records of an encrypted bag look like random bytes.
        let section = self.sections.iter().rposition(|section| section.offset <= at);
        let section = section.and_then(|number| u32::try_from(number).ok()).unwrap_or(0);
        if rule != &rules::LOST || !self.content.is_encrypted(section) {
            return self.report_lost_bytes(at..end, rule);
        }
        self.diagnostics.push(&rules::ENCRYPTED, at..end, || {
            let bytes = text::count(end - at, "byte");
            format!("the bag has {bytes} of encrypted connection records, so its messages cannot be read")
        });
    }

    /// Adds a chunk and reports problems of the chunk header.
    pub(super) fn add_chunk(&mut self, window: Window<'_>, extent: ChunkExtent) {
        self.report_old_index(extent.at);
        if let (false, Ok(Probe::Good(found))) = (extent.headless, probe(window, extent.at)) {
            self.report_head(extent.at..found.data_at, found.duplicates, found.corrected_op);
        }
        self.begin_chunk(extent);
    }

    /// Reports an index before a chunk as outdated. Such an index remains from a bag to which
    /// messages were appended.
    fn report_old_index(&mut self, at: u64) {
        let section = self.sections.last_mut().expect("there is always a section");
        if let Some(old) = section.records.first_at.take() {
            section.records.is_unusable = true;
            self.diagnostics.push(&rules::OLD_INDEX, old..at, || {
                format!(
                    "the index at byte {old} is ignored, because it is outdated: the chunk at byte {at} \
                     follows it"
                )
            });
        }
    }

    /// Processes a record between chunks that is not a chunk record.
    pub(super) fn add_top_record(&mut self, window: Window<'_>, at: u64, end: u64) {
        let Ok(Probe::Good(found)) = probe(window, at) else { return };
        // `end` may differ from the length that the record states, so the data are taken up to
        // `end`.
        let data = window.slice(found.data_at, end).ok().flatten().unwrap_or_default();
        let op = found.header.op();
        self.ops[usize::from(op)] += 1;
        self.report_head(at..found.data_at, found.duplicates, found.corrected_op);
        match found.header {
            Header::BagHeader(header) => self.add_bag_header(&header, at..end, found.data_at),
            Header::IndexData(record) => self.add_index_data(&record, &found, data, at..end),
            Header::ChunkInfo(info) => self.add_chunk_info(&info, data, at),
            Header::Connection(record) => {
                let head = window.slice(at, found.data_at).ok().flatten().unwrap_or_default();
                let record = ConnectionRecord { conn: record.conn.get(), topic: record.topic, data, head };
                self.add_connection(&record, at);
            }
            Header::Message(_) | Header::Chunk(_) | Header::Unknown(_) => {
                self.content.unknown_records.push(at..end);
                self.report_unknown_op(at..end, op);
            }
        }
    }

    fn add_bag_header(&mut self, header: &wire::BagHeader<'_>, record: Range<u64>, data_at: u64) {
        let section = self.sections.last_mut().expect("there is always a section");
        section.set_bag_header(record, data_at, header.index_pos.get(), &mut self.diagnostics);
        let words = |bytes: Option<&[u8]>| text::escape_bytes(bytes.unwrap_or_default());
        let encryption = header.encryptor.filter(|name| !name.is_empty() && *name != NO_ENCRYPTOR);
        let encryption = encryption.map(|name| (words(Some(name)), words(header.gpg_user)));
        let content = &mut self.content;
        content.encryption.extend(encryption.map(|names| (content.position.section, names)));
        content.header =
            Some(BagHeader { conn_count: header.conn_count.get(), chunk_count: header.chunk_count.get() });
    }

    fn add_index_data(
        &mut self,
        record: &wire::IndexData<'_>,
        found: &ProbedRecord<'_>,
        data: &[u8],
        range: Range<u64>,
    ) {
        let entries = list_len::<IndexEntry>(record.count.get());
        let is_odd = u64::from(found.data_len) != entries || record.ver.get() != VER;
        if is_odd {
            self.diagnostics.push(&rules::INDEX_LENGTH, range.clone(), || {
                let (count, stored) = (record.count.get(), found.data_len);
                format!(
                    "the index data has version {} and {count} entries in {stored} bytes, which do not match; \
                     no message is lost",
                    record.ver.get()
                )
            });
        }
        // Index data describes the chunk before it. If no chunk follows the last version line, the
        // index data describes no chunk and is ignored.
        let content = &mut self.content;
        let section = content.position.section;
        if let Some(chunk) = content.chunks.last_mut().filter(|chunk| chunk.section == section) {
            let (conn, data_at) = (record.conn.get(), found.data_at);
            chunk.index.is_odd |= is_odd;
            chunk.index.ranges.push(IndexRange { conn, data_at, end: range.end });
            if !content.is_by_index {
                let tally = chunk.index.tallies.entry(conn).or_default();
                for entry in IndexEntry::all_of(data) {
                    let (sec, nsec) = (entry.time.sec.get(), entry.time.nsec.get());
                    tally.add(sec, nsec, entry.offset.get().into());
                }
            }
        }
    }

    fn add_chunk_info(&mut self, info: &wire::ChunkInfo<'_>, data: &[u8], at: u64) {
        self.add_index_record(at);
        let content = &mut self.content;
        let key = (content.position.section, info.chunk_pos.get());
        content.info_at_offset.insert(key, content.infos.len());
        let entries = ConnectionCount::all_of(data).iter();
        let mut counts: Vec<_> = entries.map(|entry| (entry.conn.get(), entry.count.get().into())).collect();
        counts.sort_unstable();
        let span = Span { first: info.start_time.nanos(), last: info.end_time.nanos() };
        content.infos.push(Info { section: content.position.section, span, counts });
    }

    fn add_connection(&mut self, record: &ConnectionRecord<'_>, at: u64) {
        self.add_index_record(at);
        let section = self.content.position.section;
        self.content.ids.indexed.insert(ScopedConn { section, conn: record.conn });
        self.declare_for_section(record, at);
    }

    /// Stores `at` as the offset of the first index record of the current section, unless an
    /// earlier offset is stored.
    fn add_index_record(&mut self, at: u64) {
        let section = self.sections.last_mut().expect("there is always a section");
        section.records.first_at.get_or_insert(at);
    }

    /// Declares the connection id of a connection record for the whole section, unless an earlier
    /// record declared the same id.
    fn declare_for_section(&mut self, record: &ConnectionRecord<'_>, at: u64) {
        let Some(origin) = self.origin(record, at) else { return };
        let ids = &mut self.content.ids.first[self.content.position.section as usize];
        if ids.get(record.conn).is_none() {
            ids.set(record.conn, origin);
        }
    }

    /// Decompresses all chunks and counts their messages. `between` are the lost bytes between
    /// chunks. Returns all lost bytes of the file in ascending order.
    fn read_chunks(
        &mut self,
        bytes: &Bytes,
        cap: DecompressionLimit,
        late: &[ConnectionKey],
        between: Vec<Loss>,
    ) -> Vec<Range<u64>> {
        let mut lost = Vec::new();
        let mut between = between.into_iter().peekable();
        let Content { encryption, chunks, .. } = &mut self.content;
        // The loader does not decompress encrypted chunks, so their status must be set before the
        // loader is created.
        for chunk in chunks.iter_mut().filter(|chunk| encryption.contains_key(&chunk.section)) {
            chunk.status = DataStatus::Encrypted;
        }
        let mut loader = Loader::new(bytes.clone(), chunks, (0..chunks.len()).collect(), cap);
        for key in late {
            self.content.position.section = key.section;
            self.declare_for_section(&key.record(), 0);
        }
        let mut template = None;
        self.content.position.section = 0;
        while let Some(loaded) = loader.load() {
            let content = &mut self.content;
            content.position.chunk = loaded.number;
            let chunk = &mut content.chunks[loaded.number];
            if chunk.section != content.position.section {
                // A new section starts here, and connection ids are only valid within their
                // section.
                (content.position.section, content.ids.current) = (chunk.section, OriginIds::default());
            }
            chunk.status = loaded.result.status;
            let extent = chunk.extent;
            // Move the index data out of the chunk, because `self` is borrowed mutably while the
            // messages of the chunk are counted.
            let ranges = std::mem::take(&mut chunk.index.ranges);
            let data = loaded.data_in(chunk.data(bytes));
            let hints = Hints::new(&ranges, bytes, extent.declared_len());
            let records = chunk.records(data, loaded.result.status, hints, template);
            // Report the losses before this chunk first, so that diagnostics are in file order.
            while let Some(loss) = between.next_if(|loss| loss.at < extent.at) {
                self.report_lost_record(loss);
                lost.push(loss.at..loss.end);
            }
            template = self.count_chunk_records(&extent, records, data);
            self.content.chunks[loaded.number].index.ranges = ranges;
            self.end_chunk(data.len());
            lost.extend(self.report_chunk(loaded.number, loaded.result.used, bytes.len() as u64));
            loader.recycle(loaded);
        }
        for loss in between {
            self.report_lost_record(loss);
            lost.push(loss.at..loss.end);
        }
        lost
    }

    /// Completes counts and reports problems after all chunks have been scanned.
    pub(super) fn finish_chunks(&mut self, end: u64) {
        for chunk in &self.content.chunks {
            self.ops[usize::from(wire::Message::OP)] += chunk.messages.count;
            // A chunk whose header is lost is not counted as a chunk record.
            self.ops[usize::from(wire::Chunk::OP)] += u64::from(!chunk.extent.headless);
        }
        self.check_index(end);
        self.report_connections();
        self.finish_topics();
    }

    /// Reports problems of a chunk, and returns the unreadable ranges of the file. `used` is the
    /// number of stored bytes that decompression consumed, and `size` is the size of the file.
    pub(super) fn report_chunk(&mut self, number: usize, used: usize, size: u64) -> Vec<Range<u64>> {
        let chunk = &self.content.chunks[number];
        let ChunkExtent { data_at, end, .. } = chunk.extent;
        report_length(chunk, &mut self.diagnostics);
        let mut lost = Vec::from_iter(report_status(chunk, used, size, &mut self.diagnostics));
        if chunk.extent.is_plain() {
            lost.extend(chunk.lost_ranges.iter().map(|lost| data_at + lost.start..data_at + lost.end));
        } else if !chunk.lost_ranges.is_empty() {
            lost.push(end..end);
        }
        lost
    }
}

/// Reports problems of the chunk data, and returns the range of the stored data that cannot be
/// decompressed.
fn report_status(chunk: &Chunk, used: usize, size: u64, diagnostics: &mut Diagnostics) -> Option<Range<u64>> {
    let extent = chunk.extent;
    let ChunkExtent { at, end, .. } = extent;
    match chunk.status {
        DataStatus::Intact => {
            if u64::from(extent.size) != chunk.decompressed_len && extent.length == LengthSource::Header {
                diagnostics.push(&rules::CHUNK_SIZE, head_of(&extent), || {
                    format!(
                        "the chunk header states {} decompressed bytes, but the chunk has {}, which are all \
                         read",
                        extent.size, chunk.decompressed_len
                    )
                });
            }
            None
        }
        DataStatus::Checksum => {
            diagnostics.push(&rules::CHUNK_CHECKSUM, end..end, || {
                format!(
                    "the chunk at byte {at} does not match its checksum; its messages are read, but may be \
                     wrong"
                )
            });
            let unused = extent.data_at + used as u64..end;
            if unused.is_empty() {
                return None;
            }
            diagnostics.push(&rules::CHUNK_DAMAGED, unused.clone(), || {
                let bytes = text::count(unused.end - unused.start, "byte");
                format!("the chunk at byte {at} has {bytes} after its compressed data, which are not read")
            });
            Some(unused)
        }
        DataStatus::Cut if extent.is_plain() => {
            if !chunk.lost_ranges.is_empty() {
                return None;
            }
            diagnostics.push(&rules::CUT, end..end, || {
                format!("the file ends inside the chunk at byte {at}, after a complete record")
            });
            Some(end..end)
        }
        status => {
            let rule = match status {
                DataStatus::Cut if end == size => &rules::CUT,
                DataStatus::Limit => &rules::CHUNK_TOO_LARGE,
                DataStatus::Unknown | DataStatus::NotPacked => &rules::CHUNK_UNREADABLE,
                DataStatus::Encrypted => &rules::ENCRYPTED,
                _ => &rules::CHUNK_DAMAGED,
            };
            let unread = extent.kept_to(status, used, chunk.messages.count)..end;
            diagnostics.push(rule, unread.clone(), || {
                format!(
                    "the chunk at byte {at} cannot be read completely ({}), but {} in it could be read",
                    status.name(),
                    text::count(chunk.messages.count, "message")
                )
            });
            Some(unread)
        }
    }
}

impl Loss {
    /// Returns whether the lost `bytes` are all zero. Losses with a more specific rule, such as a
    /// truncated record, do not count as zero bytes.
    pub(super) fn is_zeros(&self, bytes: &[u8]) -> bool {
        self.rule == &rules::LOST && bytes.iter().all(|byte| *byte == 0)
    }
}

/// Returns the range of the chunk header. The range has at least one byte, so that a diagnostic can
/// refer to it.
fn head_of(extent: &ChunkExtent) -> Range<u64> {
    extent.at..extent.data_at.max(extent.at + 1)
}

/// Reports a chunk whose header is lost, or whose header states a wrong length.
fn report_length(chunk: &Chunk, diagnostics: &mut Diagnostics) {
    let (extent, head) = (chunk.extent, head_of(&chunk.extent));
    let len = extent.end - extent.data_at;
    if extent.headless {
        diagnostics.push(&rules::CHUNK_HEADLESS, extent.at..extent.at + 1, || {
            let messages = text::count(chunk.messages.count, "message");
            format!("the header of a chunk is lost, but {messages} in it could be read")
        });
    }
    match extent.length {
        LengthSource::Unclosed => diagnostics.push(&rules::CHUNK_OPEN, head, || {
            format!(
                "the chunk was never closed, because the recorder was killed; its {} of records are read",
                text::count(len, "byte")
            )
        }),
        LengthSource::Data if !extent.headless => diagnostics.push(&rules::CHUNK_LENGTH, head, || {
            let stated = extent.data_len;
            format!("the chunk header states {stated} bytes, but the chunk has {len}; its records are read")
        }),
        _ => {}
    }
}
