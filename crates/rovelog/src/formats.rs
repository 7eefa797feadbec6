//! The list of log formats. From this list, a macro generates the enum [`AnyLog`] with its
//! dispatch, the re-exports of the format crates, and the data for detection.

use std::io::{Read, Write};

use rovelog_core::format::Companion;
use rovelog_core::internal::partial::Ranges;
use rovelog_core::{
    Align, Bytes, Error, ErrorKind, Format, FormatInfo, LogReader, LogStream, Merged, ReadOptions, Result,
};

/// Declares the log formats. Each line has the cargo feature, the variant of [`AnyLog`], the crate,
/// and its [`Format`]. The line also has the name and the magic numbers of such logs, so that a
/// build without the format can still detect them.
macro_rules! formats {
    ($($feature:literal $variant:ident => $krate:ident :: $format:ident, $what:literal $magics:expr;)*) => {
    #[cfg(not(any($(feature = $feature),*)))]
    compile_error!(concat!("enable at least one format feature:", $(" ", $feature),*));

    /// Id, name and magic numbers of every log format, including formats that are not built in.
    pub(crate) static KNOWN_FORMATS: &[(&str, &str, &[&[u8]])] = &[$( ($feature, $what, $magics) ),*];

    $( #[cfg(feature = $feature)] pub use $krate; )*

    /// A log of any built-in format. It dereferences to [`LogReader`], the interface of all
    /// formats. Use `match` to call format-specific functions.
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

    /// The log formats that are built in.
    pub static FORMATS: &[FormatInfo] = &[
        $( #[cfg(feature = $feature)] <$krate::$format as Format>::INFO, )*
    ];

    /// Opens a log as the given format together with its companion files, even if its magic number
    /// does not match. `format` is a format id.
    ///
    /// # Errors
    /// Returns an error if the format is not built in, or if its reader returns an error.
    pub(crate) fn open_known(
        format: &str,
        bytes: Bytes,
        companions: Vec<Companion>,
        options: &ReadOptions,
    ) -> Result<AnyLog> {
        match format {
            $( #[cfg(feature = $feature)]
               $feature => <$krate::$format as Format>::open_with(bytes, companions, options).map(AnyLog::$variant), )*
            _ => Err(not_built_in_error(format)),
        }
    }

    /// Fetches the byte ranges of a log that the given format needs for the summary of the log.
    pub(crate) fn outline_known(format: &str, file: &dyn Ranges) -> Result<()> {
        match format {
            $( #[cfg(feature = $feature)] $feature => <$krate::$format as Format>::outline(file), )*
            _ => Err(not_built_in_error(format)),
        }
    }

    /// Opens a stream as the given format, even if its magic number does not match. `format` is a
    /// format id.
    ///
    /// # Errors
    /// Returns an error if the format is not built in, or if its reader returns an error.
    pub(crate) fn stream_known(
        format: &str,
        input: Box<dyn Read + Send>,
        options: &ReadOptions,
    ) -> Result<Box<dyn LogStream>> {
        match format {
            $( #[cfg(feature = $feature)]
               $feature => Ok(Box::new(<$krate::$format as Format>::stream(input, options)?)), )*
            _ => Err(not_built_in_error(format)),
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
                       other => Err(mixed_formats_error($feature, other.format().id)),
                   });
                   <$krate::$format as Format>::merge(&same.collect::<Result<Vec<_>>>()?, align, out)
               } )*
            [] => Err(no_logs_error()),
        }
    }

    #[cfg(test)]
    mod tests {
        use rovelog_core::Format as _;

        /// The dispatch compares format ids with feature names, so each format must use the same
        /// text for both.
        #[test]
        fn feature_names_are_format_ids() {
            $( #[cfg(feature = $feature)] assert_eq!(super::$krate::$format::INFO.id, $feature); )*
        }

        /// The magic numbers in the list of formats must equal those in the constants of the
        /// formats.
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
fn not_built_in_error(format: &str) -> Error {
    let ids: Vec<_> = FORMATS.iter().map(|format| format.id).collect();
    Error::new(
        "rovelog",
        ErrorKind::InvalidArgument,
        None,
        format!("the format {format:?} is unknown or not in this build"),
    )
    .with_next(format!("use one of the formats {}", ids.join(", ")))
}

/// Returns the error for merging logs of different formats.
fn mixed_formats_error(first: &str, other: &str) -> Error {
    let what = format!("logs of different formats, {first} and {other}, cannot be merged");
    Error::new("rovelog", ErrorKind::InvalidArgument, None, what).with_next("export each log to MCAP instead")
}

fn no_logs_error() -> Error {
    Error::new("rovelog", ErrorKind::InvalidArgument, None, "no logs to merge were given")
}

impl std::fmt::Debug for AnyLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (format, info) = (self.format(), self.info());
        f.debug_struct("AnyLog").field("format", &format.id).field("records", &info.records).finish()
    }
}
