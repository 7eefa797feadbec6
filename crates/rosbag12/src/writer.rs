//! Writes V1.2 bags with the layout of the original recorder. Header fields are sorted by name, the
//! bag header is padded to 4096 bytes, a definition precedes the first message of each topic, and
//! the index is at the end.

use std::collections::{BTreeMap, HashMap};
use std::io::{Seek, SeekFrom, Write};

use rovelog_core::internal::output::FailFast;
use rovelog_core::internal::text::escape_bytes;
use rovelog_core::internal::wire::{U32Le, U64Le};
use zerocopy::IntoBytes;

use crate::error::BagError;
use crate::message::Publisher;
use crate::tables::ConnectionName;
use crate::wire::{Data, Definition, Header, Index, IndexEntry, VERSION_LINE, bag_header_record};

/// Maximum size in bytes of a header field. librosbag refuses bags in which a field has more than a
/// million bytes.
const MAX_FIELD: usize = 999_000;

/// Index of a V1.2 bag that is being written.
#[derive(Debug, Default)]
pub(crate) struct IndexBuilder {
    /// Map from a topic name to the type of its first message and to its index entries.
    topics: BTreeMap<Vec<u8>, (Vec<u8>, Vec<IndexEntry>)>,
}

impl IndexBuilder {
    /// Adds an index entry for the message at offset `at`. The first entry of a topic gets the
    /// offset of the definition record instead of the message.
    pub(crate) fn message(
        &mut self,
        topic: &[u8],
        ty: &[u8],
        stamp: (u32, u32),
        definition_at: u64,
        at: u64,
    ) {
        let entry =
            |pos| IndexEntry { sec: U32Le::new(stamp.0), nsec: U32Le::new(stamp.1), pos: U64Le::new(pos) };
        match self.topics.get_mut(topic) {
            Some((_, entries)) => entries.push(entry(at)),
            None => {
                self.topics.insert(topic.to_vec(), (ty.to_vec(), vec![entry(definition_at)]));
            }
        }
    }

    /// Returns the number of topics in the index.
    pub(crate) fn topics(&self) -> usize {
        self.topics.len()
    }

    /// Writes the index records, and returns their total size in bytes.
    pub(crate) fn write(&self, out: &mut dyn Write) -> Result<u64, BagError> {
        let mut written = 0;
        for (topic, (ty, entries)) in &self.topics {
            let data = entries.as_bytes();
            let lengths = u32::try_from(data.len()).and_then(|len| Ok((u32::try_from(entries.len())?, len)));
            let (count, len) = lengths.map_err(|_| BagError::BadRecord {
                what: format!("the index of {}", String::from_utf8_lossy(topic)),
                why: "the topic has more messages than an index can store",
            })?;
            let (ver, count) = (U32Le::new(0), U32Le::new(count));
            let header = Header::Index(Index { topic, ty: Some(ty), ver: &ver, count: &count });
            let head = header.to_head(len);
            out.write_all(&head)?;
            out.write_all(data)?;
            written += (head.len() + data.len()) as u64;
        }
        Ok(written)
    }
}

/// Id of a connection that was returned by a [`BagWriter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnectionId(usize);

#[derive(Debug)]
struct Open {
    /// Topic, type and md5 sum of the connection.
    key: ConnectionName,
    /// Full text of the definition. `None` after the definition was written.
    definition: Option<Vec<u8>>,
}

/// Writer of a V1.2 bag. The bag is complete only after a call of [`finish`](Self::finish).
#[derive(Debug)]
pub struct BagWriter<W> {
    out: FailFast<W>,
    /// Offset of the next byte, relative to the start of the bag.
    at: u64,
    /// Position in the output at which the bag starts.
    start: u64,
    /// All connections. The index of a connection is its id.
    connections: Vec<Open>,
    /// Map from topic, type and md5 sum to the id of the connection.
    numbers: HashMap<ConnectionName, usize>,
    /// Index of the messages written so far.
    index: IndexBuilder,
}

