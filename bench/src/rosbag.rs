//! Benchmarks for ROS bags, with Rovelog and with the crate `rosbag`. `rosbag_work.py`,
//! `rosbags_work.py` and `rosbag_view.cpp` contain the same benchmarks for other libraries.

use rovelog::rosbag12::BagReader;
use rovelog::{AnyLog, LogReader, Select};

use crate::{Outcome, Work, info};

pub(crate) const WORKS: &[(&str, Work)] = &[
    ("rovelog-open", info),
    ("rovelog-scan", scan),
    ("rovelog-records", records),
    ("rovelog-values", values),
    ("rovelog-columns", columns),
    ("rovelog-info", info),
    ("rovelog-raw", raw),
    ("crate-rosbag", other),
    ("bare-scan", bare),
    ("bare-unpack", unpacked),
];

fn open(log: &str) -> Result<BagReader, Box<dyn std::error::Error>> {
    let AnyLog::Rosbag(bag) = rovelog::open(log)? else { return Err("not a ROS bag".into()) };
    Ok(bag)
}

/// Adds all bytes of a payload, so that a benchmark reads every byte, as a checksum would.
fn sum(payload: &[u8]) -> u64 {
    let (words, rest) = payload.as_chunks::<8>();
    let words = words.iter().fold(0u64, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)));
    rest.iter().fold(words, |sum, byte| sum.wrapping_add(u64::from(*byte)))
}

fn scan(log: &str) -> Outcome {
    let bag = open(log)?;
    let (mut messages, mut total) = (0u64, 0u64);
    bag.scan(|_, _, _, payload| {
        messages += 1;
        total = total.wrapping_add(sum(payload));
    });
    Ok((format!("{messages} messages {total:x}"), Box::new(bag)))
}

fn records(log: &str) -> Outcome {
    let bag = open(log)?;
    let (mut messages, mut total) = (0u64, 0u64);
    for record in bag.records(&Select::all()) {
        messages += 1;
        total = total.wrapping_add(sum(&record?.payload));
    }
    Ok((format!("{messages} messages {total:x}"), Box::new(bag)))
}

/// Reads the payloads of all records in file order.
fn raw(log: &str) -> Outcome {
    let bag = open(log)?;
    let (mut messages, mut total) = (0u64, 0u64);
    for record in bag.records_in_file_order() {
        messages += 1;
        total = total.wrapping_add(sum(&record.payload));
    }
    Ok((format!("{messages} messages {total:x}"), Box::new(bag)))
}

fn values(log: &str) -> Outcome {
    let bag = open(log)?;
    let mut messages = 0u64;
    for record in bag.records_in_file_order() {
        std::hint::black_box(record.value()?);
        messages += 1;
    }
    Ok((format!("{messages} messages"), Box::new(bag)))
}

fn columns(log: &str) -> Outcome {
    let bag = open(log)?;
    let mut rows = 0;
    for batch in bag.batches(&Select::all()) {
        rows += batch?.1.num_rows();
    }
    Ok((format!("{rows} rows"), Box::new(bag)))
}

/// Reads the payloads of all messages with the crate `rosbag`, in file order and without
/// connections.
fn other(log: &str) -> Outcome {
    use rosbag::{ChunkRecord, MessageRecord, RosBag};
    let bag = RosBag::new(log)?;
    let (mut messages, mut total) = (0u64, 0u64);
    for record in bag.chunk_records() {
        let ChunkRecord::Chunk(chunk) = record? else { continue };
        for message in chunk.messages() {
            if let MessageRecord::MessageData(data) = message? {
                messages += 1;
                total = total.wrapping_add(sum(data.data));
            }
        }
    }
    Ok((format!("{messages} messages {total:x}"), Box::new(())))
}

fn number(bytes: &[u8]) -> Option<usize> {
    Some(u32::from_le_bytes(*bytes.first_chunk()?) as usize)
}

/// Divides `bytes` after the first record. Returns the header and the data of this record, and the
/// remaining bytes.
fn record(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (header, rest) = bytes.get(4..)?.split_at_checked(number(bytes)?)?;
    let (data, rest) = rest.get(4..)?.split_at_checked(number(rest)?)?;
    Some((header, data, rest))
}

/// Returns the value of the header field `name`.
fn field<'a>(mut header: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    while let Some((field, rest)) = header.get(4..).and_then(|rest| rest.split_at_checked(number(header)?)) {
        if let Some(value) = field.strip_prefix(name).and_then(|rest| rest.strip_prefix(b"=")) {
            return Some(value);
        }
        header = rest;
    }
    None
}

/// Reads the connection, time and payload of each message in uncompressed chunks from a new memory
/// mapping. It uses no connections, no index and no time order. No reader can be faster.
fn bare(log: &str) -> Outcome {
    // SAFETY: The log does not change while the benchmark runs.
    let map = unsafe { memmap2::Mmap::map(&std::fs::File::open(log)?)? };
    let (mut messages, mut total) = (0u64, 0u64);
    let mut rest = &map[13..];
    while let Some((header, mut data, next)) = record(rest) {
        if field(header, b"op") == Some(&[5]) {
            while let Some((header, payload, next)) = record(data) {
                if field(header, b"op") == Some(&[2]) {
                    let conn = field(header, b"conn").and_then(number);
                    std::hint::black_box((conn, field(header, b"time")));
                    messages += 1;
                    total = total.wrapping_add(sum(payload));
                }
                data = next;
            }
        }
        rest = next;
    }
    Ok((format!("{messages} messages {total:x}"), Box::new(map)))
}

/// Decompresses every chunk on one thread. No single-threaded reader of a compressed bag can be
/// faster.
fn unpacked(log: &str) -> Outcome {
    use std::io::Read as _;
    // SAFETY: The log does not change while the benchmark runs.
    let map = unsafe { memmap2::Mmap::map(&std::fs::File::open(log)?)? };
    let (mut chunks, mut bytes) = (0u64, 0u64);
    let mut out = Vec::new();
    let mut rest = &map[13..];
    while let Some((header, data, next)) = record(rest) {
        if field(header, b"op") == Some(&[5]) {
            out.clear();
            match field(header, b"compression") {
                Some(b"lz4") => lz4_flex::frame::FrameDecoder::new(data).read_to_end(&mut out)?,
                Some(b"bz2") => bzip2::bufread::BzDecoder::new(data).read_to_end(&mut out)?,
                _ => 0,
            };
            bytes += std::hint::black_box(&out).len() as u64;
            chunks += 1;
        }
        rest = next;
    }
    Ok((format!("{chunks} chunks {bytes} bytes"), Box::new(map)))
}
