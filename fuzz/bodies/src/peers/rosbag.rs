//! Compares our reader of V2.0 bags with the crate `rosbag`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{Seek, Write};

use rosbag::record_types::Connection;
use rosbag::{ChunkRecord, IndexRecord, MessageRecord, RosBag};
use rovelog::rosbag12::{BagOptions, BagReader, Rosbag, Version};
use rovelog::{Align, Bytes, Format, LogReader, ReadOptions};
use tempfile::NamedTempFile;

use super::{call_peer, check_rewritten};

/// Maximum size in bytes of the data in a chunk. The peer allocates the size that a chunk states,
/// and decompressing larger chunks would make the fuzzer slow.
const MAX_CHUNK_BYTES: u32 = 1 << 18;

/// Time in nanoseconds and payload of a message.
type Message = (u64, Vec<u8>);

/// Number of equal messages, by their topic and content. Each message also counts without its topic.
type Counts<'a> = BTreeMap<(Option<&'a [u8]>, Message), u64>;

fn open(data: &[u8]) -> Option<BagReader> {
    let mut options = BagOptions::from(&ReadOptions::default());
    options.read.limits.unpacked = u64::from(MAX_CHUNK_BYTES);
    let bag = BagReader::new(Bytes::copy_from_slice(data), &options).ok();
    bag.filter(|bag| bag.version() == Version::V2_0)
}

/// Checks that our reader returns all messages that the crate `rosbag` returns from undamaged parts
/// of chunks.
pub fn rosbag_peers(data: &[u8]) {
    let Some(bag) = open(data) else { return };
    compare(&bag, data);
}

/// Slices, merges and recovers a bag. Checks that the peer reads the same messages from the
/// resulting bags as our reader.
pub fn rosbag_peers_rewrite(data: &[u8]) {
    let Some(bag) = open(data) else { return };
    let check = |written: &[u8]| {
        // An intact bag is not changed, whether the peer reads it or not.
        if written == data {
            return;
        }
        let again = open(written).expect("a written bag opens");
        let peer = compare(&again, written);
        if let Some(peer) = peer.filter(|_| is_accepted(&again, written)) {
            assert!(peer.complete, "the peer refuses a bag that was written");
            assert_eq!(peer.count(), again.info().records, "the peer returns fewer messages");
        }
    };
    check_rewritten(&bag, check);
    let mut out = Vec::new();
    if Rosbag::merge(&[&bag, &bag], Align::AsIs, &mut out).is_ok() {
        check(&out);
    }
}

/// Messages that the peer returned.
#[derive(Default)]
struct Returned {
    /// Messages of each connection, by the number of the connection.
    messages: BTreeMap<u32, Vec<Message>>,
    /// Topics of each connection. A damaged bag may contain several for one connection.
    topics: BTreeMap<u32, Vec<Vec<u8>>>,
    /// True if the peer read everything without an error.
    complete: bool,
}

impl Returned {
    fn count(&self) -> u64 {
        self.messages.values().map(|messages| messages.len() as u64).sum()
    }

    fn add_connection(&mut self, connection: &Connection<'_>) {
        let topics = self.topics.entry(connection.id).or_default();
        let topic = connection.storage_topic.as_bytes();
        if !topics.iter().any(|known| known == topic) {
            topics.push(topic.to_vec());
        }
    }

