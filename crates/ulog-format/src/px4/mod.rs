//! What PX4 means by what it logs: versions, vehicle types, flight modes, positions and events.
//!
//! Everything here works on an open [`UlogReader`] and reads only the topics it needs.

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

use rovelog_core::{Clock, LogReader as _, Record, Select, Timestamp, Topic};

use crate::UlogReader;
use crate::row::Row;

pub use attitude::roll_pitch_yaw;
pub use events::{Event, Events, events};
pub use gps_dump::{GpsDump, gps_dump};
#[cfg(feature = "events")]
pub use metadata::{EventDefinition, EventDefinitions, MetadataError};
pub use mode::Mode;
pub use modes::{Change, mode_changes};
#[doc(hidden)]
pub use position::POSITION_TOPICS;
pub use position::{NoPosition, Position, PositionFields};
pub use timeline::{Entry, status_changes, timeline};
pub use words::{EventText, release};

/// Returns the topics of the type `type_name` that hold rows, in the order of their instances.
#[doc(hidden)]
pub fn instances<'a>(reader: &'a UlogReader, type_name: &str) -> Vec<&'a Topic> {
    let multi_id = |topic: &Topic| reader.definitions().subscriptions[topic.id.index()].multi_id;
    let mut topics: Vec<_> =
        reader.topics().iter().filter(|topic| topic.type_name == type_name && topic.count > 0).collect();
    topics.sort_by_key(|topic| (multi_id(topic), topic.id));
    topics
}

/// Returns the topics of the lowest instance of `type_name` that has rows; a subscription that was
/// renewed makes several topics of one instance.
fn first_instance<'a>(reader: &'a UlogReader, type_name: &str) -> Vec<&'a Topic> {
    let multi_id = |topic: &Topic| reader.definitions().subscriptions[topic.id.index()].multi_id;
    let mut topics = instances(reader, type_name);
    if let Some(first) = topics.first().map(|topic| multi_id(topic)) {
        topics.retain(|topic| multi_id(topic) == first);
    }
    topics
}

/// Returns the rows of `topics` by time, each with a time on the log's clock: a row that carries
/// none takes that of the row before it.
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

/// Returns a field that is a whole number of any width, or a truth value.
fn integer(row: &Row<'_>, name: &str) -> Option<i64> {
    let place = row.layout().place(name)?;
    macro_rules! first {
        ($($ty:ty),*) => { None$(.or_else(|| i64::try_from(row.read::<$ty>(place)?).ok()))* };
    }
    first!(u8, bool, u16, u32, u64, i8, i16, i32, i64)
}
