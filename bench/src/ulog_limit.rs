//! The fastest possible ULog reader, as a lower limit for the time of all ULog benchmarks. It is a
//! loop that trusts the file. It validates nothing, counts nothing, and keeps nothing that its
//! result does not need.

use std::collections::HashMap;
use std::fs::File;
use std::hint::black_box;

use memmap2::Mmap;

use crate::Outcome;

/// Number of rows that are copied together, so that they stay in the first-level processor cache.
const GROUP: usize = 256;

/// Size in bytes of the file header.
const HEADER_BYTES: usize = 16;

/// Reads the headers of all messages and skips their payloads.
pub(crate) fn hop(log: &str) -> Outcome {
    let map = map(log)?;
    let (mut messages, mut rows) = (0_u64, 0_u64);
    each(&map, |kind, _| {
        messages += 1;
        rows += u64::from(kind == b'D');
    });
    Ok((format!("{rows} rows in {messages} messages"), Box::new(map)))
}

/// Copies the fields of rows to columns in reused buffers. If `one` is given, copies only the topic
/// with this name.
pub(crate) fn gather(log: &str, one: Option<&str>) -> Outcome {
    let map = map(log)?;
    let mut formats: HashMap<&str, &str> = HashMap::new();
    let mut topics: Vec<Option<Topic>> = (0..=usize::from(u16::MAX)).map(|_| None).collect();
    each(&map, |kind, message| match kind {
        b'F' => {
            if let Some((name, fields)) = std::str::from_utf8(message).ok().and_then(|text| text.split_once(':')) {
                formats.insert(name, fields);
            }
        }
        b'A' => {
            let id = usize::from(u16::from_le_bytes([message[1], message[2]]));
            let name = std::str::from_utf8(&message[3..]).unwrap_or_default();
            if one.is_none_or(|one| one == name && message[0] == 0) {
                let mut widths = Vec::new();
                flatten(&formats, name, &mut widths);
                topics[id] = Some(Topic::new(&widths));
            }
        }
        b'D' => {
            let id = usize::from(u16::from_le_bytes([message[0], message[1]]));
            if let Some(topic) = &mut topics[id] {
                topic.rows.push(message[2..].as_ptr());
                if topic.rows.len() == GROUP {
                    topic.copy();
                }
            }
        }
        _ => {}
    });
    let mut rows = 0;
    for topic in topics.iter_mut().flatten() {
        topic.copy();
        rows += topic.count;
    }
    Ok((format!("{rows} rows"), Box::new(map)))
}

fn map(log: &str) -> std::io::Result<Mmap> {
    // SAFETY: The log does not change while the benchmark runs.
    unsafe { Mmap::map(&File::open(log)?) }
}

/// Calls `visit` with the type and the payload of each message.
fn each<'a>(map: &'a [u8], mut visit: impl FnMut(u8, &'a [u8])) {
    let mut at = HEADER_BYTES;
    while at + 3 <= map.len() {
        // SAFETY: The loop condition ensures that the message header is within the file.
        let (size, kind) = unsafe {
            let head = map.as_ptr().add(at);
            (usize::from(head.cast::<u16>().read_unaligned()), *head.add(2))
        };
        let end = at + 3 + size;
        if end > map.len() {
            break;
        }
        // Prefetches the next messages into the processor cache while this message is processed.
        // SAFETY: A prefetch may have any address.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(map.as_ptr().wrapping_add(at + 4096).cast());
        }
        // SAFETY: `end` is the offset of the end of the message, which is within the file.
        visit(kind, unsafe { map.get_unchecked(at + 3..end) });
        at = end;
    }
}

/// Adds the widths of the fields of a type to `widths`. An array counts as one field.
fn flatten(formats: &HashMap<&str, &str>, name: &str, widths: &mut Vec<usize>) {
    for field in formats.get(name).copied().unwrap_or_default().split_terminator(';') {
        let ty = field.split(' ').next().unwrap_or_default();
        let (base, len) = match ty.split_once('[') {
            Some((base, len)) => (base, len.trim_end_matches(']').parse().unwrap_or(1)),
            None => (ty, 1),
        };
        match base {
            "int8_t" | "uint8_t" | "bool" | "char" => widths.push(len),
            "int16_t" | "uint16_t" => widths.push(2 * len),
            "int32_t" | "uint32_t" | "float" => widths.push(4 * len),
            "int64_t" | "uint64_t" | "double" => widths.push(8 * len),
            inner => (0..len).for_each(|_| flatten(formats, inner, widths)),
        }
    }
}

struct Topic {
    rows: Vec<*const u8>,
    /// Offset, width and column of each field.
    fields: Vec<(usize, usize, Vec<u8>)>,
    count: usize,
}

impl Topic {
    fn new(widths: &[usize]) -> Self {
        let mut at = 0;
        let mut field = |width: &usize| {
            at += width;
            (at - width, *width, vec![0; GROUP * width])
        };
        Self { rows: Vec::with_capacity(GROUP), fields: widths.iter().map(&mut field).collect(), count: 0 }
    }

    fn copy(&mut self) {
        for (offset, width, column) in &mut self.fields {
            // SAFETY: Each field is within its row. Rows lack the padding at their end, so the
            // bytes of this padding are read from the next message.
            unsafe {
                match *width {
                    1 => copy_each::<1>(&self.rows, *offset, column),
                    2 => copy_each::<2>(&self.rows, *offset, column),
                    4 => copy_each::<4>(&self.rows, *offset, column),
                    8 => copy_each::<8>(&self.rows, *offset, column),
                    12 => copy_each::<12>(&self.rows, *offset, column),
                    16 => copy_each::<16>(&self.rows, *offset, column),
                    width => {
                        for (row, to) in self.rows.iter().zip(column.chunks_exact_mut(width)) {
                            to.copy_from_slice(std::slice::from_raw_parts(row.add(*offset), width));
                        }
                    }
                }
            }
            black_box(&*column);
        }
        self.count += self.rows.len();
        self.rows.clear();
    }
}

/// Copies a field of `N` bytes from each row to `column`.
unsafe fn copy_each<const N: usize>(rows: &[*const u8], offset: usize, column: &mut [u8]) {
    for (row, to) in rows.iter().zip(column.chunks_exact_mut(N)) {
        let from: [u8; N] = unsafe { row.add(offset).cast::<[u8; N]>().read_unaligned() };
        to.copy_from_slice(&from);
    }
}
