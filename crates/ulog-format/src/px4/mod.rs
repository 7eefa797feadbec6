//! What PX4 means by what it logs: versions, vehicle types, flight modes, positions and events.
//!
//! Everything here works on an open [`UlogReader`] and reads only the topics it needs.

mod attitude;
pub mod events;
mod gps_dump;
#[cfg(feature = "events")]
pub mod metadata;
pub mod modes;
pub mod position;
#[cfg(feature = "events")]
mod template;

use rovelog_core::{Clock, LogReader as _, Record, Select, Timestamp, Topic};

use crate::UlogReader;
use crate::row::Row;

pub use attitude::roll_pitch_yaw;
pub use events::{Event, EventText, Events, events};
pub use gps_dump::{GpsDump, gps_dump};
pub use modes::{Change, Mode, arming_changes, failsafe_changes, mode_changes};
pub use position::{NoPosition, POSITION_TOPICS, Position, PositionFields, has_position};

/// The topics of the type `type_name` that hold rows, in the order of their instances.
pub fn instances<'a>(reader: &'a UlogReader, type_name: &str) -> Vec<&'a Topic> {
    let multi_id = |topic: &Topic| reader.definitions().subscriptions[topic.id.index()].multi_id;
    let mut topics: Vec<_> =
        reader.topics().iter().filter(|topic| topic.type_name == type_name && topic.count > 0).collect();
    topics.sort_by_key(|topic| (multi_id(topic), topic.id));
    topics
}

/// The topics of the lowest instance of `type_name` that has rows; a subscription that was renewed makes
/// several topics of one instance.
fn first_instance<'a>(reader: &'a UlogReader, type_name: &str) -> Vec<&'a Topic> {
    let multi_id = |topic: &Topic| reader.definitions().subscriptions[topic.id.index()].multi_id;
    let mut topics = instances(reader, type_name);
    if let Some(first) = topics.first().map(|topic| multi_id(topic)) {
        topics.retain(|topic| multi_id(topic) == first);
    }
    topics
}

/// The rows of `topics` by time, each with a time on the log's clock: a row that carries none takes that of
/// the row before it.
fn timed_rows<'a>(
    reader: &'a UlogReader,
    topics: &[&Topic],
) -> impl Iterator<Item = (Timestamp, Record<'a>, Row<'a>)> + use<'a> {
    let mut time = reader.info().start.unwrap_or(Timestamp::new(0, Clock::Boot));
    let none = topics.is_empty();
    let select = Select::topics(topics.iter().map(|topic| topic.name.clone()));
    reader.records(&select).take_while(move |_| !none).filter_map(move |record| {
        let record = record.ok()?;
        let row = reader.row(&record).ok()?;
        if let Some(own) = record.time {
            time = own;
        }
        Some((time, record, row))
    })
}

/// A field that is a whole number of any width, or a truth value.
fn integer(row: &Row<'_>, name: &str) -> Option<i64> {
    let place = row.layout().place(name)?;
    macro_rules! first {
        ($($ty:ty),*) => { None$(.or_else(|| i64::try_from(row.read::<$ty>(place)?).ok()))* };
    }
    first!(u8, bool, u16, u32, u64, i8, i16, i32, i64)
}

/// A release as information messages store it, 0xAABBCCTT: `v1.11.2 dev`. "Predefined information messages"
pub fn release(packed: u32) -> String {
    let [major, minor, patch, kind] = packed.to_be_bytes();
    let kind = match kind {
        0..=63 => " dev",
        64..=127 => " alpha",
        128..=191 => " beta",
        192..=254 => " rc",
        255 => "",
    };
    format!("v{major}.{minor}.{patch}{kind}")
}

/// Returns the name of a MAVLink vehicle type (`MAV_TYPE`), if it has one.
pub fn vehicle_type(mav_type: i64) -> Option<&'static str> {
    Some(match mav_type {
        1 => "fixed wing",
        2 => "quadrotor",
        3 => "coaxial helicopter",
        4 => "helicopter",
        5 => "antenna tracker",
        6 => "ground control station",
        7 => "airship",
        8 => "balloon",
        9 => "rocket",
        10 => "rover",
        11 => "boat",
        12 => "submarine",
        13 => "hexarotor",
        14 => "octorotor",
        15 => "tricopter",
        16 => "flapping wing",
        17 => "kite",
        18 => "onboard controller",
        19 => "VTOL tailsitter duo",
        20 => "VTOL tailsitter quad",
        21 => "VTOL tiltrotor",
        22 => "VTOL standard",
        23 => "VTOL tailsitter",
        24 => "VTOL tiltwing",
        26 => "gimbal",
        28 => "parafoil",
        29 => "dodecarotor",
        35 => "decarotor",
        37 => "parachute",
        43 => "multirotor",
        45 => "spacecraft",
        46 => "quadruped",
        47 => "VTOL gyrodyne",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_read_as_the_specification_says() {
        assert_eq!(release(0x0104_02ff), "v1.4.2");
        assert_eq!(release(0x010b_0200), "v1.11.2 dev");
        assert_eq!(release(0x010e_0040), "v1.14.0 alpha");
        assert_eq!(release(0x010e_0080), "v1.14.0 beta");
        assert_eq!(release(0x010e_00c0), "v1.14.0 rc");
        let borders = [(0, " dev"), (63, " dev"), (64, " alpha"), (127, " alpha"), (128, " beta")];
        let others = [(191, " beta"), (192, " rc"), (254, " rc"), (255, "")];
        for (byte, kind) in borders.into_iter().chain(others) {
            assert_eq!(release(0x0102_0300 | byte), format!("v1.2.3{kind}"), "type byte {byte}");
        }
    }

    #[test]
    fn vehicles_have_the_names_of_mavlink() {
        let names = [(2, "quadrotor"), (7, "airship"), (8, "balloon"), (9, "rocket"), (22, "VTOL standard")];
        for (number, name) in names {
            assert_eq!(vehicle_type(number), Some(name));
        }
        assert_eq!(vehicle_type(0), None);
    }
}
