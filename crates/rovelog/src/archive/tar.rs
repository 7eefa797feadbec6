//! Tar archives: POSIX ustar and pax, and the long names of GNU tar. Only files are listed.

use std::ops::Range;

/// Size of a block: headers and the data of files fill whole blocks.
const BLOCK: usize = 512;

/// A file in a tar archive.
pub(crate) struct TarFile {
    pub(super) name: String,
    pub(super) data: Range<usize>,
}

/// Returns whether `head`, the first bytes of a file, is the first header of an archive.
pub(super) fn is_tar(head: &[u8]) -> bool {
    head.get(257..262) == Some(b"ustar") && head.get(..BLOCK).is_some_and(has_sum)
}

/// Returns the files of an archive, up to its end or to the first damaged header.
pub(super) fn files(bytes: &[u8]) -> Vec<TarFile> {
    let (mut files, mut long_name, mut at) = (Vec::new(), None, 0);
    while let Some(header) = bytes.get(at..at + BLOCK).filter(|header| has_sum(header)) {
        let (Some(size), start) = (number(&header[124..136]), at + BLOCK) else { break };
        let Some(end) = start.checked_add(size).filter(|end| *end <= bytes.len()) else { break };
        match header[156] {
            // A name that is longer than the field of the next header.
            b'L' => long_name = Some(text(&bytes[start..end])),
            b'x' => long_name = pax_path(&bytes[start..end]),
            b'0' | 0 | b'7' => {
                let name = long_name.take().unwrap_or_else(|| name_of(header));
                files.push(TarFile { name, data: start..end });
            }
            // Attributes of all files, and entries without data: folders, links, devices.
            _ => long_name = None,
        }
        at = start + size.next_multiple_of(BLOCK);
    }
    files
}

fn name_of(header: &[u8]) -> String {
    let (name, prefix) = (text(&header[..100]), text(&header[345..500]));
    if header[257..263] != *b"ustar\0" || prefix.is_empty() { name } else { format!("{prefix}/{name}") }
}

/// Returns the attribute `path` of a pax header: records `LENGTH KEY=VALUE` that end with a line feed.
fn pax_path(mut records: &[u8]) -> Option<String> {
    loop {
        let digits = records.iter().position(|byte| *byte == b' ')?;
        let len: usize = std::str::from_utf8(&records[..digits]).ok()?.parse().ok()?;
        let record = records.get(digits + 1..len.checked_sub(1)?)?;
        if let Some(path) = record.strip_prefix(b"path=") {
            return Some(text(path));
        }
        records = records.get(len..)?;
    }
}

fn text(bytes: &[u8]) -> String {
    rovelog_core::text::padded(bytes)
}

/// Returns a number: octal digits, or with the first bit set a binary number, as GNU tar writes large
/// sizes.
fn number(field: &[u8]) -> Option<usize> {
    if field[0] & 0x80 != 0 {
        let high = field[1..field.len() - 8].iter().all(|byte| *byte == 0) && field[0] == 0x80;
        let low = u64::from_be_bytes(*field.last_chunk()?);
        return usize::try_from(low).ok().filter(|_| high);
    }
    let digits = text(field);
    usize::from_str_radix(digits.trim_matches([' ', '\0']), 8).ok()
}

/// Returns whether the sum of a header is right: of its bytes, with spaces in the field of the sum.
fn has_sum(header: &[u8]) -> bool {
    let sum = |bytes: &[u8]| bytes.iter().map(|byte| usize::from(*byte)).sum::<usize>();
    number(&header[148..156]) == Some(sum(&header[..148]) + 8 * usize::from(b' ') + sum(&header[156..]))
}