impl<W: Write + Seek> BagWriter<W> {
    /// Starts a bag at the current position of `out`.
    ///
    /// # Errors
    /// Returns an error if the output returns an error.
    pub fn new(mut out: W) -> Result<Self, BagError> {
        let start = out.stream_position()?;
        let mut writer = Self {
            out: FailFast::new(out),
            at: 0,
            start,
            connections: Vec::new(),
            numbers: HashMap::new(),
            index: IndexBuilder::default(),
        };
        writer.put(VERSION_LINE)?;
        writer.put(&bag_header_record(0))?;
        Ok(writer)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), BagError> {
        self.out.write_all(bytes)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// Adds a connection and returns its id. `definition` is the full text of the message
    /// definition, and `md5` is the md5 sum of the definition. The definition is written before the
    /// first message of the connection.
    ///
    /// # Errors
    /// Returns an error if readers would refuse the bag. This is the case if the topic or the type
    /// is empty, if `md5` is not 32 hexadecimal digits, or if the definition has more than 999 000
    /// bytes.
    pub fn connect(
        &mut self,
        topic: &[u8],
        ty: &[u8],
        md5: &[u8],
        definition: &[u8],
    ) -> Result<ConnectionId, BagError> {
        let refuse = |why| Err(BagError::BadRecord { what: format!("topic {}", escape_bytes(topic)), why });
        if topic.is_empty() || ty.is_empty() || topic.len().max(ty.len()) > MAX_FIELD {
            return refuse("the names of topic and type must have 1 to 999000 bytes");
        }
        if md5.len() != 32 || !md5.iter().all(u8::is_ascii_hexdigit) {
            return refuse("an md5 sum must have 32 hexadecimal digits");
        }
        if definition.len() > MAX_FIELD {
            return refuse("a definition can have at most 999000 bytes");
        }
        let key = ConnectionName::new(topic, ty, md5);
        if let Some(number) = self.numbers.get(&key) {
            return Ok(ConnectionId(*number));
        }
        let number = self.connections.len();
        self.numbers.insert(key.clone(), number);
        self.connections.push(Open { key, definition: Some(definition.to_vec()) });
        Ok(ConnectionId(number))
    }

    /// Writes a message that was received at `sec` seconds and `nsec` nanoseconds. `publisher` is
    /// set only for messages of latching publishers.
    ///
    /// # Errors
    /// Returns an error if the output returns an error, if `nsec` is a second or more, or if
    /// `publisher` has only one of its fields.
    #[expect(clippy::missing_panics_doc, reason = "connections come from `connect`")]
    pub fn message(
        &mut self,
        connection: ConnectionId,
        sec: u32,
        nsec: u32,
        publisher: Option<&Publisher>,
        payload: &[u8],
    ) -> Result<(), BagError> {
        let Open { key, definition } = self.connections.get_mut(connection.0).expect("made by this writer");
        let ConnectionName { topic, ty, md5 } = &*key;
        let refuse =
            |why| Err(BagError::BadRecord { what: format!("a message of {}", escape_bytes(topic)), why });
        if nsec >= 1_000_000_000 {
            return refuse("the nanoseconds of a time must be less than a second");
        }
        let Ok(len) = u32::try_from(payload.len()) else { return refuse("a message can have at most 4 GiB") };
        let (latching, callerid) = match publisher {
            None => (None, None),
            Some(Publisher { latching: true, callerid: Some(name) }) if name.len() <= MAX_FIELD => {
                (Some(&b"1"[..]), Some(name.as_bytes()))
            }
            Some(Publisher { latching: true, callerid: Some(_) }) => {
                return refuse("the name of a publisher can have at most 999000 bytes");
            }
            Some(_) => return refuse("latching and callerid must be set together"),
        };
        let definition_at = self.at;
        let define = definition
            .take()
            .map(|def| Header::Definition(Definition { topic, md5, ty, def: &def }).to_head(0));
        let define = define.unwrap_or_default();
        self.index.message(topic, ty, (sec, nsec), definition_at, definition_at + define.len() as u64);
        let (sec, nsec) = (&U32Le::new(sec), &U32Le::new(nsec));
        let head = Header::Data(Data { topic, md5, ty, sec, nsec, latching, callerid }).to_head(len);
        self.put(&define)?;
        self.put(&head)?;
        self.put(payload)
    }

    /// Writes the index and returns the output.
    ///
    /// # Errors
    /// Returns an error if the output returns an error.
    pub fn finish(mut self) -> Result<W, BagError> {
        self.index.write(&mut self.out)?;
        self.out.seek(SeekFrom::Start(self.start + VERSION_LINE.len() as u64))?;
        self.out.write_all(&bag_header_record(self.at))?;
        self.out.seek(SeekFrom::End(0))?;
        self.out.flush()?;
        Ok(self.out.into_inner()?)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn input_that_readers_would_refuse_is_rejected() {
        let mut bag = BagWriter::new(Cursor::new(Vec::new())).unwrap();
        assert!(bag.connect(b"", b"a/B", &[b'0'; 32], b"").is_err());
        assert!(bag.connect(b"/t", b"a/B", b"*", b"").is_err());
        assert!(bag.connect(b"/t", b"a/B", &[b'0'; 32], &vec![b' '; 1_000_000]).is_err());
        let topic = bag.connect(b"/t", b"a/B", &[b'0'; 32], b"").unwrap();
        assert!(bag.message(topic, 0, 1_000_000_000, None, b"").is_err());
        let half = Publisher { latching: true, callerid: None };
        assert!(bag.message(topic, 0, 0, Some(&half), b"").is_err());
        assert!(bag.finish().is_ok());
    }
}
