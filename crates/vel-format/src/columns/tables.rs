//! The columns of messages: those that every topic has, the fields of the message type, and
//! converted values.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, FixedSizeBinaryBuilder};
use arrow_array::{
    ArrayRef, Float32Array, Float64Array, Int32Array, Int64Array, UInt8Array, UInt16Array, UInt32Array,
    UInt64Array,
};
use arrow_schema::ArrowError;
use rovelog_core::internal::columns::VariableBuilder;
use rovelog_core::internal::layout::Layout;
use zerocopy::IntoBytes;

use super::table::Table;
use crate::gps::AngleUnit;
use crate::images::{Encoding, JpegHeader};
use crate::message::{Kind, Message, Payload};
use crate::pose::PoseMeaning;
use crate::state::Meaning;
use crate::wire::{GpsData, ImageData, RobotPose, VelodynePacket};

/// Names of the columns that every topic has.
const COMMON: [&str; 4] = [rovelog_core::internal::columns::TIME_COLUMN, "ts_ms", "version", "offset"];

/// Returns the layout with the names of columns. If a field has the name of a column that every
/// topic has, a `_` is appended to the name.
pub(super) fn renamed(layout: &Layout) -> Layout {
    let mut columns = Layout::builder(layout.schema().name.clone());
    for (field, slot) in layout.fields() {
        let mut name = field.name.to_string();
        if COMMON.contains(&name.as_str()) {
            name.push('_');
        }
        columns.field(name, slot.element.clone(), slot.len, field.source_type.clone());
        if let Some(unit) = &field.unit {
            columns.unit(unit.clone());
        }
    }
    columns.finish()
}

/// Adds the columns for messages of one topic to `table`, and returns the number of rows.
/// `declared` is `None` if the fields of the messages are unknown.
pub(super) fn fill(
    table: &mut Table,
    meaning: &Meaning,
    declared: Option<(Option<Kind>, &Layout)>,
    messages: &[Message<'_>],
) -> Result<usize, ArrowError> {
    if let Some((Some(Kind::Velodyne), _)) = declared {
        return Ok(packets(table, messages));
    }
    common(table, messages, messages.len(), std::iter::once);
    let Some((kind, layout)) = declared else {
        table.column("data", "", || {
            let mut builder = BinaryBuilder::new();
            for message in messages {
                builder.append_value(message.data);
            }
            Arc::new(builder.finish())
        });
        return Ok(messages.len());
    };
    // All messages have all of their fields, because a message whose data is too short has no
    // topic.
    let mut own = VariableBuilder::new(layout, &table.select, HashMap::new());
    for message in messages {
        own.push(layout, message.data, message.nanos);
    }
    table.extend(&own.finish()?);
    macro_rules! rows {
        ($kind:ident) => {{
            let rows = messages.iter().filter_map(|message| match message.payload() {
                Some(Payload::$kind(data)) => Some(data),
                _ => None,
            });
            rows.collect::<Vec<_>>()
        }};
    }
    match kind {
        Some(Kind::Gps) => gps(table, meaning.gps.unit, &rows!(Gps)),
        Some(Kind::Pose) => pose(table, &meaning.pose, &rows!(Pose)),
        Some(Kind::Image) => image(table, &rows!(Image)),
        _ => {}
    }
    Ok(messages.len())
}

/// Adds the columns that every topic has. `repeat` returns each message once for each of its rows.
fn common<'m, I: Iterator<Item = &'m Message<'m>>>(
    table: &mut Table,
    messages: &'m [Message<'m>],
    rows: usize,
    repeat: impl Fn(&'m Message<'m>) -> I,
) {
    let each = || messages.iter().flat_map(&repeat);
    let mut times = Vec::with_capacity(rows);
    times.extend(each().map(|message| message.nanos));
    table.always(rovelog_core::internal::columns::TIME_COLUMN, "ns", Arc::new(Int64Array::from(times)));
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

fn f32s<T>(rows: &[T], get: impl Fn(&T) -> f32) -> ArrayRef {
    Arc::new(Float32Array::from_iter_values(rows.iter().map(get)))
}

fn f64s<T>(rows: &[T], get: impl Fn(&T) -> f64) -> ArrayRef {
    Arc::new(Float64Array::from_iter_values(rows.iter().map(get)))
}

fn gps(table: &mut Table, unit: AngleUnit, rows: &[&GpsData]) {
    table.unit("latitude", unit.symbol());
    table.unit("longitude", unit.symbol());
    table.column("latitude_deg", "deg", || f64s(rows, |row| unit.degrees(row.latitude.get())));
    table.column("longitude_deg", "deg", || f64s(rows, |row| unit.degrees(row.longitude.get())));
}

fn pose(table: &mut Table, meaning: &PoseMeaning, rows: &[&RobotPose]) {
    table.unit("acceleration", meaning.unit.name());
    for (i, name) in ["qw", "qx", "qy", "qz"].into_iter().enumerate() {
        table.column(name, "", || f32s(rows, |row| meaning.quaternion(row)[i]));
    }
    for (i, name) in ["ax", "ay", "az"].into_iter().enumerate() {
        table.column(name, "m/s2", || f32s(rows, |row| meaning.unit.meters(row.acceleration[i].get())));
    }
}

fn image(table: &mut Table, rows: &[ImageData<'_>]) {
    // Reading JPEG headers takes time. So they are only read if one of these columns is selected.
    let wanted = table.select.keeps_field("jpeg_width") || table.select.keeps_field("jpeg_height");
    let is_jpeg = |row: &ImageData<'_>| row.encoding() == Encoding::JPEG;
    let jpeg = |row: &ImageData<'_>| is_jpeg(row).then(|| JpegHeader::read(&row.data).ok()).flatten();
    let headers: Vec<Option<JpegHeader>> = if wanted { rows.iter().map(jpeg).collect() } else { Vec::new() };
    table.column("jpeg_width", "px", || {
        Arc::new(headers.iter().map(|h| h.map(|h| i32::from(h.width))).collect::<Int32Array>())
    });
    table.column("jpeg_height", "px", || {
        Arc::new(headers.iter().map(|h| h.map(|h| i32::from(h.height))).collect::<Int32Array>())
    });
}

/// Adds the columns of messages with Velodyne packets to `table`. Each packet becomes a row.
/// Returns the number of rows.
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
