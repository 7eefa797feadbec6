//! Extracts the images, point clouds and packets of a VEL log.

use std::collections::HashMap;
use std::io::{BufWriter, Write as _};

use rovelog::vel_format::images::{Encoding, JpegHeader};
use rovelog::vel_format::wire::ImageData;
use rovelog::vel_format::{Kind, Message, Payload, VelReader};
use rovelog::{Clock, Error, Timestamp};
use rovelog_export::TimeBase;
use rovelog_export::cloud::Cloud;
use rovelog_export::pcap::PcapWriter;
use rovelog_export::picture::png_of_vel;

use super::index::{FileFacts, Names, Row};
use super::{Extraction, What};
use crate::failure::{Failure, Status};
use crate::text;
use crate::window::Window;

/// Name of the topic with the packets of a Velodyne.
const PACKETS: &str = "VelodyneRawDataM";

impl Extraction<'_> {
    fn row(&self, nanos: i64, offset: u64, topic: &str) -> Row {
        let time = self.times.machine(Some(Timestamp::new(nanos, Clock::LogStart)));
        Row { t_ns: nanos, time, offset, topic: topic.to_owned(), ..Row::default() }
    }

    /// Extracts all images. Compressed images are copied byte for byte, and raw images become PNG
    /// files if their layout is known.
    pub(super) fn images(&mut self, reader: &VelReader, window: &Window) -> Result<(), Failure> {
        let mut folders = HashMap::new();
        for (message, payload) in reader.payloads(Kind::Image) {
            let Payload::Image(image) = payload else { continue };
            if !window.contains(message.nanos) {
                continue;
            }
            self.context.progress.at(message.offset);
            let source = image.source.get();
            let names = folders
                .entry(source)
                .or_insert_with(|| Names::new(self.args.name, format!("images/{source}")));
            let (bytes, extension) = self.picture(&message, &image)?;
            let row = self.row(message.nanos, message.offset, &format!("ImageM/{source}"));
            let file = format!("{}.{extension}", names.next(&row));
            self.file(&file, |file| Ok(file.write_all(bytes.as_deref().unwrap_or(&image.data))?))?;
            let (width, height) = match JpegHeader::read(&image.data) {
                Ok(header) if image.encoding() == Encoding::JPEG => {
                    (Some(header.width.into()), Some(header.height.into()))
                }
                _ => (image.width.get().try_into().ok(), image.height.get().try_into().ok()),
            };
            let encoding = image.encoding().name().into();
            self.list(&row, FileFacts { file, encoding, width, height, ..FileFacts::default() });
            self.count(What::Images, 1);
        }
        Ok(())
    }

    /// Returns the content and the extension of the file for an image. The content is `None` if the
    /// bytes of the image are copied unchanged.
    fn picture(
        &mut self,
        message: &Message<'_>,
        image: &ImageData<'_>,
    ) -> Result<(Option<Vec<u8>>, &'static str), Failure> {
        match image.encoding() {
            Encoding::File(format) => Ok((None, format.extension())),
            Encoding::Unknown => {
                let at = message.offset;
                self.context.notices.warn(
                    "images with an unknown layout",
                    &format!("the image at byte {at} has an unknown layout; its bytes are written unchanged"),
                );
                Ok((None, "bin"))
            }
            _ => Ok((Some(png_of_vel(image, message)?), "png")),
        }
    }

    /// Extracts a point cloud for each revolution of the Velodyne.
    pub(super) fn clouds(&mut self, reader: &VelReader, window: &Window) -> Result<(), Failure> {
        if !reader.has_packets() {
            return Ok(());
        }
        let args = self.args;
        let how = args.velodyne.options()?;
        let sensor = how.model.map(|model| reader.sensor_named(model));
        let revolutions = reader.revolutions(sensor.as_ref(), how.calibration.as_ref(), how.points, 0);
        let mut revolutions = match revolutions {
            Ok(revolutions) => revolutions,
            Err(error) => {
                self.no_points(Error::from(error).into());
                return Ok(());
            }
        };
        let comment =
            format!("{} by rovelog {}", revolutions.decoder().model().name(), env!("CARGO_PKG_VERSION"));
        let mut names = Names::new(self.args.name, "clouds".to_owned());
        while let Some(revolution) = revolutions.next() {
            self.context.progress.at(revolution.offset);
            if window.contains(revolution.nanos) {
                let mut row = self.row(revolution.nanos, revolution.offset, PACKETS);
                row.file.partial = Some(revolution.partial);
                self.cloud(&Cloud::from(revolution.points), &comment, &row, &mut names)?;
            }
        }
        Ok(())
    }

    /// Writes the packets of the Velodyne to a PCAP file, in the form in which they were sent over
    /// the network.
    pub(super) fn packets(&mut self, reader: &VelReader, window: &Window) -> Result<(), Failure> {
        let sensor = self.args.velodyne.model.map(|model| reader.sensor_named(model));
        let clock = sensor.as_ref().or(reader.meaning().velodyne.as_ref()).map(|s| reader.packet_clock(s));
        let base = TimeBase::of(reader);
        let (mut first, mut count, mut displaced) = (None, 0, 0_u64);
        self.file("packets.pcap", |file| {
            let mut capture = PcapWriter::new(BufWriter::new(file))?;
            for (message, packets) in reader.packets() {
                for (i, packet) in packets.iter().enumerate() {
                    let nanos =
                        clock.as_ref().map_or(message.nanos, |clock| clock.at(message.nanos, packets, i));
                    if window.contains(nanos) {
                        first.get_or_insert((nanos, message.offset));
                        count += 1;
                        // PCAP stores a time as a 32-bit number of seconds since 1970, so times
                        // outside of this range cannot be stored.
                        let held = capture.packet(base.place(nanos).unwrap_or(nanos), packet)?;
                        displaced += u64::from(!held);
                    }
                }
            }
            capture.finish()?;
            Ok(())
        })?;
        if displaced > 0 {
            let why = format!("PCAP cannot store the times of {}", text::count(displaced, "packet"));
            self.context.notices.warn("times that a PCAP file cannot store", &why);
            self.status = Status::Lost;
        }
        self.count(What::Packets, count);
        if let Some((nanos, offset)) = first {
            let mut row = self.row(nanos, offset, PACKETS);
            row.file = FileFacts {
                file: "packets.pcap".to_owned(),
                encoding: "pcap".into(),
                ..FileFacts::default()
            };
            self.rows.push(row);
        }
        Ok(())
    }
}
