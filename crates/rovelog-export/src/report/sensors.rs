//! Pictures from the sensors of a VEL log: camera images, and laser scans seen from above.

use std::borrow::Cow;
use std::fmt::Write as _;

use base64::Engine as _;
use rovelog::vel_format::images::Encoding;
use rovelog::vel_format::velodyne::PointOptions;
use rovelog::vel_format::{Kind, Payload, VelError, VelReader};

use crate::ExportError;
use crate::page::Page;
use crate::picture::{png, png_of_vel};

/// Maximum number of images in a report.
const IMAGE_COUNT: usize = 6;
/// Maximum size in bytes of an image in a report.
const MAX_IMAGE_BYTES: usize = 250_000;

/// Width and height in pixels of the picture of a laser scan.
const SCAN_PIXELS: u32 = 560;

/// Fraction of the points in a laser scan that may lie outside of its picture.
const MAX_CROPPED: f64 = 0.02;

/// Writes up to [`IMAGE_COUNT`] camera images at equal intervals.
pub(super) fn images(log: &VelReader, zero: i64, page: &mut Page) {
    let total = log.payloads(Kind::Image).count();
    if total == 0 {
        return;
    }
    page.section("images", "Camera", &format!("Camera ({} of {total} images)", total.min(IMAGE_COUNT)));
    page.push_str("<div class=\"strip\">\n");
    let wanted: Vec<usize> =
        (0..IMAGE_COUNT.min(total)).map(|i| i * total / IMAGE_COUNT.min(total)).collect();
    let mut failed = 0;
    for (i, (message, payload)) in log.payloads(Kind::Image).enumerate() {
        let Payload::Image(image) = payload else { continue };
        if !wanted.contains(&i) {
            continue;
        }
        let shown = match image.encoding() {
            // Browsers cannot show all image formats. For example, they cannot show TIFF.
            Encoding::File(format) => {
                format.is_for_browsers().then(|| (Cow::Borrowed(image.data.0), format.name()))
            }
            _ => png_of_vel(&image, &message).ok().map(|png| (Cow::Owned(png), "png")),
        };
        // Images are embedded in the page, so large images are omitted to keep the page small
        // enough for an e-mail.
        let Some((bytes, kind)) = shown.filter(|(bytes, _)| bytes.len() <= MAX_IMAGE_BYTES) else {
            failed += 1;
            continue;
        };
        let seconds = message.nanos.saturating_sub(zero) as f64 / 1e9;
        picture(page, (&bytes, kind), &format!("camera {}, {seconds:.2} s", image.source.get()), 180);
    }
    page.push_str("</div>\n");
    if failed > 0 {
        let _ = writeln!(
            page,
            "<p class=\"note\">{failed} of the images cannot be decoded or are too large for a report; rovelog extract writes them to files.</p>"
        );
    }
}

/// Writes an image into the page as a data URL.
fn picture(page: &mut Page, (bytes, kind): (&[u8], &str), caption: &str, width: u32) {
    let data = base64::engine::general_purpose::STANDARD.encode(bytes);
    let _ = writeln!(
        page,
        "<figure><img class=\"picture\" alt=\"{caption}\" width=\"{width}\" src=\"data:image/{kind};base64,{data}\">\
         <figcaption>{caption}</figcaption></figure>"
    );
}

/// A laser scan that is drawn as a picture.
struct Scan {
    /// For each point, the distance ahead of the sensor and to its left in meters, and the value
    /// that determines the color of the point.
    points: Vec<[f64; 3]>,
    caption: String,
}

/// Writes pictures of a revolution of the Velodyne scanner and of a scan by the other laser
/// scanner, if the log contains such data.
pub(super) fn scans(log: &VelReader, zero: i64, page: &mut Page) -> Result<(), ExportError> {
    let (mut scans, mut failed) = (Vec::new(), Vec::new());
    match revolution(log, zero) {
        Ok(scan) => scans.extend(scan),
        // The log has no Velodyne packets, which is not an error.
        Err(VelError::UnknownModel { packets: 0 }) => {}
        Err(error) => failed.push(error.to_string()),
    }
    match range_scan(log, zero) {
        Ok(scan) => scans.extend(scan),
        Err(why) => failed.push(why),
    }
    if scans.is_empty() && failed.is_empty() {
        return Ok(());
    }
    page.section("scans", "Laser", "Laser scans from above");
    page.push_str("<div class=\"strip\">\n");
    for scan in scans {
        let (bytes, meters) = draw_scan(&scan.points)?;
        let caption = format!("{}; {meters:.0} m across, ahead is up", scan.caption);
        picture(page, (&bytes, "png"), &caption, SCAN_PIXELS);
    }
    page.push_str("</div>\n");
    for why in failed {
        let _ = writeln!(page, "<p class=\"note\">Not drawn: {}.</p>", crate::xml::escape(&why));
    }
    Ok(())
}

