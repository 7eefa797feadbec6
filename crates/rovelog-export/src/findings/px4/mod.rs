//! Finds problems in logs of PX4 autopilots.
//!
//! Each module has the rules for a part of the vehicle, with their thresholds as constants. Many
//! thresholds come from flight-review-rs, which is PX4's log analyzer
//! (<https://github.com/PX4/flight-review-rs>, `crates/converter`).

mod attitude;
mod battery;
mod estimator;
mod flight;
mod gps;
mod health;
mod motors;
mod recording;
mod status;

use rovelog::core::internal::topic::instance;
use rovelog::ulog_format::UlogReader;
use rovelog::{LogReader, Topic};

use super::Finding;
use super::scan::Scan;
use crate::ExportError;

use flight::Flight;
pub(crate) use health::MEAN_LIMIT;

/// Number of nanoseconds in a second.
const SECOND: i64 = 1_000_000_000;

/// Adds the findings of a PX4 log.
pub(super) fn findings(log: &UlogReader, found: &mut Vec<Finding>) -> Result<(), ExportError> {
    let flight = Flight::read(log)?;
    let mut scan = Scan::default();
    attitude::add(log, &flight, &mut scan);
    battery::add(log, &flight, &mut scan)?;
    estimator::add(log, &flight, &mut scan)?;
    gps::add(log, &flight, &mut scan)?;
    motors::add(log, &flight, &mut scan);
    health::add(log, &flight, &mut scan);
    status::add(log, &flight, &mut scan);
    scan.run(log, found)?;
    status::failsafes(log, &flight, found);
    status::add_causes(log, found)?;
    recording::dropouts(log, found);
    Ok(())
}

/// Returns the time in nanoseconds during which the vehicle was armed and not on the ground.
pub(crate) fn time_in_air(log: &UlogReader) -> Result<i64, ExportError> {
    let end = log.info().span().map_or(0, |span| span.1.nanos);
    Ok(Flight::read(log)?.time_in_air(end))
}

/// Returns the topics of a type that have its lowest instance number.
///
/// A ULog with several recordings has one such topic for each recording, for example
/// `vehicle_status/0` and `vehicle_status/0#2`. If the times of a recording overlap with those of an
/// earlier recording, its topic is left out, because the clocks of the two cannot be compared.
pub(crate) fn recordings<'a>(log: &'a UlogReader, type_name: &str) -> Vec<&'a Topic> {
    let number = |topic: &Topic| instance(&topic.name).map(|(_, number, _)| number);
    let lowest = topics(log, type_name).map(number).min();
    let mut end = i64::MIN;
    let follows = |topic: &&Topic| {
        let span = topic.first.zip(topic.last).map(|(first, last)| (first.nanos, last.nanos));
        let follows = span.is_none_or(|(first, _)| first >= end);
        end = span.filter(|_| follows).map_or(end, |(_, last)| last);
        follows
    };
    topics(log, type_name).filter(|topic| Some(number(topic)) == lowest).filter(follows).collect()
}

/// Returns the topics of a type that have rows, one for each instance.
fn topics<'a>(log: &'a UlogReader, type_name: &str) -> impl Iterator<Item = &'a Topic> {
    log.topics().iter().filter(move |topic| topic.type_name == type_name && topic.count > 0)
}
