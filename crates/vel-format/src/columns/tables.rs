//! The columns of each kind of message.

use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, FixedSizeBinaryBuilder, ListBuilder, StringBuilder, UInt32Builder,
};
use arrow_array::types::Float32Type;
use arrow_array::{
    ArrayRef, BooleanArray, FixedSizeListArray, Float32Array, Float64Array, Int32Array, Int64Array,
    UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use zerocopy::IntoBytes;

use super::table::Table;
use crate::images::JpegHeader;
use crate::message::{Kind, Message, Payload, text};
use crate::pose::PoseMeaning;
use crate::reader::VelReader;
use crate::state::Reading;
use crate::wire::{GpsData, ImageData, LaserRange, ObdData, RobotPose, VelodynePacket};

/// Fills in the columns of messages of one topic; the number of rows.
pub(super) fn fill(
    table: &mut Table,
    reader: &VelReader,
    reading: Reading,
    messages: &[Message<'_>],
) -> usize {
    if reading == Reading::Kind(Kind::Velodyne) {
        return packets(table, messages);
    }
    common(table, messages, messages.len(), std::iter::once);
    macro_rules! rows {
        ($kind:ident) => {{
            let rows = messages.iter().filter_map(|message| match message.payload() {
                Some(Payload::$kind(data)) => Some(data),
                _ => None,
            });
            rows.collect::<Vec<_>>()
        }};
    }
    if let Reading::Declared(id, version) = reading
        && let Some(declared) = reader.types().find(id, version)
    {
        super::declared::fill(table, declared, messages);
        return messages.len();
    }
    match reading {
        Reading::Kind(Kind::Obd) => obd(table, &rows!(Obd)),
        Reading::Kind(Kind::Gps) => gps(table, reader, &rows!(Gps)),
        Reading::Kind(Kind::Pose) => pose(table, &reader.meaning().pose, &rows!(Pose)),
        Reading::Kind(Kind::Image) => image(table, &rows!(Image)),
        Reading::Kind(Kind::Laser) => laser(table, &rows!(Laser)),
        _ => table.column("data", "", || binary(messages.iter().map(|message| message.data))),
    }
    messages.len()
}

/// What every topic has: the time, and how the log stores it.
fn common<'m, I: Iterator<Item = &'m Message<'m>>>(
    table: &mut Table,
    messages: &'m [Message<'m>],
    rows: usize,
    repeat: impl Fn(&'m Message<'m>) -> I,
) {
    let each = || messages.iter().flat_map(&repeat);
    let mut times = Vec::with_capacity(rows);
    times.extend(each().map(|message| message.nanos));
    table.always(rovelog_core::columns::TIME_COLUMN, "ns", Arc::new(Int64Array::from(times)));
    table.column("ts_ms", "ms", || {
        Arc::new(Float64Array::from_iter_values(each().map(|message| message.header.timestamp.get())))
    });
    table.column("version", "", || {
        Arc::new(Int32Array::from_iter_values(each().map(|message| message.header.version.get())))
    });
    table.column("offset", "", || {
        Arc::new(UInt64Array::from_iter_values(each().map(|message| message.offset)))
    });
}

fn i32s<T>(rows: &[T], get: impl Fn(&T) -> i32) -> ArrayRef {
    Arc::new(Int32Array::from_iter_values(rows.iter().map(get)))
}

fn f32s<T>(rows: &[T], get: impl Fn(&T) -> f32) -> ArrayRef {
    Arc::new(Float32Array::from_iter_values(rows.iter().map(get)))
}

fn f64s<T>(rows: &[T], get: impl Fn(&T) -> f64) -> ArrayRef {
    Arc::new(Float64Array::from_iter_values(rows.iter().map(get)))
}

fn binary<'a>(rows: impl Iterator<Item = &'a [u8]>) -> ArrayRef {
    let mut builder = BinaryBuilder::new();
    rows.for_each(|bytes| builder.append_value(bytes));
    Arc::new(builder.finish())
}

fn obd(table: &mut Table, rows: &[&ObdData]) {
    table.column("speed", "km/h", || i32s(rows, |row| row.speed.get()));
    table.column("rpm", "1/min", || i32s(rows, |row| row.rpm.get()));
    table.column("unused0", "", || f32s(rows, |row| row.unused0.get()));
    table.column("unused1", "", || i32s(rows, |row| row.unused1.get()));
    table.column("unused2", "", || i32s(rows, |row| row.unused2.get()));
    table.column("throttle", "%", || f32s(rows, |row| row.throttle.get()));
    table.column("unused3", "", || i32s(rows, |row| row.unused3.get()));
}

