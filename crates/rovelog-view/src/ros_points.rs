//! Extraction of points from ROS messages that contain laser scans or point clouds.

use rovelog::Value;

/// Returns the number in a field of a message. Returns NaN if there is no such number.
fn number(value: &Value, name: &str) -> f64 {
    value.get(name).and_then(Value::as_f64).unwrap_or(f64::NAN)
}

/// Points, and the factor by which their number was reduced. For example, with a factor of 3, only
/// every third point is included.
pub(crate) type Thinned = (Vec<[f64; 4]>, usize);

/// Returns at most `most` points of a `sensor_msgs/LaserScan`. Each point consists of X, Y and Z in
/// meters, and the intensity.
pub(crate) fn scan(value: &Value, most: usize) -> Thinned {
    let list = |name: &str| match value.get(name) {
        Some(Value::List(list)) => &list[..],
        _ => &[],
    };
    let (first, step) = (number(value, "angle_min"), number(value, "angle_increment"));
    let (near, far) = (number(value, "range_min"), number(value, "range_max"));
    let bright = list("intensities");
    let point = |(i, range): (usize, &Value)| {
        let range = range.as_f64().filter(|range| (near..=far).contains(range))?;
        let angle = first + step * i as f64;
        let intensity = bright.get(i).and_then(Value::as_f64).unwrap_or(0.0);
        Some([range * angle.cos(), range * angle.sin(), 0.0, intensity])
    };
    let ranges = list("ranges");
    // The step must be at least 1, because `step_by(0)` panics.
    let every = ranges.len().div_ceil(most).max(1);
    (ranges.iter().enumerate().step_by(every).filter_map(point).collect(), every)
}

/// Returns at most `most` points of a `sensor_msgs/PointCloud2`. Each point consists of X, Y and Z
/// in meters, and the intensity.
///
/// The limit also protects against hostile messages, which can declare that each byte is a point.
pub(crate) fn cloud(value: &Value, most: usize) -> Thinned {
    let (Some(Value::Bytes(data)), Some(Value::List(fields))) = (value.get("data"), value.get("fields"))
    else {
        return (Vec::new(), 1);
    };
    let big = matches!(value.get("is_bigendian"), Some(Value::Bool(true) | Value::UInt(1.., _)));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates; NaN is 0")]
    let whole = |number: f64| number as usize;
    let field = |name: &str| {
        let found = fields.iter().find(|field| field.get("name").and_then(Value::as_str) == Some(name))?;
        Some((whole(number(found, "offset")), whole(number(found, "datatype"))))
    };
    let (Some(x), Some(y), Some(z)) = (field("x"), field("y"), field("z")) else { return (Vec::new(), 1) };
    let step = whole(number(value, "point_step")).max(1);
    let read = |point: &[u8], (offset, kind): (usize, usize)| {
        point.get(offset..).and_then(|bytes| point_field(bytes, kind, big)).unwrap_or(f64::NAN)
    };
    let bright = field("intensity");
    let point = |point: &[u8]| {
        let intensity = bright.map_or(0.0, |field| read(point, field));
        [read(point, x), read(point, y), read(point, z), intensity]
    };
    let every = (data.len() / step).div_ceil(most).max(1);
    (data.chunks_exact(step).step_by(every).map(point).collect(), every)
}

/// Decodes the number at the start of `bytes`. `kind` is a data type of `sensor_msgs/PointField`.
/// Returns `None` if the type is unknown or `bytes` is too short.
fn point_field(bytes: &[u8], kind: usize, big: bool) -> Option<f64> {
    fn ordered<const N: usize>(bytes: &[u8], big: bool) -> Option<[u8; N]> {
        let mut bytes = *bytes.first_chunk()?;
        if big {
            bytes.reverse();
        }
        Some(bytes)
    }
    Some(match kind {
        1 => i8::from_le_bytes(ordered(bytes, big)?).into(),
        2 => u8::from_le_bytes(ordered(bytes, big)?).into(),
        3 => i16::from_le_bytes(ordered(bytes, big)?).into(),
        4 => u16::from_le_bytes(ordered(bytes, big)?).into(),
        5 => i32::from_le_bytes(ordered(bytes, big)?).into(),
        6 => u32::from_le_bytes(ordered(bytes, big)?).into(),
        7 => f32::from_le_bytes(ordered(bytes, big)?).into(),
        8 => f64::from_le_bytes(ordered(bytes, big)?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a cloud with a single point. All fields of the point have the data type `kind`, and
    /// `bytes` encodes the number 3.
    fn cloud_of(kind: u64, bytes: &[u8], big: bool) -> Value {
        let field = |(at, name): (usize, &str)| {
            Value::record([
                ("name", Value::Text(name.to_owned())),
                ("offset", Value::count((at * bytes.len()) as u64)),
                ("datatype", Value::count(kind)),
            ])
        };
        let fields = ["x", "y", "z", "intensity"].into_iter().enumerate().map(field);
        Value::record([
            ("fields", Value::List(fields.collect())),
            ("is_bigendian", Value::Bool(big)),
            ("point_step", Value::count(4 * bytes.len() as u64)),
            ("data", Value::Bytes(bytes.repeat(4))),
        ])
    }

    #[test]
    fn every_number_of_a_point_cloud_is_read() {
        let numbers: [(u64, &[u8]); 8] = [
            (1, &3_i8.to_le_bytes()),
            (2, &3_u8.to_le_bytes()),
            (3, &3_i16.to_le_bytes()),
            (4, &3_u16.to_le_bytes()),
            (5, &3_i32.to_le_bytes()),
            (6, &3_u32.to_le_bytes()),
            (7, &3_f32.to_le_bytes()),
            (8, &3_f64.to_le_bytes()),
        ];
        for (kind, bytes) in numbers {
            let turned: Vec<u8> = bytes.iter().rev().copied().collect();
            for (bytes, big) in [(bytes, false), (&turned[..], true)] {
                assert_eq!(cloud(&cloud_of(kind, bytes, big), 1), (vec![[3.0; 4]], 1), "{kind} {big}");
            }
        }
        // A field has no number if its type is unknown, or if it extends beyond the end of the
        // point.
        assert!(cloud(&cloud_of(9, &[0; 4], false), 1).0[0].iter().all(|number| number.is_nan()));
        assert_eq!(point_field(&[0; 3], 7, false), None);
    }

    #[test]
    fn the_number_of_points_is_reduced_to_the_limit() {
        let Value::Struct(mut fields) = cloud_of(2, &[3], false) else { panic!("a record") };
        for (name, value) in &mut fields {
            if &**name == "data" {
                *value = Value::Bytes(vec![3; 4 * 1000]);
            }
        }
        let value = Value::Struct(fields);
        for (most, points, every) in [(1000, 1000, 1), (999, 500, 2), (10, 10, 100), (1, 1, 1000)] {
            let (found, of) = cloud(&value, most);
            assert_eq!((found.len(), of), (points, every));
        }
    }
}
