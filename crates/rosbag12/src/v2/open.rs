//! A bag of V2.0 is opened: by all that is in it, or by its index alone where that agrees with
//! itself.

use std::ops::Range;

use rovelog_core::scan::{Scan as _, Window};
use rovelog_core::{Bytes, Diagnostics, Rule, ranges, text};

use super::buffer::Ending;
use super::inner::Hints;
use super::pass::Loader;
use super::probe::{Probe, probe};
use super::scan::{Extent, Length, Step, TopScan};
use super::state::{Chunk, Declaration, Header as BagHeader, IndexRange, Info, State};
use super::unpack::{Cap, Compression};
use super::wire::{ChunkInfo, ConnectionCount, Header, IndexEntry, VER};
use crate::diagnostics as rules;
use crate::index::Index;
use crate::options::BagOptions;
use crate::scan::Scanner;
use crate::sections::{self, Section};
use crate::tables::usize_of;
use crate::wire::list_len;

/// What encrypts nothing.
const NO_ENCRYPTOR: &[u8] = b"rosbag/NoEncryptor";

impl Scanner {
    /// Reads all of the bag into this scanner, which has just started: its lost bytes, and what must be
    /// known before to read it again where messages come before the records that say what they are.
    pub(crate) fn read_all(
        &mut self,
        bytes: &Bytes,
        index: &mut Index,
        options: &BagOptions,
        late: &[Declaration],
    ) -> Vec<Declaration> {
        let cap = Cap::of(&options.read.limits);
        let mut lost: Vec<(u64, u64, &'static Rule)> = Vec::new();
        let mut lines: Vec<Range<u64>> = Vec::new();
        self.v2 = Some(Box::new(State::default()));
        self.chunked_mut().begin_section();
        let window = Window::whole(bytes);
        let mut scan = TopScan::new(self.line.len, cap);
        loop {
            // The window is the whole file, so there is never more to ask for.
            match scan.step(window).expect("the window reaches the end of the file") {
                Step::Line { at, end } => {
                    self.take_line(at, end);
                    lines.push(at..end);
                }
                Step::Record { at, end } => self.take_record(window, at, end),
                Step::Chunk(extent) => {
                    self.take_chunk(window, extent);
                }
                Step::Lost { at, end, rule } => {
                    lost.push((at, end, rule));
                }
                Step::End => break,
            }
        }
        let (zeros, lost): (Vec<_>, Vec<_>) = lost.into_iter().partition(|(at, end, rule)| {
            *rule == &rules::LOST
                && is_zeros(&bytes[usize_of(*at)..usize_of(*end)])
                && self.is_before_index(*at, *end)
        });
        let lost = ranges::joined(self.read_chunks(bytes, cap, late, lost));
        let mut skipped: Vec<_> = lost.into_iter().map(|range| (range, true)).collect();
        skipped.extend(lines.into_iter().map(|range| (range, false)));
        for (at, end, _) in zeros {
            self.note_zeros(at, end);
            skipped.push((at..end, false));
        }
        skipped.sort_by_key(|(range, _)| range.start);
        for (range, is_lost) in skipped {
            if is_lost { index.lose(range) } else { index.skip(range) }
        }
        self.settle_chunks(bytes.len() as u64);
        let state = self.chunked();
        let later = |(section, id): &(u32, u32)| {
            let origin = &state.origins[*state.declared.get(&(*section, *id))? as usize];
            Some((*section, *id, (*origin.topic).into(), origin.data.clone()))
        };
        state.early.iter().filter_map(later).collect()
    }

    /// A version line; behind the first one another bag starts.
    pub(super) fn take_line(&mut self, at: u64, end: u64) {
        if at == 0 {
            return;
        }
        self.sections.push(Section::new(at, end));
        self.diagnostics.push(&rules::APPENDED_SECTION, at..end, || {
            format!("another bag starts at byte {at}: it is read with its own connections")
        });
        self.chunked_mut().begin_section();
    }

    /// Returns whether a range ends where the bag header says that the index starts, and the index
    /// names no chunk that is not there (K26). It is known once the whole file was scanned.
    pub(super) fn is_before_index(&self, at: u64, end: u64) -> bool {
        let Some(number) = self.sections.iter().rposition(|section| section.offset <= at) else {
            return false;
        };
        let (section, state) = (&self.sections[number], self.chunked());
        let of_section = |of: u32| of as usize == number;
        let chunks = state.chunks.iter().filter(|chunk| of_section(chunk.section)).count();
        let infos = state.infos.iter().filter(|info| of_section(info.section)).count();
        section.first_index_at == Some(end)
            && section.index_pos.and_then(|pos| pos.checked_add(section.offset)) == Some(end)
            && chunks > 0
            && chunks == infos
    }

    pub(super) fn note_zeros(&mut self, at: u64, end: u64) {
        self.diagnostics.push(&rules::ZEROS_BEFORE_INDEX, at..end, || {
            format!("{} in front of the index", text::count(end - at, "zero byte"))
        });
    }

    pub(super) fn lose_record(&mut self, at: u64, end: u64, rule: &'static Rule) {
        let encrypted =
            self.chunked().header.as_ref().and_then(|header| header.encryption.as_ref()).is_some();
        let rule = if encrypted && rule == &rules::LOST { &rules::ENCRYPTED } else { rule };
        self.diagnostics.push(rule, at..end, || {
            let bytes = text::count(end - at, "byte");
            if rule == &rules::CUT {
                format!(
                    "a record that starts at byte {at} passes the end of the file, which has {bytes} of it"
                )
            } else if rule == &rules::ENCRYPTED {
                format!("{bytes} of encrypted connection records")
            } else if rule == &rules::TOO_MANY_SECTIONS {
                sections::beyond_limit(at)
            } else {
                format!("{bytes} in which no record can be recognised")
            }
        });
    }

    /// Starts a chunk.
    pub(super) fn take_chunk(&mut self, window: Window<'_>, extent: Extent) {
        self.note_old_index(extent.at);
        if let (false, Ok(Probe::Good(found))) = (extent.headless, probe(window, extent.at)) {
            self.note_head(extent.at..found.data_at, found.repeated, found.meant);
        }
        self.begin_chunk(extent);
    }

    /// A chunk behind records of the index: those are of a bag that was appended to.
    fn note_old_index(&mut self, at: u64) {
        let section = self.sections.last_mut().expect("there is always a section");
        if let Some(old) = section.first_index_at.take() {
            section.unusable = true;
            self.diagnostics.push(&rules::OLD_INDEX, old..at, || {
                format!("an index is at byte {old}, in front of the chunk at byte {at}")
            });
        }
    }

    /// Takes a record that is no chunk.
    pub(super) fn take_record(&mut self, window: Window<'_>, at: u64, end: u64) {
        let Ok(Probe::Good(found)) = probe(window, at) else { return };
        let data = window.slice(found.data_at, end).ok().flatten().unwrap_or_default();
        let op = found.header.op();
        self.ops[usize::from(op)] += 1;
        self.note_head(at..found.data_at, found.repeated, found.meant);
        let section = self.sections.last_mut().expect("there is always a section");
        let state = self.v2.as_deref_mut().expect("a bag of V2.0");
        match found.header {
            Header::BagHeader(header) => {
                if at != section.first_record {
                    self.diagnostics.push(&rules::BAG_HEADER_LATE, at..end, || {
                        format!("the bag header is not the first record, at byte {}", section.first_record)
                    });
                }
                section.index_pos = Some(header.index_pos.get());
                section.bag_header_at = Some((at, found.data_at));
                let words =
                    |bytes: Option<&[u8]>| rovelog_core::text::escape_bytes(bytes.unwrap_or_default());
                let encryption = header.encryptor.filter(|name| !name.is_empty() && *name != NO_ENCRYPTOR);
                state.header = Some(BagHeader {
                    conn_count: header.conn_count.get(),
                    chunk_count: header.chunk_count.get(),
                    encryption: encryption.map(|name| (words(Some(name)), words(header.gpg_user))),
                });
            }
            Header::IndexData(record) => {
                let entries = list_len::<IndexEntry>(record.count.get());
                if u64::from(found.data_len) != entries || record.ver.get() != VER {
                    self.diagnostics.push(&rules::INDEX_LENGTH, at..end, || {
                        let (count, stored) = (record.count.get(), found.data_len);
                        format!("version {}, {count} entries in {stored} bytes", record.ver.get())
                    });
                }
                let of_section = state.chunks.last_mut().filter(|chunk| chunk.section == state.section);
                if let Some(chunk) = of_section {
                    let (conn, data_at) = (record.conn.get(), found.data_at);
                    chunk.index.push(IndexRange { conn, data_at, end });
                    if !state.is_by_index {
                        let tally = chunk.named.entry(conn).or_default();
                        for entry in IndexEntry::all_of(data) {
                            let (sec, nsec) = (entry.time.sec.get(), entry.time.nsec.get());
                            tally.add(sec, nsec, entry.offset.get().into());
                        }
                    }
                }
            }
            Header::ChunkInfo(info) => {
                section.first_index_at.get_or_insert(at);
                let info = info_of(state.section, &info, data);
                state.infos_at.insert((info.section, info.chunk_pos), state.infos.len());
                state.infos.push(info);
            }
            Header::Connection(record) => {
                section.first_index_at.get_or_insert(at);
                let conn = record.conn.get();
                state.indexed.insert((state.section, conn));
                let head = window.slice(at, found.data_at).ok().flatten().unwrap_or_default();
                if let Some(origin) = self.origin_of_record(head, (conn, record.topic, data), at) {
                    let state = self.chunked_mut();
                    let ids = &mut state.ids[state.section as usize];
                    if ids.get(conn).is_none() {
                        ids.set(conn, origin);
                    }
                }
            }
            Header::Message(_) | Header::Chunk(_) | Header::Unknown(_) => {
                state.others.push(at..end);
                self.diagnostics.push(&rules::UNKNOWN_OP, at..end, || format!("a record of op {op}"));
            }
        }
    }

    /// Reads all chunks that were found. `between` are the lost bytes outside of them; gives all
    /// lost bytes, ascending.
    fn read_chunks(
        &mut self,
        bytes: &Bytes,
        cap: Cap,
        late: &[Declaration],
        between: Vec<(u64, u64, &'static Rule)>,
    ) -> Vec<Range<u64>> {
        let mut lost = Vec::new();
        let mut between = between.into_iter().peekable();
        let encrypted = self.chunked().header.as_ref().is_some_and(|header| header.encryption.is_some());
        let state = self.chunked_mut();
        let mut chunks = std::mem::take(&mut state.chunks);
        if encrypted {
            for chunk in &mut chunks {
                chunk.ending = Ending::Encrypted;
            }
        }
        let mut loader = Loader::new(bytes.clone(), &chunks, (0..chunks.len()).collect(), cap);
        state.chunks = chunks;
        for (section, id, topic, data) in late {
            self.chunked_mut().section = *section;
            if let Some(origin) = self.origin(*id, topic, data, 0)
                && self.chunked().ids[*section as usize].get(*id).is_none()
            {
                self.chunked_mut().ids[*section as usize].set(*id, origin);
            }
        }
        let mut template = None;
        self.chunked_mut().section = 0;
        while let Some(loaded) = loader.load(&self.chunked().chunks) {
            let number = loaded.number;
            let at = self.chunked().chunks[number].extent.at;
            // What was noticed is told in the order of the file.
            while let Some((at, end, rule)) = between.next_if(|(loss, ..)| *loss < at) {
                self.lose_record(at, end, rule);
                lost.push(at..end);
            }
            let state = self.chunked_mut();
            let section = state.chunks[number].section;
            if section != state.section {
                (state.section, state.now) = (section, super::state::Ids::default());
            }
            let chunk = &mut state.chunks[number];
            chunk.ending = loaded.ending;
            let extent = chunk.extent;
            let index = std::mem::take(&mut chunk.index);
            let file = &bytes[usize_of(extent.data_at)..usize_of(extent.end)];
            let data = loaded.data_of(file);
            let hints = Hints::new(&index, bytes, extent.claimed());
            let inner = chunk.inner(data, loaded.ending, hints, template);
            let is_plain = extent.compression == Some(Compression::None);
            let place = move |at: usize| extent.data_at + if is_plain { at as u64 } else { 0 };
            let len = data.len();
            self.chunked_mut().at_hand = number;
            template = self.learn_chunk(inner, data, place);
            self.chunked_mut().chunks[number].index = index;
            self.end_chunk(number, len);
            self.note_chunk(number, loaded.used, bytes.len() as u64, &mut lost);
            loader.give_back(loaded);
        }
        for (at, end, rule) in between {
            self.lose_record(at, end, rule);
            lost.push(at..end);
        }
        lost
    }

    /// Everything that can be said when all chunks were read.
    pub(super) fn settle_chunks(&mut self, end: u64) {
        let state = self.chunked();
        let (chunks, records) = (state.chunks.iter(), state.records.all());
        let closed = chunks.clone().filter(|chunk| !chunk.extent.headless).count();
        self.ops[usize::from(super::wire::Message::OP)] = chunks.map(|chunk| chunk.messages).sum();
        self.ops[usize::from(super::wire::Chunk::OP)] = closed as u64;
        for (all, inside) in self.ops.iter_mut().zip(records) {
            *all += inside;
        }
        self.settle_index(end);
        self.settle_origins();
        self.settle_tables();
    }

    /// What is remarkable about a chunk, and its bytes that are lost.
    pub(super) fn note_chunk(&mut self, number: usize, used: usize, size: u64, lost: &mut Vec<Range<u64>>) {
        let chunk = &self.v2.as_deref().expect("a bag of V2.0").chunks[number];
        let extent = chunk.extent;
        let (at, end) = (extent.at, extent.end);
        let diagnostics = &mut self.diagnostics;
        note_length(chunk, diagnostics);
        let behind = (extent.data_at + used as u64).min(end);
        let from = extent.kept_to(chunk.ending, used, chunk.messages);
        let is_plain = extent.compression == Some(Compression::None);
        match chunk.ending {
            Ending::Whole => {
                if u64::from(extent.size) != chunk.unpacked && extent.length == Length::Stored {
                    diagnostics.push(&rules::CHUNK_SIZE, head_of(&extent), || {
                        format!(
                            "the header says {} bytes unpacked where there are {}",
                            extent.size, chunk.unpacked
                        )
                    });
                }
            }
            Ending::Checksum => {
                diagnostics.push(&rules::CHUNK_CHECKSUM, end..end, || {
                    format!("the chunk at byte {at} fails its checksum: its messages may be wrong")
                });
                if behind < end {
                    diagnostics.push(&rules::CHUNK_DAMAGED, behind..end, || {
                        let bytes = text::count(end - behind, "byte");
                        format!("the chunk at byte {at} has {bytes} behind its compressed data")
                    });
                    lost.push(behind..end);
                }
            }
            Ending::Cut if is_plain => {
                if chunk.lost.is_empty() {
                    diagnostics.push(&rules::CUT, end..end, || {
                        format!("the file ends inside the chunk at byte {at}, between two records")
                    });
                    lost.push(end..end);
                }
            }
            ending => {
                let rule = match ending {
                    Ending::Cut if end == size => &rules::CUT,
                    Ending::Limit => &rules::CHUNK_TOO_LARGE,
                    Ending::Unknown | Ending::NotPacked => &rules::CHUNK_UNREADABLE,
                    Ending::Encrypted => &rules::ENCRYPTED,
                    _ => &rules::CHUNK_DAMAGED,
                };
                diagnostics.push(rule, from..end, || {
                    format!(
                        "the chunk at byte {at} {} {}: {} kept",
                        if ending == Ending::Unknown { "has an" } else { "is" },
                        ending.name(),
                        text::count(chunk.messages, "message")
                    )
                });
                lost.push(from..end);
            }
        }
        if is_plain {
            let place = |at: u64| extent.data_at + at;
            lost.extend(chunk.lost.iter().map(|(from, to)| place(*from)..place(*to)));
        } else if !chunk.lost.is_empty() {
            lost.push(end..end);
        }
    }
}

/// Returns whether all bytes are zero.
pub(super) fn is_zeros(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// Returns where the header of a chunk is; never empty.
fn head_of(extent: &Extent) -> Range<u64> {
    extent.at..extent.data_at.max(extent.at + 1)
}

/// What is remarkable about how the length of a chunk was found.
fn note_length(chunk: &Chunk, diagnostics: &mut Diagnostics) {
    let (extent, head) = (chunk.extent, head_of(&chunk.extent));
    let len = extent.end - extent.data_at;
    if extent.headless {
        diagnostics.push(&rules::CHUNK_HEADLESS, extent.at..extent.at + 1, || {
            format!("{} in no chunk: its header is lost", text::count(chunk.messages, "message"))
        });
    }
    match extent.length {
        Length::Unterminated => diagnostics.push(&rules::CHUNK_OPEN, head, || {
            format!("a chunk that was never closed: {} up to its end", text::count(len, "byte"))
        }),
        Length::Found if !extent.headless => diagnostics.push(&rules::CHUNK_LENGTH, head, || {
            format!("the header says {} bytes where {} follow", extent.data_len, len)
        }),
        _ => {}
    }
}

fn info_of(section: u32, info: &ChunkInfo<'_>, data: &[u8]) -> Info {
    let entries = ConnectionCount::all_of(data).iter();
    let mut counts: Vec<_> = entries.map(|entry| (entry.conn.get(), entry.count.get().into())).collect();
    counts.sort_unstable();
    let (chunk_pos, start, end) = (info.chunk_pos.get(), *info.start_time, *info.end_time);
    Info { section, chunk_pos, start, end, counts }
}
