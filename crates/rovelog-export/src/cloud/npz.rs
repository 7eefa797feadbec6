//! Writes point clouds as NPZ, an uncompressed ZIP archive with a `numpy` array for each field of a
//! point.

use std::fmt::Write as _;
use std::io::{self, Cursor, Write};

use rovelog::vel_format::velodyne::Point;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::point::{FIELDS, bytes};

/// Writes the archive. All members have the date 1980-01-01, the earliest date that ZIP supports,
/// so that the output does not depend on the current date.
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

/// Size in bytes from which an array needs a ZIP entry with 64-bit sizes (ZIP64). This leaves 1024
/// bytes below the limit of 32-bit sizes for the header of the array.
const LARGE: u64 = u32::MAX as u64 - 1024;

/// Returns the header of an array in version 1.0 of the NPY format. `ty` is the `numpy` type of the
/// elements.
fn header(ty: &str, len: usize) -> Vec<u8> {
    let mut text = format!("{{'descr': '{ty}', 'fortran_order': False, 'shape': ({len},), }}");
    // The NPY format requires that the values start at a multiple of 64 bytes, and that the text
    // before them ends with a line feed. The 10 bytes before the text contain the magic number, the
    // version and the length of the text.
    let padding = (64 - (10 + text.len() + 1) % 64) % 64;
    let _ = writeln!(text, "{:padding$}", "");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(text.len()).unwrap_or_default().to_le_bytes());
    bytes.extend(text.bytes());
    bytes
}
