//! The calibration of an HDL-64E. It comes from the status bytes in the log, from the file `db.xml`
//! of the sensor, or from a YAML or JSON file that was made from `db.xml`. See section 7 of
//! docs/formats/vel.md.

use std::collections::BTreeMap;
use std::mem::offset_of;
use std::ops::Range;

use rovelog_core::internal::wire::I16Le;
use zerocopy::{FromBytes as _, IntoBytes as _};

use super::model::Model;
use crate::error::VelError;
use crate::wire::{CalibrationTable, LaserStatus, VelodynePacket};

/// Maximum length of a calibration file in bytes.
const FILE_LIMIT: usize = 1 << 20;

/// Bytes of a laser's constants that the checksum covers. They exclude the number of the laser and
/// the unused bytes.
const SUMMED: Range<usize> = offset_of!(LaserStatus, vertical)..offset_of!(LaserStatus, rest);

/// Maximum distance in meters that the sensor can report: 65535 units of 2 mm.
pub(super) const MAX_DISTANCE: f64 = 131.0;

/// Calibration constants of a laser. Angles are in degrees, and lengths are in meters.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct LaserCalibration {
    /// Number of the laser.
    pub id: u8,
    /// Vertical angle of the laser in degrees.
    pub vertical: f64,
    /// Angle in degrees to subtract from the azimuth.
    pub rotation: f64,
    /// Length in meters to add to distances.
    pub distance: f64,
    /// Length in meters to add to near distances in the sideways direction. 0 if not specified.
    pub distance_x: f64,
    /// Length in meters to add to near distances in the forward direction. 0 if not specified.
    pub distance_y: f64,
    /// Upward offset of the laser in meters.
    pub vertical_offset: f64,
    /// Sideways offset of the laser in meters.
    pub horizontal_offset: f64,
    /// Focal distance of the laser in meters.
    pub focal_distance: f64,
    /// Slope with which the intensity depends on the difference from the focal distance.
    pub focal_slope: f64,
    /// Minimum intensity of the laser.
    pub min_intensity: u8,
    /// Maximum intensity of the laser.
    pub max_intensity: u8,
}

/// Direction in which the vertical offset of an HDL-64E laser is applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OffsetModel {
    /// The vertical offset is perpendicular to the beam of the laser, as in the ROS driver and
    /// `VeloView`.
    #[default]
    Perpendicular,
    /// The vertical offset is along the z axis, as in the manual of the S3 and in velodyne-decoder.
    Plain,
}

impl LaserCalibration {
    /// Returns whether the correction for near distances differs from the correction for far
    /// distances.
    pub(super) fn corrects_near(&self) -> bool {
        let given = self.distance_x != 0.0 && self.distance_y != 0.0;
        #[expect(
            clippy::float_cmp,
            reason = "the same number is stored three times where nothing is corrected"
        )]
        let same = self.distance_x == self.distance && self.distance_y == self.distance;
        given && !same
    }
}

/// The calibration of an HDL-64E sensor.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Calibration {
    /// Constants of the lasers, in the order of the file or the status bytes.
    pub lasers: Vec<LaserCalibration>,
    /// Description of where the calibration comes from.
    pub source: String,
    /// True if the status bytes contain the same calibration twice, or with a matching checksum.
    /// Always true for a calibration file.
    pub verified: bool,
}

impl Calibration {
    /// Parses a calibration file. It is a `db.xml` (feature `calibration`), or a YAML or JSON file
    /// of the ROS driver.
    ///
    /// # Errors
    /// Returns an error if the file is larger than 1 MiB, has an unknown format, or contains no
    /// laser.
    pub fn parse(text: &str) -> Result<Self, VelError> {
        let len = text.len();
        if len > FILE_LIMIT {
            let why = format!("the file has {len} bytes, which is too large for a calibration");
            return Err(bad_calibration(why));
        }
        // Files from Velodyne are XML. Files of the ROS driver are YAML or JSON.
        let start = text.trim_start();
        let (lasers, source) = if start.starts_with('<') {
            (parse_xml(text)?, "db.xml")
        } else {
            (parse_pairs(text)?, "a list of lasers")
        };
        if lasers.is_empty() {
            return Err(bad_calibration("it contains no lasers".to_owned()));
        }
        Ok(Self { lasers, source: source.to_owned(), verified: true })
    }