/// Returns a revolution of the Velodyne scanner near the start of the log.
fn revolution(log: &VelReader, zero: i64) -> Result<Option<Scan>, VelError> {
    let mut revolutions = log.revolutions(None, None, PointOptions::default(), 0)?;
    let model = revolutions.decoder().model().name();
    // The first revolution is usually incomplete, so the revolution with the most points is used.
    let mut best: Option<Scan> = None;
    for _ in 0..4 {
        let Some(revolution) = revolutions.next() else { break };
        let points: Vec<_> = revolution
            .points
            .iter()
            .map(|point| [f64::from(point.x), f64::from(point.y), f64::from(point.z)])
            .collect();
        let seconds = revolution.nanos.saturating_sub(zero) as f64 / 1e9;
        let caption = format!("{model}, {seconds:.2} s, {} points, brighter is higher", points.len());
        if best.as_ref().is_none_or(|best| points.len() > best.points.len()) {
            best = Some(Scan { points, caption });
        }
    }
    Ok(best)
}

/// Returns the laser scan in the middle of the log.
fn range_scan(log: &VelReader, zero: i64) -> Result<Option<Scan>, String> {
    let total = log.payloads(Kind::Laser).count();
    let Some((message, Payload::Laser(scan))) = log.payloads(Kind::Laser).nth(total / 2) else {
        return Ok(None);
    };
    let seconds = message.nanos.saturating_sub(zero) as f64 / 1e9;
    let points = scan.points().ok_or_else(|| {
        let sensor = scan.sensor_type.text();
        format!("the angles of the scanner {sensor:?} are unknown (scan at {seconds:.2} s)")
    })?;
    let points: Vec<_> = points.filter_map(|point| point.xy()).map(|[x, y]| [x, y, 1.0]).collect();
    let caption = format!("{}, {seconds:.2} s, {} ranges", scan.sensor_type.text(), points.len());
    Ok(Some(Scan { points, caption: crate::xml::escape(&caption).into_owned() }))
}

/// Draws the points of a laser scan as seen from above. Returns the picture as PNG, and its width
/// in meters.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "pixels within the picture")]
fn draw_scan(points: &[[f64; 3]]) -> Result<(Vec<u8>, f64), ExportError> {
    let mut reach: Vec<f64> = points.iter().map(|[x, y, _]| x.abs().max(y.abs())).collect();
    reach.sort_by(f64::total_cmp);
    // A few distant points are cropped. Otherwise, all other points could shrink to a dot.
    let near = (reach.len() as f64 * (1.0 - MAX_CROPPED)) as usize;
    let half = reach.get(near.min(reach.len().saturating_sub(1))).copied().unwrap_or(1.0).max(1.0) * 1.05;
    let mut heights: Vec<f64> = points.iter().map(|point| point[2]).collect();
    heights.sort_by(f64::total_cmp);
    // The color range covers the heights of nearly all points, so that single outliers do not
    // change it.
    let part = |part: f64| heights.get((heights.len() as f64 * part) as usize).copied().unwrap_or(0.0);
    let (low, high) = (part(0.02), part(0.98));
    let side = f64::from(SCAN_PIXELS);
    let mut pixels = [16_u8, 20, 28].repeat((SCAN_PIXELS * SCAN_PIXELS) as usize);
    for [x, y, z] in points {
        // The forward direction of the vehicle points up in the picture.
        let pixel = |meters: f64| ((0.5 - meters / half / 2.0) * side).floor();
        let (column, row) = (pixel(*y), pixel(*x));
        if !(0.0..side).contains(&column) || !(0.0..side).contains(&row) {
            continue;
        }
        let height = if high > low { ((z - low) / (high - low)).clamp(0.0, 1.0) } else { 0.8 };
        let color = [40.0 + 215.0 * height, 110.0 + 130.0 * height, 190.0 - 60.0 * height];
        // A point is drawn as a square of 2 by 2 pixels, because a single pixel is hard to see.
        for (dx, dy) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
            let (column, row) = (column as usize + dx, row as usize + dy);
            if column < SCAN_PIXELS as usize && row < SCAN_PIXELS as usize {
                let at = (row * SCAN_PIXELS as usize + column) * 3;
                pixels[at..at + 3].copy_from_slice(&color.map(|part| part as u8));
            }
        }
    }
    let bytes = png((SCAN_PIXELS, SCAN_PIXELS), png::ColorType::Rgb, png::BitDepth::Eight, &pixels)?;
    Ok((bytes, half * 2.0))
}
