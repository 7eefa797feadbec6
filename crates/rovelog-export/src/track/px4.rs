//! Reads the track of a PX4 flight log.

use std::collections::BTreeMap;

use rovelog::ulog_format::UlogReader;
use rovelog::ulog_format::px4::{
    self, Change, Entry, NoPosition, POSITION_TOPICS, Position, PositionFields, status_changes,
};
use rovelog::{Error, ErrorKind, LogReader as _, Select, Timestamp, Topic, TopicId};

use super::build::LineBuilder;
use super::model::{Fix, Mark, MarkKind, Phase, Track, TrackPoint};
use super::options::{Tally, TrackOptions};

/// Value of PX4's `fix_type` for a three-dimensional fix.
pub(crate) const MIN_FIX: u8 = 3;

/// Maximum time in nanoseconds between an event and the point whose position is used for the event.
const MAX_MARK_DISTANCE: u64 = 10_000_000_000;

pub(super) fn track(reader: &UlogReader, options: &TrackOptions) -> Result<(Track, Tally), Error> {
    let mut tally = Tally::default();
    let mut track = Track { utc: reader.info().utc.clone(), ..Track::default() };
    for topics in candidates(reader, options)? {
        lines(reader, &topics, options, &mut track, &mut tally)?;
        // The next groups of topics describe the same path with less accuracy, so they are not
        // needed.
        if !track.lines.is_empty() {
            break;
        }
    }
    for Change { time, value, .. } in status_changes(reader) {
        let (kind, name) = match value {
            Entry::Mode(mode) => {
                track.phases.push(Phase { time, name: mode.to_string(), kind: mode.nav_state.into() });
                continue;
            }
            Entry::Arming(true) => (MarkKind::Armed, "Armed"),
            Entry::Arming(false) => (MarkKind::Disarmed, "Disarmed"),
            Entry::Failsafe(true) => (MarkKind::FailsafeStarts, "Failsafe"),
            Entry::Failsafe(false) => (MarkKind::FailsafeEnds, "Failsafe over"),
            Entry::Event(_) => continue,
        };
        track.marks.push(Mark { time, kind, name: name.to_owned(), place: None });
    }
    track.marks.extend(images(reader));
    track.marks.retain(|mark| options.keeps_time(mark.time.nanos));
    track.marks.sort_by_key(|mark| mark.time.nanos);
    place(&mut track);
    Ok((track, tally))
}

/// Returns groups of topics, starting with the most accurate group. The first group with valid
/// positions is used. If the user requested topics, they are the only group. Otherwise, a group
/// contains all instances of a topic.
fn candidates<'a>(reader: &'a UlogReader, options: &TrackOptions) -> Result<Vec<Vec<&'a Topic>>, Error> {
    let layout = |topic: &Topic| {
        let record = reader.records(&Select::topic(topic.name.clone())).next()?.ok()?;
        Some(reader.row(&record).ok()?.layout())
    };
    let invalid = |message: String| Error::new("ulog", ErrorKind::InvalidArgument, None, message);
    if options.topics.is_empty() {
        return Ok(POSITION_TOPICS.into_iter().map(|name| px4::instances(reader, name)).collect());
    }
    let mut chosen: Vec<&Topic> = Vec::new();
    for name in &options.topics {
        let topics = || reader.topics().iter();
        // If the user gave a name without an instance number, all instances of the topic are
        // selected.
        let mut found: Vec<_> = topics().filter(|topic| topic.name == *name).collect();
        if found.is_empty() {
            found = topics().filter(|topic| topic.type_name == *name).collect();
        }
        if found.is_empty() {
            return Err(
                invalid(format!("the log has no topic {name}")).with_next("list all: rovelog topics FILE")
            );
        }
        found.retain(|topic| topic.count > 0);
        if let Some(odd) = found.iter().find(|topic| layout(topic).and_then(PositionFields::of).is_none()) {
            return Err(invalid(format!("topic {} contains no positions", odd.name))
                .with_next("name a topic with the fields lat and lon, or latitude_deg and longitude_deg"));
        }
        chosen.extend(found);
    }
    Ok(vec![chosen])
}