    /// Collects the calibration from the status bytes of packets, which must be in file order.
    /// Returns `None` if no calibration table is complete.
    pub fn from_status<'a>(packets: impl IntoIterator<Item = &'a VelodynePacket>) -> Option<Self> {
        let mut status = StatusBytes::default();
        for packet in packets {
            if let Some(found) = status.push(packet.return_mode, packet.product) {
                return Some(found);
            }
        }
        status.unverified
    }

    /// Returns the constants of the 64 lasers in the order of their numbers.
    pub(super) fn by_laser(&self) -> Result<[LaserCalibration; 64], VelError> {
        let mut all = [None; 64];
        for laser in &self.lasers {
            if let Some(slot) = all.get_mut(usize::from(laser.id)) {
                *slot = Some(*laser);
            }
        }
        // If the constants of a laser are missing, its points could be wrong by meters.
        let lasers = all.iter().flatten().count();
        if lasers < 64 {
            return Err(VelError::CalibrationSize { lasers });
        }
        Ok(all.map(Option::unwrap_or_default))
    }

    /// Returns whether this calibration can be used for a model.
    pub fn fits(&self, model: Model) -> bool {
        model.is_hdl64() && self.by_laser().is_ok()
    }
}

fn bad_calibration(why: String) -> VelError {
    VelError::BadCalibration { why }
}

/// Creates the constants of a laser. `get` returns the value of a named field. `length` and `angle`
/// are the factors that convert values to meters and degrees.
fn laser(get: impl Fn(&str) -> Option<f64>, length: f64, angle: f64) -> Option<LaserCalibration> {
    let id = get("id")?;
    if !(0.0..128.0).contains(&id) || id.fract() != 0.0 {
        return None;
    }
    let number = |name: &str, scale: f64| get(name).unwrap_or_default() * scale;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let byte = |name: &str, default: f64| get(name).unwrap_or(default).clamp(0.0, 255.0) as u8;
    Some(LaserCalibration {
        id: byte("id", 0.0),
        vertical: number("vert", angle),
        rotation: number("rot", angle),
        distance: number("dist", length),
        distance_x: number("dist_x", length),
        distance_y: number("dist_y", length),
        vertical_offset: number("vert_offset", length),
        horizontal_offset: number("horiz_offset", length),
        focal_distance: number("focal_distance", length),
        focal_slope: number("focal_slope", 1.0),
        min_intensity: byte("min_intensity", 0.0),
        max_intensity: byte("max_intensity", 255.0),
    })
}

/// Parses the value of the field `name` of a calibration file.
fn number(name: &str, text: &str) -> Result<f64, VelError> {
    let text = text.trim();
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| bad_calibration(format!("the value {text:?} of {name} is not a number")))
}

#[cfg(not(feature = "calibration"))]
fn parse_xml(_: &str) -> Result<Vec<LaserCalibration>, VelError> {
    Err(bad_calibration(
        "this build cannot read db.xml, because it lacks the feature `calibration`".to_owned(),
    ))
}

/// Parses a `db.xml` file, in which angles are in degrees and lengths in centimeters. XML entities
/// are not expanded.
#[cfg(feature = "calibration")]
fn parse_xml(text: &str) -> Result<Vec<LaserCalibration>, VelError> {
    const NAMES: &[(&str, &str)] = &[
        ("id", "id_"),
        ("vert", "vertCorrection_"),
        ("rot", "rotCorrection_"),
        ("dist", "distCorrection_"),
        ("dist_x", "distCorrectionX_"),
        ("dist_y", "distCorrectionY_"),
        ("vert_offset", "vertOffsetCorrection_"),
        ("horiz_offset", "horizOffsetCorrection_"),
        ("focal_distance", "focalDistance_"),
        ("focal_slope", "focalSlope_"),
    ];
    // The files are written by the Boost library and have a document type declaration. The XML
    // parser rejects such a declaration, so it is removed.
    let body = match text.split_once("<!DOCTYPE") {
        Some((_, rest)) => rest.split_once('>').map_or("", |(_, body)| body),
        None => text,
    };
    let document = roxmltree::Document::parse(body).map_err(|error| bad_calibration(error.to_string()))?;
    let limits = |name: &str| -> Result<Vec<f64>, VelError> {
        let list = document.descendants().find(|node| node.has_tag_name(name));
        let items =
            list.into_iter().flat_map(|list| list.children().filter(|node| node.has_tag_name("item")));
        items.map(|item| number(name, item.text().unwrap_or_default())).collect()
    };
    let (min, max) = (limits("minIntensity_")?, limits("maxIntensity_")?);
    let mut lasers = Vec::new();
    for px in document.descendants().filter(|node| node.has_tag_name("px")) {
        let mut own = BTreeMap::new();
        for node in px.children() {
            if let Some((name, key)) = NAMES.iter().find(|(_, key)| node.has_tag_name(*key)) {
                own.entry(*name).or_insert(number(key, node.text().unwrap_or_default())?);
            }
        }
        let id = own.get("id").copied();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a wrong index finds nothing"
        )]
        let of = |list: &[f64]| id.and_then(|id| list.get(id as usize).copied());
        let get = |name: &str| match name {
            "min_intensity" => of(&min),
            "max_intensity" => of(&max),
            name => own.get(name).copied(),
        };
        lasers.extend(laser(get, 0.01, 1.0));
    }
    Ok(lasers)
}

