//! Messages to write to a new log.

use std::borrow::Cow;

use binrw::BinWrite;
use rovelog_core::Value;
use rovelog_core::internal::wire::I32Le;

use crate::declared::Declared;
use crate::error::VelError;
use crate::images::JpegHeader;
use crate::message::{Message, Payload};
use crate::validate::MAX_DATA;
use crate::wire::{Counted, ImageData, VelBool};

/// A message to write to a new log.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct NewMessage<'a> {
    /// Id of the message type.
    pub type_id: u32,
    /// Version of the message type.
    pub version: i32,
    /// Time in milliseconds since the recording program started.
    pub millis: f64,
    /// Marker of the message. If it is `None`, the marker in the options of the writer is used.
    pub marker: Option<u8>,
    /// The data of the message, which follows the header.
    pub data: Cow<'a, [u8]>,
}

impl<'a> NewMessage<'a> {
    /// Creates a message of any type. The data is not checked. If the specification describes the
    /// type, and the data is too short for the fields of the type, readers report the message as
    /// lost.
    pub fn raw(type_id: u32, version: i32, millis: f64, data: impl Into<Cow<'a, [u8]>>) -> Self {
        Self { type_id, version, millis, marker: None, data: data.into() }
    }

    /// Copies a message of another log, including its marker.
    pub fn copy(message: &Message<'a>) -> Self {
        let header = message.header;
        let marker = Some(header.marker);
        let copy =
            Self::raw(header.type_id.get(), header.version.get(), header.timestamp.get(), message.data);
        Self { marker, ..copy }
    }

    /// Creates a message whose type is described in the specification.
    ///
    /// # Panics
    /// Panics if a string, an image or an array has more than 4 billion elements.
    pub fn new(millis: f64, content: &Payload<'_>) -> Self {
        let mut data = std::io::Cursor::new(Vec::new());
        content.write(&mut data).expect("memory takes any bytes, and counts of 32 bits are enough");
        Self::raw(content.kind().type_id(), content.kind().version(), millis, data.into_inner())
    }

    /// Creates an image message from a JPEG file. The width and height are taken from the JPEG
    /// header.
    ///
    /// # Errors
    /// Returns an error if the JPEG has no readable header, or is too long for a message.
    pub fn jpeg(millis: f64, source: i32, jpeg: &[u8]) -> Result<Self, VelError> {
        let bad = |why: String| VelError::BadValue { field: "data".to_owned(), why };
        let header =
            JpegHeader::read(jpeg).map_err(|why| bad(format!("the JPEG header cannot be read: {why}")))?;
        if jpeg.len() as u64 > MAX_DATA {
            return Err(VelError::TooLong { len: jpeg.len() as u64, max: MAX_DATA });
        }
        let image = ImageData {
            source: I32Le::new(source),
            is_compressed: VelBool::new(true),
            width: I32Le::new(header.width.into()),
            height: I32Le::new(header.height.into()),
            data: Counted(jpeg),
        };
        Ok(Self::new(millis, &Payload::Image(image)))
    }

    /// Creates a message of a type that the user declared.
    ///
    /// # Errors
    /// Returns an error if a value does not fit its field.
    pub fn declared(millis: f64, declared: &Declared, value: &Value) -> Result<Self, VelError> {
        Ok(Self::raw(declared.type_id(), declared.version(), millis, declared.encode(value)?))
    }
}
