//! Interpretation of PX4's topics: versions, vehicle types, flight modes, positions and events.
//!
//! The functions are called with an open [`UlogReader`], and read only the topics that they need.

mod attitude;
mod events;
pub(crate) mod fields;
mod gps_dump;
#[cfg(feature = "events")]
mod metadata;
mod mode;
mod modes;
mod position;
#[cfg(feature = "events")]
mod template;
mod timeline;
pub(crate) mod words;

use rovelog_core::{Clock, LogReader as _, Select, Timestamp, Topic};

use crate::UlogReader;
use crate::row::Row;

pub use attitude::roll_pitch_yaw;
pub use events::{Event, Events, events};
pub use gps_dump::{GpsDump, gps_dump};
#[cfg(feature = "events")]
pub use metadata::{EventDefinition, EventDefinitions, MetadataError};
pub use mode::Mode;
pub(crate) use modes::StateChanges;
pub use modes::{Change, mode_changes};
#[doc(hidden)]
pub use position::POSITION_TOPICS;
pub use position::{NoPosition, Position, PositionFields};
pub use timeline::{Entry, status_changes, timeline};
pub use words::{EventText, release};

/// Returns the topics with the type `type_name` that have rows, sorted by instance.
#[doc(hidden)]
pub fn instances<'a>(reader: &'a UlogReader, type_name: &str) -> Vec<&'a Topic> {
    let multi_id = |topic: &Topic| reader.definitions().subscriptions[topic.id.index()].multi_id;
    let mut topics: Vec<_> =
        reader.topics().iter().filter(|topic| topic.type_name == type_name && topic.count > 0).collect();
    topics.sort_by_key(|topic| (multi_id(topic), topic.id));
    topics
}

/// Returns the topics that belong to the lowest instance of `type_name` with rows. An instance has
/// several topics if it was subscribed again with another id or format.
fn first_instance<'a>(reader: &'a UlogReader, type_name: &str) -> Vec<&'a Topic> {
    let multi_id = |topic: &Topic| reader.definitions().subscriptions[topic.id.index()].multi_id;
    let mut topics = instances(reader, type_name);
    if let Some(first) = topics.first().map(|topic| multi_id(topic)) {
        topics.retain(|topic| multi_id(topic) == first);
    }
    topics
}

/// A row with its time.
struct TimedRow<'a> {
    /// Time of the row. If the row has no time, this is the time of the previous row.
    time: Timestamp,
    /// Offset of the row in the file.
    offset: u64,
    row: Row<'a>,
}

/// Returns the rows of `topics` in time order.
fn timed_rows<'a>(reader: &'a UlogReader, topics: &[&Topic]) -> impl Iterator<Item = TimedRow<'a>> + use<'a> {
    let mut time = reader.info().start.unwrap_or(Timestamp::new(0, Clock::Boot));
    let none = topics.is_empty();
    let select = Select::topics(topics.iter().map(|topic| topic.name.clone()));
    reader.records(&select).take_while(move |_| !none).filter_map(move |record| {
        let record = record.ok()?;
        let row = reader.row(&record).ok()?;
        time = record.time.unwrap_or(time);
        Some(TimedRow { time, offset: record.offset, row })
    })
}

/// Returns the value of a field as an integer. The field can be an integer of any width, or a
/// Boolean, which is returned as 0 or 1.
fn integer(row: &Row<'_>, name: &str) -> Option<i64> {
    let place = row.layout().place(name)?;
    macro_rules! first {
        ($($ty:ty),*) => { None$(.or_else(|| i64::try_from(row.read::<$ty>(place)?).ok()))* };
    }
    first!(u8, bool, u16, u32, u64, i8, i16, i32, i64)
}