/// Parses a YAML or JSON file of the ROS driver, in which angles are in radians and lengths in
/// meters. In both formats, the file is a list of `name: number`. A name that occurs again starts
/// the next laser.
fn parse_pairs(text: &str) -> Result<Vec<LaserCalibration>, VelError> {
    const NAMES: &[(&str, &str)] = &[
        ("laser_id", "id"),
        ("vert_correction", "vert"),
        ("rot_correction", "rot"),
        ("dist_correction", "dist"),
        ("dist_correction_x", "dist_x"),
        ("dist_correction_y", "dist_y"),
        ("vert_offset_correction", "vert_offset"),
        ("horiz_offset_correction", "horiz_offset"),
        ("focal_distance", "focal_distance"),
        ("focal_slope", "focal_slope"),
        ("min_intensity", "min_intensity"),
        ("max_intensity", "max_intensity"),
    ];
    let mut lasers = Vec::new();
    let mut open: BTreeMap<&str, f64> = BTreeMap::new();
    let mut close = |open: &mut BTreeMap<&str, f64>| {
        lasers.extend(laser(|name| open.get(name).copied(), 1.0, 1_f64.to_degrees()));
        open.clear();
    };
    let marks = |c: char| matches!(c, '{' | '}' | '[' | ']' | ',' | '\n');
    for piece in text.split(marks) {
        let Some((key, value)) = piece.split_once(':') else { continue };
        let key = key.trim().trim_start_matches("- ").trim().trim_matches(['"', '\'']);
        let Some((_, name)) = NAMES.iter().find(|known| known.0 == key) else { continue };
        let number = number(key, value)?;
        if open.contains_key(name) {
            close(&mut open);
        }
        open.insert(name, number);
    }
    close(&mut open);
    Ok(lasers)
}

/// Length of the calibration table in bytes.
const TABLE: usize = size_of::<CalibrationTable>();

// Each packet has the type and the value of one status byte. The status bytes of 16 packets form a
// cycle with these types:
//
//     H M S D N Y G T V    hours, minutes, seconds and other state
//     1 2 3 4 5 6 7        the next seven bytes of the calibration table
//
// An S3 can send `W` instead of a digit. The table has 1820 bytes, which take 260 cycles or 4160
// packets. The table is sent repeatedly, so collecting can start in the middle of it.

/// Collects the calibration table from the status bytes of packets.
#[derive(Default)]
struct StatusBytes {
    /// Position of the next packet within a cycle of 16 packets. `None` before the first cycle.
    phase: Option<usize>,
    /// Bytes of the calibration table that were received in the current cycle.
    cycle: Vec<u8>,
    table: Vec<u8>,
    unverified: Option<Calibration>,
}

impl StatusBytes {
    /// Adds a status byte with its type. Returns the calibration when it is complete and verified.
    fn push(&mut self, kind: u8, value: u8) -> Option<Calibration> {
        const STATE: &[u8] = b"HMSDNYGTV";
        let fits = |phase: usize| match STATE.get(phase) {
            Some(want) => kind == *want,
            None => kind == b'W' || usize::from(kind) == usize::from(b'1') + phase - STATE.len(),
        };
        match self.phase {
            Some(phase) if fits(phase) => {
                if phase >= STATE.len() {
                    self.cycle.push(value);
                }
                self.phase = Some((phase + 1) % 16);
            }
            _ => {
                // A packet is missing. The bytes before it and after it do not belong together, so
                // the collection restarts.
                self.table.clear();
                self.cycle.clear();
                self.phase = (kind == STATE[0]).then_some(1);
            }
        }
        if self.cycle.len() < 7 {
            return None;
        }
        self.table.append(&mut self.cycle);
        if self.table.len() == TABLE {
            self.unverified = decode_table(&self.table);
            let checked = self.unverified.as_ref().filter(|found| found.verified);
            return checked.cloned();
        }
        if self.table.len() == 2 * TABLE {
            let (first, second) = self.table.split_at(TABLE);
            if first == second
                && let Some(found) = decode_table(first)
            {
                let source = format!("{}, twice alike", found.source);
                return Some(Calibration { source, verified: true, ..found });
            }
            self.table.drain(..TABLE);
        }
        None
    }
}