    /// Reads a bag until the peer returns an error.
    fn read(&mut self, bag: &RosBag) -> Option<()> {
        let mut chunk = ChunkMessages::default();
        for record in bag.chunk_records() {
            // Index data follows its chunk.
            match record.ok() {
                Some(ChunkRecord::IndexData(index)) => {
                    *chunk.indexed.entry(index.conn_id).or_default() += index.entries().count();
                }
                Some(ChunkRecord::Chunk(next)) => {
                    self.add_chunk(std::mem::take(&mut chunk));
                    for message in next.messages() {
                        match message {
                            Ok(MessageRecord::MessageData(message)) => {
                                chunk.messages.push((message.conn_id, (message.time, message.data.to_vec())));
                            }
                            Ok(MessageRecord::Connection(connection)) => self.add_connection(&connection),
                            Err(_) => {
                                // The damage may have replaced the end of the last message.
                                chunk.messages.pop();
                                self.add_chunk(chunk);
                                return None;
                            }
                        }
                    }
                }
                None => {
                    self.add_chunk(chunk);
                    return None;
                }
            }
        }
        self.add_chunk(chunk);
        for record in bag.index_records() {
            if let IndexRecord::Connection(connection) = record.ok()? {
                self.add_connection(&connection);
            }
        }
        self.complete = true;
        Some(())
    }

    /// Adds the messages of a chunk. If the index lists more messages than the peer returned, a damaged
    /// length has merged messages, and the chunk is not compared.
    fn add_chunk(&mut self, chunk: ChunkMessages) {
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        for (connection, _) in &chunk.messages {
            *counts.entry(*connection).or_default() += 1;
        }
        let is_damaged = |(connection, count): (&u32, &usize)| counts.get(connection).unwrap_or(&0) < count;
        if chunk.indexed.iter().any(is_damaged) {
            return;
        }
        for (connection, message) in chunk.messages {
            self.messages.entry(connection).or_default().push(message);
        }
    }
}

/// Messages that the peer returned from a chunk.
#[derive(Default)]
struct ChunkMessages {
    /// Each message with the number of its connection.
    messages: Vec<(u32, Message)>,
    /// Number of messages of each connection in the index of the chunk.
    indexed: BTreeMap<u32, usize>,
}

/// Compares our messages with those of the peer. Returns what the peer returned, or `None` if the
/// peer is not called.
fn compare(bag: &BagReader, data: &[u8]) -> Option<Returned> {
    let states_large_size = data.windows(9).any(|bytes| {
        let size = bytes.strip_prefix(b"size=").and_then(|size| size.try_into().ok());
        size.is_some_and(|size| u32::from_le_bytes(size) > MAX_CHUNK_BYTES)
    });
    if states_large_size {
        return None;
    }
    let peer = read_peer(data);
    let mut ours = Counts::new();
    for record in bag.records_in_file_order() {
        let topic = &bag.connections()[record.topic.id.index()].topic[..];
        let time = record.time.and_then(|time| u64::try_from(time.nanos).ok()).expect("a stamp");
        for topic in [Some(topic), None] {
            *ours.entry((topic, (time, record.payload.to_vec()))).or_default() += 1;
        }
    }
    for (connection, messages) in &peer.messages {
        let topics = peer.topics.get(connection).map_or(&[][..], Vec::as_slice);
        // If the records of a connection contradict each other, its topic is not compared.
        let topic = <&[Vec<u8>; 1]>::try_from(topics).ok().map(|[topic]| &topic[..]);
        for (time, payload) in messages {
            let count = ours.get_mut(&(topic, (*time, payload.clone())));
            let left = count.filter(|count| **count > 0);
            let Some(left) = left else {
                panic!(
                    "no message of {} bytes of connection {connection} at {time}, as in rosbag",
                    payload.len()
                );
            };
            *left -= 1;
        }
    }
    Some(peer)
}

/// Reads a bag with the peer, which only reads files.
fn read_peer(data: &[u8]) -> Returned {
    thread_local! {
        static FILE: RefCell<Option<NamedTempFile>> = const { RefCell::new(None) };
    }
    let mut returned = Returned::default();
    FILE.with_borrow_mut(|file| {
        let file = file.get_or_insert_with(|| NamedTempFile::new().expect("a temporary file"));
        file.rewind().and_then(|()| file.write_all(data)).expect("writing to a temporary file succeeds");
        file.as_file().set_len(data.len() as u64).expect("setting the length of a file succeeds");
        call_peer(|| {
            let bag = RosBag::new(file.path()).ok()?;
            returned.read(&bag)
        });
    });
    returned
}

