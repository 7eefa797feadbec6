//! Images of a ROS bag.

use std::collections::HashSet;
use std::io::Write as _;

use rovelog::rosbag12::BagReader;
use rovelog::{LogReader as _, Record, Select, Topic, Value};
use rovelog_export::picture::{self, Layout};
use rovelog_export::topic_names;

use super::{Extraction, Row, free};
use crate::failure::{Failure, Status};
use crate::text::count;
use crate::when::Window;

const COMPRESSED: &str = "sensor_msgs/CompressedImage";
const RAW: &str = "sensor_msgs/Image";

/// An image as a file.
struct Picture {
    bytes: Vec<u8>,
    extension: &'static str,
    encoding: String,
    size: Option<(i64, i64)>,
}

impl Extraction<'_> {
    /// Extracts every image: compressed ones byte for byte, raw ones as PNG.
    pub(super) fn bag_images(&mut self, bag: &BagReader, window: &Window) -> Result<(), Failure> {
        let mut taken = HashSet::new();
        let topics: Vec<&Topic> =
            bag.topics().iter().filter(|topic| [COMPRESSED, RAW].contains(&&*topic.type_name)).collect();
        for (topic, name) in topics.iter().zip(topic_names(&topics)) {
            let folder = format!("images/{name}");
            self.folder.folder(&folder)?;
            let select = Select::topic(&topic.name).between(window.start, window.end);
            for record in bag.records(&select) {
                let record = record.map_err(Failure::from)?;
                self.context.progress.at(record.offset);
                let Some(picture) = self.picture_of(topic, &record)? else { continue };
                let nanos = record.time.map_or(0, |time| time.nanos);
                let file = free(&mut taken, &format!("{folder}/{nanos}"), picture.extension);
                self.file(&file, |out| Ok(out.write_all(&picture.bytes)?))?;
                self.rows.push(Row {
                    t_ns: nanos.to_string(),
                    time: self.times.machine(record.time),
                    file,
                    width: picture.size.map(|size| size.0),
                    height: picture.size.map(|size| size.1),
                    encoding: picture.encoding.into(),
                    frame_id: topic.name.clone(),
                    offset: record.offset,
                    ..Row::default()
                });
                self.images += 1;
            }
        }
        Ok(())
    }

    /// Returns the image of a record; reports a record without one.
    fn picture_of(&mut self, topic: &Topic, record: &Record<'_>) -> Result<Option<Picture>, Failure> {
        let Ok(value) = record.value() else {
            self.left_out(record.offset, "its message cannot be decoded");
            return Ok(None);
        };
        let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
        let Some(Value::Bytes(data)) = value.get("data") else {
            self.left_out(record.offset, "it has no data");
            return Ok(None);
        };
        if topic.type_name == COMPRESSED {
            let extension = match data[..] {
                [0xff, 0xd8, ..] => "jpg",
                [0x89, b'P', b'N', b'G', ..] => "png",
                _ => "bin",
            };
            let encoding = text("format").to_owned();
            return Ok(Some(Picture { bytes: data.clone(), extension, encoding, size: None }));
        }
        let number = |name: &str| match value.get(name) {
            Some(Value::UInt(number, _)) => u32::try_from(*number).unwrap_or(0),
            _ => 0,
        };
        let encoding = text("encoding").to_owned();
        let (width, height, step) = (number("width"), number("height"), number("step") as usize);
        let rows = (step, number("is_bigendian") != 0);
        let png = match Layout::by_name(&encoding) {
            Some(layout) => picture::png((width, height), layout, rows, data)?,
            None => None,
        };
        let Some(bytes) = png else {
            let what =
                format!("no image of {width} x {height}: {} of {encoding:?}", count(data.len(), "byte"));
            self.left_out(record.offset, &what);
            return Ok(None);
        };
        let size = Some((width.into(), height.into()));
        Ok(Some(Picture { bytes, extension: "png", encoding, size }))
    }

    fn left_out(&mut self, offset: u64, why: &str) {
        self.context
            .notices
            .warn("images that cannot be extracted", &format!("the image at byte {offset}: {why}"));
        self.status = Status::Lost;
    }
}