/// Decodes a calibration table. The table is sent repeatedly, so `bytes` may start anywhere in it.
fn decode_table(bytes: &[u8]) -> Option<Calibration> {
    let twice = [bytes, bytes].concat();
    let start = twice.windows(5).position(|window| window == b"UNIT#")?;
    let (table, _) = CalibrationTable::ref_from_prefix(&twice[start..]).ok()?;
    let lasers: Vec<_> = table.lasers.iter().map(of_status).collect();
    let ordered = lasers.iter().enumerate().all(|(i, laser)| usize::from(laser.id) == i);
    if !ordered {
        return None;
    }
    let verified = table.sum.get() == crc16(table.lasers.iter().flat_map(|laser| &laser.as_bytes()[SUMMED]));
    let source = if verified { "the status bytes, with their sum" } else { "the status bytes" };
    Some(Calibration { lasers, source: source.to_owned(), verified })
}

fn of_status(laser: &LaserStatus) -> LaserCalibration {
    let scaled = |value: I16Le, scale: f64| f64::from(value.get()) / scale;
    LaserCalibration {
        id: laser.id,
        vertical: scaled(laser.vertical, 100.0),
        rotation: scaled(laser.rotation, 100.0),
        distance: scaled(laser.distance, 1000.0),
        distance_x: scaled(laser.distance_x, 1000.0),
        distance_y: scaled(laser.distance_y, 1000.0),
        vertical_offset: scaled(laser.vertical_offset, 1000.0),
        horizontal_offset: scaled(laser.horizontal_offset, 1000.0),
        focal_distance: scaled(laser.focal_distance, 1000.0),
        focal_slope: scaled(laser.focal_slope, 10.0),
        min_intensity: laser.min_intensity,
        max_intensity: laser.max_intensity,
    }
}

/// Computes the CRC-16 checksum of an S3. Its polynomial is 0x8005, bits are not reflected, and the
/// initial value is 0.
fn crc16<'a>(bytes: impl Iterator<Item = &'a u8>) -> u16 {
    bytes.fold(0, |sum, byte| {
        (0..8).fold(sum ^ (u16::from(*byte) << 8), |sum, _| {
            if sum & 0x8000 != 0 { (sum << 1) ^ 0x8005 } else { sum << 1 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const YAML: &str = "lasers:
- {dist_correction: 1.163, dist_correction_x: 1.16, dist_correction_y: 1.17, focal_distance: 14.7,
  focal_slope: 1.5, horiz_offset_correction: 0.026, laser_id: 0, max_intensity: 235, min_intensity: 30,
  rot_correction: -0.1, vert_correction: -0.05, vert_offset_correction: 0.216}
- dist_correction: 2
  laser_id: 1
num_lasers: 2
";

    #[test]
    fn yaml_and_json_are_lists_of_pairs() {
        let yaml = Calibration::parse(YAML).unwrap();
        assert_eq!(yaml.lasers.len(), 2);
        assert!((yaml.lasers[0].rotation + 0.1_f64.to_degrees()).abs() < 1e-12);
        assert_eq!((yaml.lasers[1].id, yaml.lasers[1].max_intensity), (1, 255));
        let json = r#"{"lasers": [{"laser_id": 0, "vert_correction": -0.05}, {"laser_id": 1}]}"#;
        let of_json = Calibration::parse(json).unwrap().lasers[0].vertical;
        assert!((of_json - yaml.lasers[0].vertical).abs() < 1e-12);
        assert!(matches!(yaml.by_laser(), Err(VelError::CalibrationSize { lasers: 2 })));
    }

    #[test]
    fn files_without_a_calibration_are_refused() {
        let bomb = "<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><x>&b;</x>";
        let comma = "<px><id_>1</id_><rotCorrection_>0,5</rotCorrection_></px>";
        let infinite = "laser_id: 1\nvert_correction: inf";
        let long = "x".repeat(FILE_LIMIT + 1);
        for text in ["", "lasers: []", "<DB/>", "laser_id: x", bomb, comma, infinite, &long] {
            assert!(Calibration::parse(text).is_err(), "{}", &text[..text.len().min(20)]);
        }
    }
}