fn gps(table: &mut Table, reader: &VelReader, rows: &[&GpsData]) {
    let unit = reader.meaning().gps.unit;
    table.column("hour", "", || i32s(rows, |row| row.hour.get()));
    table.column("minute", "", || i32s(rows, |row| row.minute.get()));
    table.column("second", "", || i32s(rows, |row| row.second.get()));
    table.column("warning", "", || i32s(rows, |row| row.warning.get()));
    table.column("latitude", "deg", || f64s(rows, |row| unit.degrees(row.latitude.get())));
    table.column("longitude", "deg", || f64s(rows, |row| unit.degrees(row.longitude.get())));
    table.column("latitude_raw", unit.name(), || f64s(rows, |row| row.latitude.get()));
    table.column("longitude_raw", unit.name(), || f64s(rows, |row| row.longitude.get()));
    table.column("speed", "km/h", || f32s(rows, |row| row.speed.get()));
    table.column("course", "deg", || f32s(rows, |row| row.course.get()));
    table.column("day", "", || i32s(rows, |row| row.day.get()));
    table.column("month", "", || i32s(rows, |row| row.month.get()));
    table.column("year", "", || i32s(rows, |row| row.year.get()));
    table.column("quality", "", || i32s(rows, |row| row.quality.get()));
    table.column("satellites", "", || i32s(rows, |row| row.satellites.get()));
    table.column("hdop", "", || f32s(rows, |row| row.hdop.get()));
    table.column("height", "m", || f32s(rows, |row| row.height.get()));
    table.column("geoid_height", "m", || f32s(rows, |row| row.geoid_height.get()));
    table.column("vdop", "", || f32s(rows, |row| row.vdop.get()));
    table.column("pdop", "", || f32s(rows, |row| row.pdop.get()));
}

fn pose(table: &mut Table, meaning: &PoseMeaning, rows: &[&RobotPose]) {
    for (i, name) in ["qw", "qx", "qy", "qz"].into_iter().enumerate() {
        table.column(name, "", || f32s(rows, |row| meaning.quaternion(row)[i]));
    }
    table.column("quaternion_raw", "", || {
        let lists = rows.iter().map(|row| Some(row.quaternion.map(|q| Some(q.get()))));
        Arc::new(FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(lists, 4))
    });
    for (i, name) in ["ax", "ay", "az"].into_iter().enumerate() {
        table.column(name, "m/s2", || f32s(rows, |row| meaning.unit.metres(row.acceleration[i].get())));
    }
}

fn image(table: &mut Table, rows: &[ImageData<'_>]) {
    table.column("source", "", || i32s(rows, |row| row.source.get()));
    table.column("is_compressed", "", || {
        Arc::new(rows.iter().map(|row| Some(row.is_compressed.get())).collect::<BooleanArray>())
    });
    table.column("width", "px", || i32s(rows, |row| row.width.get()));
    table.column("height", "px", || i32s(rows, |row| row.height.get()));
    let wanted = table.select.keeps_field("jpeg_width") || table.select.keeps_field("jpeg_height");
    let jpeg =
        |row: &ImageData<'_>| (row.is_compressed.get()).then(|| JpegHeader::read(&row.data).ok()).flatten();
    let headers: Vec<Option<JpegHeader>> = if wanted { rows.iter().map(jpeg).collect() } else { Vec::new() };
    table.column("jpeg_width", "px", || {
        Arc::new(headers.iter().map(|h| h.map(|h| i32::from(h.width))).collect::<Int32Array>())
    });
    table.column("jpeg_height", "px", || {
        Arc::new(headers.iter().map(|h| h.map(|h| i32::from(h.height))).collect::<Int32Array>())
    });
    table.column("data", "", || binary(rows.iter().map(|row| row.data.0)));
}

fn laser(table: &mut Table, rows: &[LaserRange<'_>]) {
    let texts = |get: fn(&LaserRange<'_>) -> String| -> ArrayRef {
        let mut builder = StringBuilder::new();
        for row in rows {
            builder.append_value(get(row));
        }
        Arc::new(builder.finish())
    };
    table.column("sensor_type", "", || texts(|row| text(&row.sensor_type).into_owned()));
    table.column("sensor_name", "", || texts(|row| text(&row.sensor_name).into_owned()));
    table.column("ranges", "mm", || {
        let mut builder = ListBuilder::new(UInt32Builder::new());
        for row in rows {
            row.ranges.iter().for_each(|range| builder.values().append_value(range.get()));
            builder.append(true);
        }
        Arc::new(builder.finish())
    });
}

/// One row for each packet.
fn packets(table: &mut Table, messages: &[Message<'_>]) -> usize {
    let packets_of = |message: &Message<'_>| -> usize {
        match message.payload() {
            Some(Payload::Velodyne(data)) => data.packets.len(),
            _ => 0,
        }
    };
    let rows: Vec<&VelodynePacket> = messages
        .iter()
        .filter_map(|message| match message.payload() {
            Some(Payload::Velodyne(data)) => Some(data.packets.0),
            _ => None,
        })
        .flatten()
        .collect();
    common(table, messages, rows.len(), |message| std::iter::repeat_n(message, packets_of(message)));
    table.column("stamp", "us", || {
        Arc::new(UInt32Array::from_iter_values(rows.iter().map(|row| row.stamp.get())))
    });
    table.column("azimuth", "0.01 deg", || {
        Arc::new(UInt16Array::from_iter_values(rows.iter().map(|row| row.blocks[0].azimuth.get())))
    });
    table.column("return_mode", "", || {
        Arc::new(UInt8Array::from_iter_values(rows.iter().map(|row| row.return_mode)))
    });
    table
        .column("product", "", || Arc::new(UInt8Array::from_iter_values(rows.iter().map(|row| row.product))));
    table.column("data", "", || {
        let mut builder = FixedSizeBinaryBuilder::with_capacity(rows.len(), 1206);
        for row in &rows {
            builder.append_value(row.as_bytes()).expect("a packet has 1206 bytes");
        }
        Arc::new(builder.finish())
    });
    rows.len()
}
