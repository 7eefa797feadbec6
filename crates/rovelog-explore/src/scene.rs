//! Responses that contain tracks, images and point clouds.

use rovelog::core::internal::media::ImageFormat;
use rovelog::vel_format::images::Encoding;
use rovelog::vel_format::velodyne::{Decoder, Point, PointOptions};
use rovelog::vel_format::{Kind, Payload, VelReader};
use rovelog::{AnyLog, Record, Select, Topic};
use rovelog_export::cloud::VelodyneOptions;
use rovelog_export::cloud::ros::{self, CloudReader};
use rovelog_export::picture::{self, Bayer};
use rovelog_export::track::{self, TrackOptions};
use serde_json::json;

use crate::Explore;
use crate::packed::packed;

/// Maximum number of points in a track that is sent to the browser.
const MAX_TRACK_POINTS: usize = 20_000;

/// Maximum number of points in a point cloud that is sent to the browser.
const MAX_CLOUD_POINTS: usize = 300_000;

/// Maximum number of record times of a topic that are sent to the browser. If the topic has more
/// records, only every second, third or further record is shown.
const MAX_TIMES: usize = 200_000;

/// Duration in nanoseconds of the Velodyne data in one point cloud. This is one revolution at 10
/// Hz.
const REVOLUTION_NANOS: i64 = 100_000_000;

/// Returns the first track in the log. The header of the response contains the index at which each
/// segment of the track ends. The arrays contain times in seconds, latitudes and longitudes.
pub(crate) fn track(explore: &Explore) -> Vec<u8> {
    let found = track::of(&explore.log, &TrackOptions::default()).ok();
    let line = found.and_then(|(track, _)| track.lines.into_iter().next());
    let Some(line) = line else { return packed(&json!({ "points": 0 }), []) };
    let total: usize = line.segments.iter().map(|segment| segment.points.len()).sum();
    let every = total.div_ceil(MAX_TRACK_POINTS).max(1);
    let (mut times, mut north, mut east, mut ends) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for segment in &line.segments {
        // The last point of each segment is always kept, so that thinning does not shorten
        // segments.
        let last = segment.points.len().saturating_sub(1);
        let kept = segment.points.iter().enumerate().filter(|(i, _)| i % every == 0 || *i == last);
        for (_, point) in kept {
            times.push(explore.seconds(point.time.nanos));
            north.push(point.latitude);
            east.push(point.longitude);
        }
        ends.push(times.len());
    }
    let header = json!({ "points": times.len(), "ends": ends, "source": line.source });
    packed(&header, [&times[..], &north, &east])
}

/// Kind of content of a topic that cannot be shown as plots of numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    Image,
    Cloud,
}

/// Returns whether a topic contains images or point clouds. Returns `None` if it contains only
/// numbers and texts.
fn content(log: &AnyLog, topic: &Topic) -> Option<Content> {
    match (log, &*topic.type_name) {
        (AnyLog::Vel(_), "ImageM") => Some(Content::Image),
        (AnyLog::Rosbag(_), name) if picture::is_image(name) => Some(Content::Image),
        (AnyLog::Vel(_), "VelodyneRawDataM" | "LaserRange2DDataM") => Some(Content::Cloud),
        (AnyLog::Rosbag(_), name) if ros::is_cloud(name) => Some(Content::Cloud),
        _ => None,
    }
}

/// Returns the topics that contain images or point clouds, and the times of their records in
/// seconds.
pub(crate) fn sources(explore: &Explore) -> Vec<u8> {
    let (mut headers, mut columns) = (Vec::new(), Vec::new());
    for topic in explore.log.topics().iter().filter(|topic| topic.count > 0) {
        let Some(content) = content(&explore.log, topic) else { continue };
        let records = explore.log.intact_records(&Select::topic(&topic.name));
        let times = records.filter_map(|record| record.ok()?.time);
        let times: Vec<f64> = times.map(|time| explore.seconds(time.nanos)).collect();
        let total = times.len();
        let times: Vec<f64> = times.into_iter().step_by(total.div_ceil(MAX_TIMES).max(1)).collect();
        let kind = if content == Content::Image { "image" } else { "cloud" };
        headers.push(json!({ "topic": topic.name, "kind": kind, "points": times.len(), "total": total }));
        columns.push(times);
    }
    packed(&json!({ "sources": headers }), columns.iter().map(Vec::as_slice))
}

/// Returns the image of a topic at the time `seconds`, and the media type of the image.
pub(crate) fn image(explore: &Explore, topic: &str, seconds: f64) -> Result<(Vec<u8>, &'static str), String> {
    let record = record(explore, topic, seconds)?;
    if content(&explore.log, record.topic) != Some(Content::Image) {
        return Err(format!("topic {topic} has no images"));
    }
    let image = if let AnyLog::Vel(reader) = &explore.log {
        vel_image(reader, &record)?
    } else {
        let value = record.value().map_err(|error| error.to_string())?;
        let picture = picture::of_message(&record.topic.type_name, &value, Bayer::Color)?;
        (picture.bytes, picture.format)
    };
    if !image.1.is_for_browsers() {
        return Err(format!("browsers cannot show {} images", image.1.name()));
    }
    Ok((image.0, image.1.media_type()))
}

