//! Rows as structs of the user's own: [`rows!`](crate::rows) declares one, fields are looked up
//! once per topic.
//!
//! ```
//! use std::borrow::Cow;
//!
//! use rovelog_core::{LogReader, ReadOptions, Select};
//! use ulog_format::{UlogReader, rows};
//! # use ulog_format::{FormatBuilder, UlogWriter};
//!
//! rows! {
//!     /// `vehicle_attitude`, as far as it is needed here.
//!     #[derive(Debug)]
//!     struct Attitude<'a> {
//!         timestamp: u64,
//!         /// Hamilton, w first.
//!         q: [f32; 4],
//!         /// Another name than the log's.
//!         resets: u8 = "quat_reset_counter",
//!         /// Not in every release of PX4.
//!         covariance: Option<f32>,
//!         /// Borrowed from the log.
//!         source: Cow<'a, str>,
//!     }
//! }
//!
//! # let mut log = UlogWriter::new(Vec::new(), 0)?;
//! # log.define(&FormatBuilder::new("vehicle_attitude").field::<u64>("timestamp").array::<f32>("q", 4)
//! #     .field::<u8>("quat_reset_counter").text("source", 8))?;
//! # let attitude = log.subscribe("vehicle_attitude", 0)?;
//! # let mut row = log.row_buffer(attitude)?;
//! # let (time, q, source) = (row.place("timestamp")?, row.place("q")?, row.place("source")?);
//! # row.set(time, 5_u64)?; row.set_array(q, &[1_f32, 0., 0., 0.])?; row.set_text(source, "ekf2")?;
//! # log.write(&row)?;
//! # let bytes = log.finish()?;
//! let log = UlogReader::new(bytes.into(), &ReadOptions::default())?;
//! for row in log.rows::<Attitude<'_>>("vehicle_attitude", &Select::all())? {
//!     let row = row?;
//!     assert_eq!((row.timestamp, row.q[0], row.covariance), (5, 1.0, None));
//!     assert!(matches!(row.source, Cow::Borrowed("ekf2")));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::borrow::Cow;

use rovelog_core::layout::Layout;
use rovelog_core::select::Names;
use rovelog_core::{LogReader, Select};

use crate::error::UlogError;
use crate::reader::UlogReader;
use crate::row::{Number, Place, Row};

/// A struct that [`rows!`](crate::rows) has declared.
pub trait FromRow<'a>: Sized {
    /// Where its fields lie in the rows of one topic.
    type Places;

    /// Looks all fields up.
    ///
    /// # Errors
    /// [`UlogError::NoSuchField`] where the format lacks a field, or has it with another type.
    #[doc(hidden)]
    fn places(layout: &Layout) -> Result<Self::Places, UlogError>;

    /// Reads one row of the topic whose places these are.
    #[doc(hidden)]
    fn from_row(row: &Row<'a>, places: &Self::Places) -> Self;
}

/// What a field of such a struct can be: a number or `bool`, an array of them, text as `Cow<str>`
/// or as bytes, and an `Option` of these for a field that a log may lack.
pub trait FromField<'a>: Sized {
    /// Where the field is in a row.
    type Place: Copy;

    /// Looks the field up; `None` where it is missing or of another type.
    #[doc(hidden)]
    fn find(layout: &Layout, path: &str) -> Option<Self::Place>;

    /// Returns what the type is called in a log.
    #[doc(hidden)]
    fn type_name() -> String;

    /// Reads the field.
    #[doc(hidden)]
    fn read(row: &Row<'a>, place: Self::Place) -> Self;
}

/// A place was found for this type in a layout, and a row has the size of its layout.
const FITS: &str = "a place is used with rows of its own topic";

macro_rules! numbers {
    ($($number:ty),*) => { $(
        impl FromField<'_> for $number {
            type Place = Place;

            fn find(layout: &Layout, path: &str) -> Option<Place> {
                layout.place(path).filter(|place| place.is_scalar(Self::SCALAR))
            }

            fn type_name() -> String {
                Self::SCALAR.name().to_owned()
            }

            fn read(row: &Row<'_>, place: Place) -> Self {
                row.read(place).expect(FITS)
            }
        }
    )* };
}

numbers!(bool, i8, u8, i16, u16, i32, u32, i64, u64, f32, f64);

impl<T: Number, const N: usize> FromField<'_> for [T; N] {
    type Place = Place;

    fn find(layout: &Layout, path: &str) -> Option<Place> {
        layout.place(path).filter(|place| place.scalar() == Some(T::SCALAR) && place.elements() == Some(N))
    }

    fn type_name() -> String {
        format!("{}[{N}]", T::SCALAR.name())
    }

    fn read(row: &Row<'_>, place: Place) -> Self {
        let mut values = row.read_array(place).expect(FITS);
        std::array::from_fn(|_| values.next().expect(FITS))
    }
}

