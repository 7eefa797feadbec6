//! NPZ: an uncompressed ZIP archive with a `numpy` array for each field.

use std::fmt::Write as _;
use std::io::{self, Cursor, Write};

use rovelog::vel_format::velodyne::Point;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::point::{FIELDS, bytes};

/// Writes the archive. All entries are dated 1980-01-01, the earliest date in ZIP, so that the
/// output is reproducible.
pub(super) fn write(points: &[Point], out: &mut impl Write) -> io::Result<()> {
    let points: Vec<_> = points.iter().map(bytes).collect();
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let mut from = 0;
    for (name, ty) in FIELDS {
        let to = from + ty.size();
        let len = (points.len() * ty.size()) as u64;
        archive.start_file(format!("{name}.npy"), stored.large_file(len >= LARGE))?;
        archive.write_all(&header(ty.numpy(), points.len()))?;
        let values: Vec<u8> = points.iter().flat_map(|point| &point[from..to]).copied().collect();
        archive.write_all(&values)?;
        from = to;
    }
    out.write_all(archive.finish()?.get_ref())
}

/// Minimum size in bytes of an array whose entry needs 64-bit sizes (ZIP64), minus room for the
/// array header.
const LARGE: u64 = u32::MAX as u64 - 1024;

/// Returns the NPY header of an array, version 1.0.
fn header(ty: &str, len: usize) -> Vec<u8> {
    let mut text = format!("{{'descr': '{ty}', 'fortran_order': False, 'shape': ({len},), }}");
    // NPY requires that values start at a multiple of 64 and that the header ends with a line feed.
    let padding = (64 - (10 + text.len() + 1) % 64) % 64;
    let _ = writeln!(text, "{:padding$}", "");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(text.len()).unwrap_or_default().to_le_bytes());
    bytes.extend(text.bytes());
    bytes
}
