//! Ids of message types. They are computed from the names of the types with the function
//! `simpleHash` in section 4.2 of the VEL specification.

use crate::error::VelError;
use crate::message::Kind;

/// Computes the hash `BaseLib::String::simpleHash` of a name: the sum over `byte[i] * (i + 119)`,
/// wrapping at 32 bits.
///
/// The VEL specification mentions this function, but does not define it. The formula gives all six
/// published ids.
///
/// ```
/// assert_eq!(vel_format::simple_hash("OBDDataM").unwrap(), 0x0001_4043);
/// assert_eq!(vel_format::simple_hash("CompassM").unwrap(), 0x0001_806E);
/// ```
///
/// # Errors
/// Returns an error if the name has characters beyond ASCII, because it is unknown whether the
/// original function treats bytes as signed.
pub fn simple_hash(name: &str) -> Result<u32, VelError> {
    if let Some(at) = name.bytes().position(|byte| !byte.is_ascii()) {
        return Err(VelError::NotAscii { name: name.to_owned(), at });
    }
    let weights = 119_u32..;
    Ok(name
        .bytes()
        .zip(weights)
        .fold(0, |sum, (byte, weight)| sum.wrapping_add(u32::from(byte).wrapping_mul(weight))))
}

/// Type names that recording programs may have used. If an unknown id is the hash of such a name,
/// the name is suggested. It may be wrong, because different names can have the same hash.
const LIKELY: &[&str] = &[
    "CompassM",
    "LaserDataM",
    "SceneGraphM",
    "TrackedPeopleM",
    "FollowingStateM",
    "OdometryM",
    "MapDataM",
    "LogM",
    "ImuDataM",
    "IMUDataM",
    "RobotStateM",
    "VelodyneDataM",
    "PointCloudM",
    "TemperatureDataM",
    "ThermalImageM",
    "SonarDataM",
    "DriveM",
    "MyDataM",
];

/// Suggests a name for an unknown type id.
pub fn suggest(type_id: u32) -> Option<&'static str> {
    LIKELY.iter().copied().find(|name| simple_hash(name).ok() == Some(type_id))
}

/// Returns the name of the type in the VEL specification that has this id.
pub fn published(type_id: u32) -> Option<&'static str> {
    Kind::of_id(type_id).map(Kind::name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_equal_the_published_ids() {
        for kind in Kind::ALL {
            assert_eq!(simple_hash(kind.name()).unwrap(), kind.type_id(), "{}", kind.name());
        }
        assert_eq!(simple_hash("").unwrap(), 0);
        assert_eq!(simple_hash("A").unwrap(), 0x1E37);
        assert_eq!(simple_hash("LaserCloudM").unwrap(), simple_hash("CloudLaserM").unwrap());
        assert_eq!(published(simple_hash("VelodyneGridMapM").unwrap()), Some("VelodyneRawDataM"));
        assert_eq!(suggest(0x0001_806E), Some("CompassM"));
        assert!(simple_hash("Stra\u{df}eM").is_err());
    }
}
