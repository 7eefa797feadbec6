//! The list of formats. A macro generates the enum, its dispatch, the re-exports and detection from
//! it.

use std::io::{Read, Write};

use rovelog_core::partial::Ranges;
use rovelog_core::reader::Companion;
use rovelog_core::{
    Align, Bytes, Error, ErrorKind, Format, FormatInfo, LogReader, LogStream, Merged, ReadOptions, Result,
};

/// Each line of the list has the cargo feature, the variant of [`AnyLog`], the crate and its
/// [`Format`]. For builds without the format, it also has the name of its logs and their magic
/// numbers.
macro_rules! formats {
    ($($feature:literal $variant:ident => $krate:ident :: $format:ident, $what:literal $magics:expr;)*) => {
    #[cfg(not(any($(feature = $feature),*)))]
    compile_error!(concat!("enable at least one format feature:", $(" ", $feature),*));

    /// Id, name of the logs, and magic numbers of every format, whether or not it is built in.
    pub(crate) static KNOWN_FORMATS: &[(&str, &str, &[&[u8]])] = &[$( ($feature, $what, $magics) ),*];

    $( #[cfg(feature = $feature)] pub use $krate; )*

    /// A log of any built-in format. It dereferences to [`LogReader`], the interface of all
    /// formats. Use `match` for format-specific functions.
    #[non_exhaustive]
    #[allow(clippy::large_enum_variant, reason = "few logs are open at a time, and none is moved often")]
    pub enum AnyLog {
        $(
            #[cfg(feature = $feature)]
            #[doc = concat!("A log read by `", stringify!($krate), "`; `records`, `columns`, `recover`: see [`LogReader`].")]
            $variant(<$krate::$format as Format>::Reader),
        )*
    }

    impl std::ops::Deref for AnyLog {
        type Target = dyn LogReader;

        fn deref(&self) -> &Self::Target {
            match self { $( #[cfg(feature = $feature)] Self::$variant(log) => log, )* }
        }
    }

    /// The formats that are built in.
    pub static FORMATS: &[FormatInfo] = &[
        $( #[cfg(feature = $feature)] <$krate::$format as Format>::INFO, )*
    ];

    /// Opens a log of a known format without checking its magic number. `format` is the format id.
    ///
    /// # Errors
    /// Returns an error if the format is not built in, or if it refuses the bytes.
    pub(crate) fn from_known(format: &str, bytes: Bytes, options: &ReadOptions) -> Result<AnyLog> {
        match format {
            $( #[cfg(feature = $feature)]
               $feature => <$krate::$format as Format>::open(bytes, options).map(AnyLog::$variant), )*
            _ => Err(not_built_in(format)),
        }
    }

    /// Opens a log of a known format with its companion files.
    pub(crate) fn from_files_as(
        format: &str,
        bytes: Bytes,
        companions: Vec<Companion>,
        options: &ReadOptions,
    ) -> Result<AnyLog> {
        match format {
            $( #[cfg(feature = $feature)]
               $feature => <$krate::$format as Format>::open_with(bytes, companions, options).map(AnyLog::$variant), )*
            _ => Err(not_built_in(format)),
        }
    }

    /// Fetches the parts of a log of a known format that its summary needs.
    pub(crate) fn outline_known(format: &str, file: &dyn Ranges) -> Result<()> {
        match format {
            $( #[cfg(feature = $feature)] $feature => <$krate::$format as Format>::outline(file), )*
            _ => Err(not_built_in(format)),
        }
    }

    /// Reads a log of a known format from a stream without checking its magic number. `format` is
    /// the format id.
    ///
    /// # Errors
    /// Returns an error if the format is not built in, or if it refuses the input.
    pub(crate) fn stream_known(
        format: &str,
        input: Box<dyn Read + Send>,
        options: &ReadOptions,
    ) -> Result<Box<dyn LogStream>> {
        match format {
            $( #[cfg(feature = $feature)]
               $feature => Ok(Box::new(<$krate::$format as Format>::stream(input, options)?)), )*
            _ => Err(not_built_in(format)),
        }
    }

    /// Writes a log that contains the records of all `logs` in time order.
    ///
    /// # Errors
    /// Returns an error in these cases:
    ///
    /// - `logs` is empty, or has logs of several formats.
    /// - The clocks of the logs cannot be aligned.
    /// - The format cannot represent the merged log.
    /// - Writing to the output fails.
    pub fn merge(logs: &[AnyLog], align: Align, out: &mut dyn Write) -> Result<Merged> {
        match logs {
            $( #[cfg(feature = $feature)]
               [AnyLog::$variant(_), ..] => {
                   let same = logs.iter().map(|log| match log {
                       AnyLog::$variant(log) => Ok(log),
                       #[allow(unreachable_patterns, reason = "with one format there is no other")]
                       other => Err(mixed($feature, other.format().id)),
                   });
                   <$krate::$format as Format>::merge(&same.collect::<Result<Vec<_>>>()?, align, out)
               } )*
            [] => Err(no_logs()),
        }
    }

    #[cfg(test)]
    mod tests {
        use rovelog_core::Format as _;

        /// The dispatch uses the name of the feature, so the name must be the id of the format.
        #[test]
        fn feature_names_are_format_ids() {
            $( #[cfg(feature = $feature)] assert_eq!(super::$krate::$format::INFO.id, $feature); )*
        }

        /// The magic numbers in the list must be those of the formats.
        #[test]
        fn magic_numbers_are_those_of_the_formats() {
            $( #[cfg(feature = $feature)] {
                let magics: &[&[u8]] = $magics;
                let of_format = super::$krate::$format::INFO.signatures.iter().map(|signature| signature.0);
                assert!(of_format.eq(magics.iter().copied()), "{}", $feature);
            } )*
        }
    }
} }

formats! {
    "ulog" Ulog => ulog_format::Ulog, "a PX4 ULog" &[b"ULog\x01\x12\x35"];
    "rld" Rld => rld_format::Rld, "a RocketLogger log (RLD)" &[b"%RLD", b"BLR%"];
    "vel" Vel => vel_format::Vel, "a VEL log" &[b"\xa4VEL"];
    "rosbag" Rosbag => rosbag12::Rosbag,
        "a ROS 1 bag" &[b"#ROSBAG V2.", b"#ROSRECORD V1.", b"#ROSLOG V1.", b"#ROSBAG V1."];
}

/// Returns the error for a format id that this build does not support.
fn not_built_in(format: &str) -> Error {
    let ids: Vec<_> = FORMATS.iter().map(|format| format.id).collect();
    Error::new("rovelog", ErrorKind::InvalidArgument, None, format!("the format {format:?} is not built in"))
        .with_next(format!("built in: {}", ids.join(", ")))
}

fn mixed(first: &str, other: &str) -> Error {
    let what = format!("cannot merge logs of different formats: {first} and {other}");
    Error::new("rovelog", ErrorKind::InvalidArgument, None, what).with_next("export them to MCAP instead")
}

fn no_logs() -> Error {
    Error::new("rovelog", ErrorKind::InvalidArgument, None, "no logs to merge")
}

impl std::fmt::Debug for AnyLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (format, info) = (self.format(), self.info());
        f.debug_struct("AnyLog").field("format", &format.id).field("records", &info.records).finish()
    }
}
