//! Writes point clouds as NPZ, an uncompressed ZIP archive with a `numpy` array for each field of a
//! point. The arrays have the shape of the cloud: points, or rows and columns.

use std::fmt::Write as _;
use std::io::{self, Cursor, Write};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::Cloud;
use super::types::names;

/// Writes the archive. All members have the date 1980-01-01, the earliest date that ZIP supports,
/// so that the output does not depend on the current date.
pub(super) fn write(cloud: &Cloud, out: &mut impl Write) -> io::Result<()> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let mut from = 0;
    for field in &cloud.fields {
        let to = from + field.size();
        let len = (cloud.len() * field.size()) as u64;
        archive.start_file(format!("{}.npy", field.name), stored.large_file(len >= LARGE))?;
        let mut shape = if cloud.height == 1 { vec![cloud.width] } else { vec![cloud.height, cloud.width] };
        if field.count > 1 {
            shape.push(field.count);
        }
        archive.write_all(&header(names(field.ty).numpy, &shape))?;
        let values: Vec<u8> = cloud.points().flat_map(|point| &point[from..to]).copied().collect();
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
fn header(ty: &str, shape: &[usize]) -> Vec<u8> {
    // A comma follows the last length, because Python reads `(5)` as a number and not as a tuple.
    let shape: Vec<_> = shape.iter().map(ToString::to_string).collect();
    let shape = shape.join(",");
    let mut text = format!("{{'descr': '{ty}', 'fortran_order': False, 'shape': ({shape},), }}");
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