/// Reads the points of `topics` in one pass and appends a line for each topic that has points.
fn lines(
    reader: &UlogReader,
    topics: &[&Topic],
    options: &TrackOptions,
    track: &mut Track,
    tally: &mut Tally,
) -> Result<(), Error> {
    if topics.is_empty() {
        return Ok(());
    }
    let names = topics.iter().map(|topic| topic.name.clone());
    let select = Select::topics(names).between(options.start, options.end);
    let mut builders: BTreeMap<TopicId, (Option<PositionFields>, LineBuilder)> = BTreeMap::new();
    for record in reader.records(&select) {
        let record = record?;
        let row = reader.row(&record)?;
        let (fields, line) = builders.entry(record.topic.id).or_insert_with(|| {
            (PositionFields::of(row.layout()), LineBuilder::new(record.topic.name.clone(), options.all))
        });
        let Some(fields) = fields else { continue };
        tally.rows += 1;
        let Some(time) = record.time else {
            tally.untimed += 1;
            continue;
        };
        match fields.position(&row, options.min_fix.unwrap_or(MIN_FIX)) {
            Ok(position) => line.push(point(time, &position)),
            Err(NoPosition::NoFix) => tally.without_fix += 1,
            Err(NoPosition::Implausible) => tally.implausible += 1,
        }
    }
    // The lines have the order of the topics, which are sorted by instance number.
    for topic in topics {
        let Some((_, line)) = builders.remove(&topic.id) else { continue };
        line.finish_in(track, tally);
    }
    Ok(())
}

/// Converts a position to a point. The numbers in the match are values of PX4's `fix_type`.
fn point(time: Timestamp, position: &Position) -> TrackPoint {
    TrackPoint {
        altitude_msl: position.altitude_msl,
        altitude_ellipsoid: position.altitude_ellipsoid,
        fix: position.fix.and_then(|fix| {
            Some(match fix {
                2 => Fix::TwoD,
                3 => Fix::ThreeD,
                4 => Fix::Differential,
                5 => Fix::RtkFloat,
                6 => Fix::RtkFixed,
                8 => Fix::Extrapolated,
                _ => return None,
            })
        }),
        satellites: position.satellites,
        hdop: position.hdop,
        speed: position.speed,
        course: position.course,
        ..TrackPoint::new(time, position.latitude, position.longitude)
    }
}

/// Returns an event for each image that a camera took.
fn images(reader: &UlogReader) -> Vec<Mark> {
    let mut marks = Vec::new();
    // The topic `camera_trigger` has the time at which an image was requested. If the topic
    // `camera_capture` exists, it has the exact time and position of each image and is used
    // instead.
    let captures = px4::instances(reader, "camera_capture");
    let reported = !captures.is_empty();
    let topics = if reported { captures } else { px4::instances(reader, "camera_trigger") };
    if topics.is_empty() {
        return marks;
    }
    for record in reader.records(&Select::topics(topics.iter().map(|topic| topic.name.clone()))) {
        let Ok(record) = record else { continue };
        let Ok(row) = reader.row(&record) else { continue };
        let Some(time) = record.time else { continue };
        let number = row.layout().place("seq").and_then(|place| row.read::<u32>(place));
        let name = number.map_or_else(|| "Camera".to_owned(), |number| format!("Camera {number}"));
        let place = PositionFields::of(row.layout())
            .and_then(|fields| fields.position(&row, MIN_FIX).ok())
            .map(|position| point(time, &position));
        marks.push(Mark { time, kind: MarkKind::Camera, name, place });
    }
    marks
}

/// Sets the position of each event without a position. It is the point of the best line that is
/// nearest in time.
fn place(track: &mut Track) {
    let Some(line) = track.lines.first() else { return };
    let points: Vec<&TrackPoint> = line.segments.iter().flat_map(|segment| &segment.points).collect();
    for mark in track.marks.iter_mut().filter(|mark| mark.place.is_none()) {
        let after = points.partition_point(|point| point.time.nanos < mark.time.nanos);
        let distance = |point: &&&TrackPoint| point.time.nanos.abs_diff(mark.time.nanos);
        let nearest =
            points[after.saturating_sub(1)..points.len().min(after + 1)].iter().min_by_key(distance);
        mark.place = nearest.filter(|point| distance(point) <= MAX_MARK_DISTANCE).map(|point| **point);
    }
}
