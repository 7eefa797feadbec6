//! The list of formats. The enum, its dispatch, the re-exports and detection are generated from it.

use std::io::{Read, Write};

use rovelog_core::partial::Ranges;
use rovelog_core::reader::Companion;
use rovelog_core::{
    Align, Bytes, Error, ErrorKind, Format, FormatInfo, LogReader, LogStream, Merged, ReadOptions, Result,
};

/// One line per format: the cargo feature, the variant of [`AnyLog`], the crate and its [`Format`];
/// and for builds without the format, the name of its logs and their first bytes.
macro_rules! formats {
    ($($feature:literal $variant:ident => $krate:ident :: $format:ident, $what:literal $magics:expr;)*) => {
    #[cfg(not(any($(feature = $feature),*)))]
    compile_error!(concat!("enable at least one format feature:", $(" ", $feature),*));

    /// For every format the id, the name of its logs and their first bytes, for builds without it.
    pub(crate) static OURS: &[(&str, &str, &[&[u8]])] = &[$( ($feature, $what, $magics) ),*];

    $( #[cfg(feature = $feature)] pub use $krate; )*

    /// A log of any built-in format. Dereferences to [`LogReader`], the interface of all formats;
    /// use `match` for format-specific functions.
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

    /// Opens a log of a known format without looking at its magic number; `format` is the id.
    ///
    /// # Errors
    /// Returns an error if the format is not built in, or refuses the bytes.
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

    /// Fetches what a summary of a log of a known format needs.
    pub(crate) fn outline_known(format: &str, file: &dyn Ranges) -> Result<()> {
        match format {
            $( #[cfg(feature = $feature)] $feature => <$krate::$format as Format>::outline(file), )*
            _ => Err(not_built_in(format)),
        }
    }

    /// Reads a log of a known format from a pipe without looking at its magic number; `format` is
    /// the id.
    ///
    /// # Errors
    /// Returns an error if the format is not built in, or refuses the input.
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

    /// Writes one log that holds the records of all `logs` in time order.
    ///
    /// # Errors
    /// Returns an error if `logs` is empty, they are not of one format, their clocks cannot be
    /// aligned, the format cannot hold them all, or writing to the output fails.
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

        /// The dispatch uses the feature's name, so it must equal the format's id.
        #[test]
        fn a_feature_is_named_like_its_format() {
            $( #[cfg(feature = $feature)] assert_eq!(super::$krate::$format::INFO.id, $feature); )*
        }

        /// The list and each format agree on the first bytes.
        #[test]
        fn a_format_starts_as_its_line_says() {
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

/// Returns the error for a format by name that this build cannot open.
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
