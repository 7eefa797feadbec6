//! Benchmarks for VEL logs.

use std::fs::{self, File};
use std::path::PathBuf;

use memmap2::Mmap;
use rovelog::vel_format::images::PixelLimits;
use rovelog::vel_format::velodyne::PointOptions;
use rovelog::vel_format::{Kind, Payload, VelReader};
use rovelog::AnyLog;

use crate::{Outcome, Work, info};

pub(crate) const WORKS: &[(&str, Work)] = &[
    ("bare-walk", bare_scan),
    ("rovelog-info", info),
    ("rovelog-points", |log| points(log, PointOptions::default())),
    ("rovelog-points-exact", |log| points(log, PointOptions::default().with_exact_azimuth().with_corrected_intensity())),
    ("rovelog-jpeg-extracted", jpeg_extracted),
    ("rovelog-jpeg-decoded", jpeg_decoded),
];

fn open(log: &str) -> Result<VelReader, Box<dyn std::error::Error>> {
    let AnyLog::Vel(log) = rovelog::open(log)? else { return Err("not a VEL log".into()) };
    Ok(log)
}

/// Reads all message headers from a new memory mapping and validates nothing. No reader can be
/// faster.
fn bare_scan(log: &str) -> Outcome {
    let map = unsafe { Mmap::map(&File::open(log)?)? };
    let entries = u32::from_le_bytes(map[8..12].try_into()?);
    let mut at = 12 + 8 * usize::try_from(entries)?;
    let (mut messages, mut last) = (0_u64, 0.0_f64);
    while let Some(header) = map.get(at..at + 21) {
        let size = u32::from_le_bytes(header[..4].try_into()?);
        last = last.max(f64::from_le_bytes(header[13..21].try_into()?));
        messages += u64::from(header[4] == 0x49);
        at += 4 + usize::try_from(size)?;
    }
    Ok((format!("{messages} messages, the last at {last} ms"), Box::new(map)))
}

fn points(log: &str, options: PointOptions) -> Outcome {
    let log = open(log)?;
    let (mut count, mut turns, mut sum) = (0, 0, 0.0);
    {
        let mut revolutions = log.revolutions(None, None, options, 0)?;
        while let Some(revolution) = revolutions.next() {
            count += revolution.points.len();
            turns += 1;
            sum += f64::from(revolution.points.last().map_or(0.0, |point| point.z));
        }
    }
    Ok((format!("{count} points in {turns} revolutions, {sum:.1}"), Box::new(log)))
}

/// A folder that is removed when this value is dropped, after the measurement.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Writes every image to a separate file in the memory file system `/dev/shm`, if it exists. On
/// ext4, finding a free inode is slow after many files have been deleted, and each run of this
/// benchmark deletes its files.
fn jpeg_extracted(log: &str) -> Outcome {
    let log = open(log)?;
    let memory = PathBuf::from("/dev/shm");
    let parent = if memory.is_dir() { memory } else { std::env::temp_dir() };
    let folder = Folder(parent.join(format!("vel-jpegs-{}", std::process::id())));
    fs::create_dir_all(&folder.0)?;
    let (mut images, mut bytes) = (0, 0);
    for (message, payload) in log.payloads(Kind::Image) {
        if let Payload::Image(image) = payload {
            let name = format!("{}-{}.jpg", image.source.get(), message.nanos);
            fs::write(folder.0.join(name), &*image.data)?;
            images += 1;
            bytes += image.data.len();
        }
    }
    Ok((format!("{images} images, {bytes} bytes"), Box::new((log, folder))))
}

fn jpeg_decoded(log: &str) -> Outcome {
    let log = open(log)?;
    let (mut images, mut pixels) = (0, 0_u64);
    for (message, payload) in log.payloads(Kind::Image) {
        if let Payload::Image(image) = payload {
            let decoded = image.pixels(&message, PixelLimits::default())?;
            pixels += u64::from(decoded.width()) * u64::from(decoded.height());
            images += 1;
        }
    }
    Ok((format!("{images} images, {pixels} pixels"), Box::new(log)))
}
