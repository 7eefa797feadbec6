//! NPZ: a ZIP archive, stored, with an array of `numpy` for each field.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::{CloudPoint, FIELDS};

/// 1980-01-01, the first day of ZIP: the same cloud gives the same bytes.
const DATE: u16 = 1 << 5 | 1;

pub(super) fn write(points: impl Iterator<Item = CloudPoint>, out: &mut impl Write) -> io::Result<()> {
    let points: Vec<_> = points.map(|point| point.bytes()).collect();
    let mut archive = Archive { out, at: 0, directory: Vec::new(), entries: 0 };
    let mut from = 0;
    for (name, ty) in FIELDS {
        let mut array = header(ty.numpy(), points.len());
        for point in &points {
            array.extend_from_slice(&point[from..from + ty.size()]);
        }
        archive.add(&format!("{name}.npy"), &array)?;
        from += ty.size();
    }
    archive.finish()
}

/// What stands before the values of an array, version 1.0.
fn header(ty: &str, len: usize) -> Vec<u8> {
    let mut text = format!("{{'descr': '{ty}', 'fortran_order': False, 'shape': ({len},), }}");
    // Values begin at a multiple of 64; a line ends the text.
    let padding = (64 - (10 + text.len() + 1) % 64) % 64;
    let _ = writeln!(text, "{:padding$}", "");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(text.len()).unwrap_or_default().to_le_bytes());
    bytes.extend(text.bytes());
    bytes
}

struct Archive<'a, W: Write> {
    out: &'a mut W,
    at: u32,
    directory: Vec<u8>,
    entries: u16,
}

impl<W: Write> Archive<'_, W> {
    fn add(&mut self, name: &str, data: &[u8]) -> io::Result<()> {
        let too_large = || io::Error::new(io::ErrorKind::InvalidInput, "a cloud too large for NPZ");
        let len = u32::try_from(data.len()).map_err(|_| too_large())?;
        // Version 2.0, no flags, stored; then time and date, the sum, both sizes, and the lengths of the name and of
        // extras. Both headers have this part.
        let mut common = Vec::new();
        for half in [20, 0, 0, 0, DATE] {
            common.extend(half.to_le_bytes());
        }
        for word in [crc32fast::hash(data), len, len] {
            common.extend(word.to_le_bytes());
        }
        common.extend(u16::try_from(name.len()).unwrap_or_default().to_le_bytes());
        common.extend([0; 2]);
        let at = self.at;
        self.write(&[b"PK\x03\x04", &common, name.as_bytes(), data])?;
        self.directory.extend_from_slice(b"PK\x01\x02\x14\x00");
        self.directory.extend_from_slice(&common);
        // No comment, first disk, no attributes; then where the entry is.
        self.directory.extend_from_slice(&[0; 10]);
        self.directory.extend_from_slice(&at.to_le_bytes());
        self.directory.extend_from_slice(name.as_bytes());
        self.entries += 1;
        Ok(())
    }

    fn write(&mut self, pieces: &[&[u8]]) -> io::Result<()> {
        for piece in pieces {
            self.out.write_all(piece)?;
            let end = u32::try_from(piece.len()).ok().and_then(|len| self.at.checked_add(len));
            self.at =
                end.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a cloud too large for NPZ"))?;
        }
        Ok(())
    }

    fn finish(mut self) -> io::Result<()> {
        let (at, directory) = (self.at, std::mem::take(&mut self.directory));
        let size = u32::try_from(directory.len()).unwrap_or(u32::MAX);
        let entries = self.entries.to_le_bytes();
        let places = [size.to_le_bytes(), at.to_le_bytes()].concat();
        self.write(&[&directory, b"PK\x05\x06\0\0\0\0", &entries, &entries, &places, &[0; 2]])
    }
}
