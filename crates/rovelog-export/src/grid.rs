//! Reads maps of the ROS type `nav_msgs/OccupancyGrid`, and writes them in the form that the ROS
//! package `map_server` reads: an image (PGM) and a description (YAML).
//!
//! The value of a cell is the probability in percent that it is occupied, or -1 if it is unknown.

use rovelog::Value;

use crate::trajectory::ros::numbers;

/// Type of the ROS messages that contain a map.
const TYPE: &str = "nav_msgs/OccupancyGrid";

/// A map as an image and its description.
#[derive(Clone, Debug, PartialEq)]
pub struct GridMap {
    /// Number of columns.
    pub width: u32,
    /// Number of rows.
    pub height: u32,
    /// The image file (PGM).
    pub image: Vec<u8>,
    /// Mode in which `map_server` reads the image: `trinary` or `raw`.
    pub mode: &'static str,
    /// Length of the side of a cell in meters.
    resolution: f32,
    /// X and Y of the lower left corner in meters, and the yaw angle in radians.
    origin: [f64; 3],
}

/// Returns whether messages of the ROS type `type_name` are maps.
pub fn is_grid(type_name: &str) -> bool {
    type_name == TYPE
}

/// Reads the map of a message.
///
/// The program `map_saver` of the package `map_server` stores only whether a cell is free, occupied
/// or unknown. If all cells have the values 0, 100 or -1, the image is that of `map_saver`.
/// Otherwise, it stores the values themselves (mode `raw`), so that they are exact too.
///
/// # Errors
/// Returns an error if the number of cells contradicts the size of the map, if the map has no cells,
/// or if its position is missing.
pub fn of_message(value: &Value) -> Result<GridMap, String> {
    let info = value.get("info").ok_or("the message has no info")?;
    let side = |name: &str| match info.get(name) {
        Some(Value::UInt(side, _)) => u32::try_from(*side).ok(),
        _ => None,
    };
    let (width, height) = side("width").zip(side("height")).ok_or("the map has no size")?;
    let cell = |cell: &Value| match cell {
        Value::Int(cell, _) => i8::try_from(*cell).ok(),
        _ => None,
    };
    let cells: Option<Vec<i8>> = match value.get("data") {
        Some(Value::List(cells)) => cells.iter().map(cell).collect(),
        _ => None,
    };
    let cells = cells.ok_or("the map has no cells")?;
    if cells.is_empty() || u64::from(width) * u64::from(height) != cells.len() as u64 {
        return Err(format!("the map has {} cells, but a size of {width} x {height}", cells.len()));
    }
    let resolution = match info.get("resolution") {
        Some(Value::F32(resolution)) => *resolution,
        _ => f32::NAN,
    };
    let origin = info.get("origin").and_then(origin).unwrap_or([f64::NAN; 3]);
    if !resolution.is_finite() || origin.iter().any(|part| !part.is_finite()) {
        return Err("the resolution or the origin of the map is not a number".to_owned());
    }
    let is_trinary = cells.iter().all(|cell| matches!(cell, -1 | 0 | 100));
    let (mode, pixel): (_, fn(i8) -> u8) =
        if is_trinary { ("trinary", trinary) } else { ("raw", i8::cast_unsigned) };
    let mut image =
        format!("P5\n# CREATOR: rovelog {resolution} m/pix\n{width} {height}\n255\n").into_bytes();
    // The first row of the image is the last row of the map, because Y points up in the map.
    image.extend(cells.chunks_exact(width as usize).rev().flatten().map(|cell| pixel(*cell)));
    Ok(GridMap { width, height, image, mode, resolution, origin })
}

/// Returns the gray value of a cell in an image of `map_saver`.
fn trinary(cell: i8) -> u8 {
    match cell {
        0 => 254,
        100 => 0,
        _ => 205,
    }
}

/// Returns X, Y and the yaw angle of a pose.
fn origin(pose: &Value) -> Option<[f64; 3]> {
    let [x, y, z, w] = numbers(pose.get("orientation")?, ["x", "y", "z", "w"])?;
    // Messages without an orientation have a quaternion of zeros.
    let length = x * x + y * y + z * z + w * w;
    let scale = if length > 0.0 { 2.0 / length } else { 0.0 };
    let yaw = (scale * (x * y + w * z)).atan2(1.0 - scale * (y * y + z * z));
    let [x, y] = numbers(pose.get("position")?, ["x", "y"])?;
    Some([x, y, yaw])
}

impl GridMap {
    /// Returns the description of the map (YAML). `image` is the path of the image file, relative
    /// to the description.
    pub fn description(&self, image: &str) -> String {
        let [x, y, yaw] = self.origin;
        let Self { resolution, mode, .. } = self;
        format!(
            "image: {image}\nresolution: {resolution}\norigin: [{x:?}, {y:?}, {yaw:?}]\nnegate: 0\n\
             occupied_thresh: 0.65\nfree_thresh: 0.196\nmode: {mode}\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(width: u64, height: u64, cells: &[i64], resolution: f32) -> Value {
        let fields = |fields: &[(&str, f64)]| {
            Value::record(fields.iter().map(|(name, number)| (*name, Value::F64(*number))))
        };
        let half = std::f64::consts::FRAC_1_SQRT_2;
        let pose = Value::record([
            ("position", fields(&[("x", -1.5), ("y", 2.0), ("z", 0.0)])),
            ("orientation", fields(&[("x", 0.0), ("y", 0.0), ("z", half), ("w", half)])),
        ]);
        let info = Value::record([
            ("resolution", Value::F32(resolution)),
            ("width", Value::UInt(width, 32)),
            ("height", Value::UInt(height, 32)),
            ("origin", pose),
        ]);
        let cells = cells.iter().map(|cell| Value::Int(*cell, 8)).collect();
        Value::record([("info", info), ("data", Value::List(cells))])
    }

    #[test]
    fn a_map_is_written_upside_down_as_map_saver_does() {
        let map = of_message(&message(2, 3, &[0, 100, -1, 0, 100, 100], 0.05)).unwrap();
        let head = b"P5\n# CREATOR: rovelog 0.05 m/pix\n2 3\n255\n";
        assert_eq!(map.image, [&head[..], &[0, 0, 205, 254, 254, 0]].concat());
        assert_eq!(
            map.description("a.pgm"),
            "image: a.pgm\nresolution: 0.05\norigin: [-1.5, 2.0, 1.5707963267948966]\nnegate: 0\n\
             occupied_thresh: 0.65\nfree_thresh: 0.196\nmode: trinary\n"
        );
    }

    #[test]
    fn probabilities_are_stored_exactly() {
        let map = of_message(&message(3, 1, &[-1, 37, 100], 0.1)).unwrap();
        assert_eq!((map.mode, &map.image[map.image.len() - 3..]), ("raw", &[255, 37, 100][..]));
    }

    #[test]
    fn contradictory_maps_are_refused() {
        let refused = |width, height, resolution| of_message(&message(width, height, &[0, 0], resolution));
        assert!(refused(1, 1, 0.1).unwrap_err().contains("2 cells, but a size of 1 x 1"));
        assert!(refused(u64::from(u32::MAX), u64::from(u32::MAX), 0.1).is_err());
        assert!(refused(u64::MAX, 2, 0.1).unwrap_err().contains("no size"));
        assert!(refused(2, 1, f32::NAN).unwrap_err().contains("not a number"));
    }
}