/// The bytes of a text up to the first NUL.
impl<'a> FromField<'a> for &'a [u8] {
    type Place = Place;

    fn find(layout: &Layout, path: &str) -> Option<Place> {
        layout.place(path).filter(|place| place.scalar().is_none())
    }

    fn type_name() -> String {
        "char[]".to_owned()
    }

    fn read(row: &Row<'a>, place: Place) -> Self {
        row.text_bytes(place).expect(FITS)
    }
}

/// A text up to the first NUL; copied only where it is not UTF-8 and so must be mended.
impl<'a> FromField<'a> for Cow<'a, str> {
    type Place = Place;

    fn find(layout: &Layout, path: &str) -> Option<Place> {
        <&[u8]>::find(layout, path)
    }

    fn type_name() -> String {
        <&[u8]>::type_name()
    }

    fn read(row: &Row<'a>, place: Place) -> Self {
        String::from_utf8_lossy(<&[u8]>::read(row, place))
    }
}

impl<'a, T: FromField<'a>> FromField<'a> for Option<T> {
    type Place = Option<T::Place>;

    /// A field of another type is an error all the same: only a missing one is `None`.
    fn find(layout: &Layout, path: &str) -> Option<Self::Place> {
        if layout.place(path).is_none() {
            return Some(None);
        }
        T::find(layout, path).map(Some)
    }

    fn type_name() -> String {
        T::type_name()
    }

    fn read(row: &Row<'a>, place: Self::Place) -> Self {
        place.map(|place| T::read(row, place))
    }
}

/// Looks a field up for [`rows!`](crate::rows).
///
/// # Errors
/// Returns an error if the format lacks it, or has it with another type.
#[doc(hidden)]
pub fn place<'a, T: FromField<'a>>(layout: &Layout, path: &str) -> Result<T::Place, UlogError> {
    T::find(layout, path).ok_or_else(|| UlogError::NoSuchField {
        format: layout.schema().name.clone(),
        field: path.to_owned(),
        wanted: T::type_name(),
    })
}

impl UlogReader {
    /// Returns the selected rows of a topic as structs, in time order. See [`rows!`](crate::rows).
    ///
    /// # Errors
    /// Returns an error if the log has no such topic, the topic cannot be decoded, or a field is
    /// missing or of another type.
    pub fn rows<'a, R: FromRow<'a>>(
        &'a self,
        topic: &str,
        select: &Select,
    ) -> Result<impl Iterator<Item = rovelog_core::Result<R>> + use<'a, R>, UlogError> {
        let topic = self.topic(topic).ok_or_else(|| UlogError::NoSuchTopic { topic: topic.to_owned() })?;
        let places = R::places(self.definitions().layout(topic.get())?)?;
        let mut select = select.clone();
        select.topics = Some(Names::from_iter([&topic.name]));
        Ok(self.records(&select).map(move |record| Ok(R::from_row(&self.row(&record?)?, &places))))
    }
}

/// Declares a struct that rows can be read as.
///
/// Each field is named as in the log, or has the log's flat name behind `=`: `x: f32 = "pos.x"`,
/// `rpm: i32 = "esc[3].esc_rpm"`. See [`FromField`] for the types. A struct that borrows from the
/// log has one lifetime.
#[macro_export]
macro_rules! rows {
    ($( #[$meta:meta] )* $vis:vis struct $name:ident { $($fields:tt)* }) => {
        $crate::rows! { @ [$( #[$meta] )*] [$vis] [$name] ['row] [] $($fields)* }
    };
    ($( #[$meta:meta] )* $vis:vis struct $name:ident < $life:lifetime > { $($fields:tt)* }) => {
        $crate::rows! { @ [$( #[$meta] )*] [$vis] [$name] [$life] [<$life>] $($fields)* }
    };
    (@ [$( #[$meta:meta] )*] [$vis:vis] [$name:ident] [$life:lifetime] [$($generic:tt)*]
        $( $( #[$field_meta:meta] )* $field_vis:vis $field:ident : $ty:ty $( = $path:literal )? ),* $(,)?
    ) => {
        $( #[$meta] )*
        $vis struct $name $($generic)* {
            $( $( #[$field_meta] )* $field_vis $field: $ty, )*
        }

        impl<$life> $crate::typed::FromRow<$life> for $name $($generic)* {
            type Places = ($( <$ty as $crate::typed::FromField<$life>>::Place, )*);

            fn places(layout: &$crate::rovelog_core::layout::Layout) -> Result<Self::Places, $crate::UlogError> {
                Ok(($( $crate::typed::place::<$ty>(layout, $crate::rows!(@path $field $($path)?))?, )*))
            }

            fn from_row(row: &$crate::Row<$life>, places: &Self::Places) -> Self {
                let ($($field,)*) = *places;
                Self { $( $field: $crate::typed::FromField::read(row, $field), )* }
            }
        }
    };
    (@path $field:ident) => { stringify!($field) };
    (@path $field:ident $path:literal) => { $path };
}
