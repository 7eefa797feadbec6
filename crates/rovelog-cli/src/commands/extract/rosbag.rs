//! Extracts the images of a ROS bag.

use std::collections::HashSet;
use std::io::Write as _;

use rovelog::core::backend::Backend as _;
use rovelog::rosbag12::BagReader;
use rovelog::{LogReader as _, Record, Select, Topic};
use rovelog_export::picture::{self, Picture};
use rovelog_export::topic_names;

use super::{Extraction, Row, unique_name};
use crate::failure::{Failure, Status};
use crate::window::Window;

impl Extraction<'_> {
    /// Extracts all images. Compressed images are copied byte for byte, and raw images become PNG
    /// files.
    pub(super) fn bag_images(&mut self, bag: &BagReader, window: &Window) -> Result<(), Failure> {
        let mut taken = HashSet::new();
        let topics: Vec<&Topic> =
            bag.topics().iter().filter(|topic| picture::is_image(&topic.type_name)).collect();
        for (topic, name) in topics.iter().zip(topic_names(&topics)) {
            let folder = format!("images/{name}");
            self.folder.folder(&folder)?;
            let select = Select::topic(&topic.name).between(window.start, window.end);
            for record in bag.intact_records(&select) {
                let record = record.map_err(Failure::from)?;
                self.context.progress.at(record.offset);
                let Some(picture) = self.picture_of(topic, &record)? else { continue };
                let nanos = record.time.map_or(0, |time| time.nanos);
                let file = unique_name(&mut taken, &folder, nanos, picture.extension());
                self.file(&file, |out| Ok(out.write_all(&picture.bytes)?))?;
                self.rows.push(Row {
                    t_ns: nanos.to_string(),
                    time: self.times.machine(record.time),
                    file,
                    width: picture.size.map(|size| size.0.into()),
                    height: picture.size.map(|size| size.1.into()),
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

    /// Returns the image that a record contains. Prints a warning if the record cannot be read as
    /// an image.
    fn picture_of(&mut self, topic: &Topic, record: &Record<'_>) -> Result<Option<Picture>, Failure> {
        let Ok(value) = record.value() else {
            self.left_out(record, "the message cannot be decoded");
            return Ok(None);
        };
        match picture::of_message(&topic.type_name, &value)? {
            Ok(picture) => {
                if picture.format.is_none() {
                    let text = format!(
                        "the image of {} at byte {} has an unknown format ({:?}); its bytes are written unchanged",
                        topic.name, record.offset, picture.encoding
                    );
                    self.context.notices.warn("images with an unknown format", &text);
                }
                Ok(Some(picture))
            }
            Err(why) => {
                self.left_out(record, &why);
                Ok(None)
            }
        }
    }

    fn left_out(&mut self, record: &Record<'_>, why: &str) {
        let text = format!(
            "the image of {} at byte {} cannot be extracted: {why}",
            record.topic.name, record.offset
        );
        self.context.notices.warn("images that cannot be extracted", &text);
        self.status = Status::Lost;
    }
}