/// Returns an image of a VEL log. Raw pixels are converted to a PNG file, because browsers cannot
/// show raw pixels.
fn vel_image(reader: &VelReader, record: &Record<'_>) -> Result<(Vec<u8>, ImageFormat), String> {
    let message = reader.message_at(record.offset).ok_or("the message no longer exists in the log")?;
    let Some(Payload::Image(image)) = message.payload() else {
        return Err("the message is not an image".to_owned());
    };
    if let Encoding::File(format) = image.encoding() {
        return Ok((image.data.0.to_vec(), format));
    }
    let png = picture::png_of_vel(&image, &message).map_err(|error| error.to_string())?;
    Ok((png, ImageFormat::Png))
}

/// Returns the first record of a topic at or after the time `seconds`. If there is none, returns
/// the last record of the topic.
fn record<'a>(explore: &'a Explore, topic: &str, seconds: f64) -> Result<Record<'a>, String> {
    let topic = explore.log.topic(topic).ok_or("the log has no such topic")?;
    // The browser has rounded `seconds`. So the time of the record may be up to a microsecond
    // before `seconds`.
    let from = explore.nanos(seconds).saturating_sub(1000);
    let records = |from| explore.log.intact_records(&Select::topic(&topic.name).between(from, None));
    let record = records(Some(from)).next().or_else(|| records(None).last());
    record.ok_or("the topic has no records")?.map_err(|error| error.to_string())
}

/// Returns the point cloud of a topic at the time `seconds`. The arrays of the response are X
/// (ahead), Y (left) and Z (up) in meters, and the intensity.
pub(crate) fn cloud(explore: &Explore, topic: &str, seconds: f64) -> Result<Vec<u8>, String> {
    let record = record(explore, topic, seconds)?;
    let (mut points, thinned): (Vec<_>, _) = match (&explore.log, content(&explore.log, record.topic)) {
        (AnyLog::Vel(reader), Some(Content::Cloud)) => (vel_points(reader, &record)?, 1),
        (AnyLog::Rosbag(bag), Some(Content::Cloud)) => {
            let value = record.value().map_err(|error| error.to_string())?;
            let mut reader = CloudReader::new(bag, record.topic, &VelodyneOptions::default())
                .map_err(|error| error.to_string())?;
            let cloud = reader.read(&value)?;
            let every = cloud.len().div_ceil(MAX_CLOUD_POINTS).max(1);
            let points = cloud.positions().ok_or("the points have no position")?;
            (points.step_by(every).collect(), every)
        }
        _ => return Err(format!("topic {topic} has no points")),
    };
    // If nothing reflects the beam of a sensor, the stored coordinates are NaN or infinite.
    points.retain(|point| point[..3].iter().all(|part| part.is_finite()));
    let every = points.len().div_ceil(MAX_CLOUD_POINTS).max(1);
    let points: Vec<[f64; 4]> = points.into_iter().step_by(every).collect();
    let columns: Vec<Vec<f64>> =
        (0..4).map(|axis| points.iter().map(|point| point[axis]).collect()).collect();
    let time = record.time.map(|time| explore.seconds(time.nanos));
    let header = json!({ "points": points.len(), "every": thinned * every, "time": time });
    Ok(packed(&header, columns.iter().map(Vec::as_slice)))
}

/// Returns points of a VEL log. These are the points of a laser scan, or the points of one
/// revolution of a Velodyne sensor.
fn vel_points(reader: &VelReader, record: &Record<'_>) -> Result<Vec<[f64; 4]>, String> {
    let message = reader.message_at(record.offset).ok_or("the message no longer exists in the log")?;
    if let Some(Payload::Laser(scan)) = message.payload() {
        let points = scan.points().ok_or("the angles of this scanner are unknown")?;
        return Ok(points.filter_map(|point| point.xy()).map(|[x, y]| [x, y, 0.0, 0.0]).collect());
    }
    let sensor = reader.meaning().velodyne.as_ref().ok_or("the Velodyne model is unknown")?;
    let calibration = if sensor.model.is_hdl64() { reader.velodyne_calibration() } else { None };
    let decoder = Decoder::of(sensor, calibration.as_ref(), PointOptions::default());
    let mut decoder = decoder.map_err(|error| error.to_string())?;
    let mut points: Vec<Point> = Vec::new();
    let window = message.nanos..message.nanos.saturating_add(REVOLUTION_NANOS);
    for (_, payload) in reader.payloads(Kind::Velodyne).filter(|(message, _)| window.contains(&message.nanos))
    {
        let Payload::Velodyne(data) = payload else { continue };
        data.packets.0.iter().for_each(|packet| decoder.packet(packet, 0, &mut points));
        // A hostile log could have millions of packets within a revolution.
        if points.len() > 4 * MAX_CLOUD_POINTS {
            break;
        }
    }
    Ok(points.iter().map(|point| [point.x, point.y, point.z, point.intensity].map(f64::from)).collect())
}