/// Returns true if the peer is expected to read all of a written bag.
fn is_accepted(bag: &BagReader, written: &[u8]) -> bool {
    // The specification says that readers ignore records with an unknown type, and it does not say
    // that a field occurs once. Rewriting keeps such records, and the peer refuses them.
    let has_unusual_records = bag
        .diagnostics()
        .list()
        .iter()
        .any(|found| ["unknown_op", "duplicate_field"].contains(&found.rule.name));
    // The specification does not limit a chunk to one compressed stream, as the peer does.
    let count = |word: &[u8]| written.windows(word.len()).filter(|bytes| *bytes == word).count();
    let streams = count(b"\x04\x22\x4d\x18") + count(b"1AY&SY");
    let compressed = count(b"compression=lz4") + count(b"compression=bz2");
    connections_are_complete(written).is_some() && !has_unusual_records && streams <= compressed
}

/// Checks that all connection records in the index section have the fields that the specification
/// requires, each once, and in the encoding that the peer expects. Recovery keeps other connection
/// records, because their messages can still be read.
fn connections_are_complete(written: &[u8]) -> Option<()> {
    const LINE_LEN: usize = 13;
    let mut rest = &written[LINE_LEN..];
    let header = fields(part(&mut rest)?)?;
    let index_at = u64::from_le_bytes(<[u8; 8]>::try_from(*header.get(&b"index_pos"[..])?).ok()?);
    rest = written.get(usize::try_from(index_at).ok()?..)?;
    while !rest.is_empty() {
        let (header, data) = (fields(part(&mut rest)?)?, part(&mut rest)?);
        if header.get(&b"op"[..])? != b"\x07" {
            continue;
        }
        let data = fields(data)?;
        let text = |name: &[u8]| std::str::from_utf8(data.get(name)?).ok();
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let (_, _, sum) = (text(b"type")?, text(b"message_definition")?, text(b"md5sum")?);
        let latching = data.get(&b"latching"[..]).is_none_or(|value| [&b"0"[..], b"1", b""].contains(value));
        let names = [header.get(&b"topic"[..])?, data.get(&b"topic"[..])?];
        let others = names.into_iter().chain(data.get(&b"callerid"[..]));
        let is_text = others.into_iter().all(|value| std::str::from_utf8(value).is_ok());
        if sum.len() != 32 || !sum.bytes().all(is_hex) || !latching || !is_text {
            return None;
        }
    }
    Some(())
}

/// Removes a length and the bytes of this length from the start. Returns the bytes.
fn part<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (len, rest) = bytes.split_first_chunk()?;
    let (part, rest) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*len)).ok()?)?;
    *bytes = rest;
    Some(part)
}

/// Returns the fields of a header. Returns `None` if a field is damaged or occurs twice.
fn fields(mut header: &[u8]) -> Option<BTreeMap<&[u8], &[u8]>> {
    let mut fields = BTreeMap::new();
    while !header.is_empty() {
        let field = part(&mut header)?;
        let at = field.iter().position(|byte| *byte == b'=')?;
        let is_printable = at > 0 && field[..at].iter().all(|byte| (b' '..=b'~').contains(byte));
        if !is_printable || fields.insert(&field[..at], &field[at + 1..]).is_some() {
            return None;
        }
    }
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::super::corpus;
    use super::*;

    // If the peer stops at once, nothing is compared.
    #[test]
    fn most_messages_of_the_corpus_are_compared() {
        let (mut compared, mut ours) = (0, 0);
        for bytes in corpus("rosbag") {
            let Some(bag) = open(&bytes) else { continue };
            ours += bag.info().records;
            compared += compare(&bag, &bytes).map_or(0, |peer| peer.count());
        }
        assert!(compared * 2 > ours, "{compared} of {ours} messages");
    }
}
