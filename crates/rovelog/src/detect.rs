//! Detection of the kind of a file from its first bytes. Logs are detected, and also other files
//! that are often mistaken for logs.

use std::borrow::Cow;
use std::sync::LazyLock;

use rovelog_core::format::{PROBE_LEN, Probe};
use rovelog_core::internal::text::{count, hex};
use rovelog_core::{Error, ErrorKind, FormatInfo, Result};

use crate::FORMATS;
use crate::formats::KNOWN_FORMATS;
use crate::magic;

/// The kind of a file, as detected from its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Detection {
    /// A log of a built-in format.
    Format(&'static FormatInfo),
    /// A file that ends inside the signature of a built-in format. The number is the size of the
    /// file in bytes.
    Cut(&'static FormatInfo, usize),
    /// A log of a format that this build does not support.
    NotBuiltIn(&'static Sign),
    /// A file of a known kind that is not a log.
    Foreign(&'static Sign),
    /// An empty file.
    Empty,
    /// A file whose first bytes are all zero.
    Zeros,
    /// A file of an unknown kind.
    Unknown,
}

/// A kind of file that is detected by its magic numbers and is not a built-in format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sign {
    /// Name of the kind of file with its article, such as `a zip archive`.
    pub what: &'static str,
    /// Advice to the user on what to do with such a file. `FILE` stands for the path of the file.
    pub next: &'static str,
    /// Format id, if the kind of file is a log format of Rovelog.
    pub format: Option<&'static str>,
    /// Magic numbers at the start of such files.
    magics: &'static [&'static [u8]],
    /// True if white space before the magic number and the case of letters are ignored.
    lenient: bool,
}

/// Creates the entry for a log format of Rovelog.
const fn ours(format: &'static str, what: &'static str, magics: &'static [&'static [u8]]) -> Sign {
    let next = "`rovelog --version` lists the formats of this build";
    Sign { what, next, format: Some(format), magics, lenient: false }
}

/// Creates the entry for a kind of file that is not a log format of Rovelog.
const fn foreign(what: &'static str, next: &'static str, magics: &'static [&'static [u8]]) -> Sign {
    Sign { what, next, format: None, magics, lenient: false }
}

/// Creates the entry for a kind of text file, such as a web page.
const fn page(what: &'static str, next: &'static str, magics: &'static [&'static [u8]]) -> Sign {
    Sign { what, next, format: None, magics, lenient: true }
}

/// Advice to a user who opens an encrypted log.
const DECRYPT: &str = "decrypt it first with the private key of the vehicle's owner (PX4's \
     Tools/log_encryption/decrypt_logs.py, in older releases Tools/decrypt_ulog.py)";
/// Advice to a user who opens a packet capture.
const PCAP: &str = "open the packet capture with Wireshark";

/// Log formats of Rovelog, followed by other kinds of files. The first match is used. This list is
/// searched only if the file is not a log of a built-in format.
static SIGNS: LazyLock<Vec<Sign>> = LazyLock::new(|| {
    let ours = KNOWN_FORMATS.iter().map(|(format, what, magics)| ours(format, what, magics));
    ours.chain(OTHERS.iter().copied()).collect()
});

/// Kinds of files that are not log formats of Rovelog.
static OTHERS: &[Sign] = &[
    foreign("an encrypted ULog", DECRYPT, &[b"ULogEnc"]),
    foreign("the key file of an encrypted ULog", DECRYPT, &[b"ULogKey"]),
    foreign(
        "an MCAP file",
        "rovelog can write MCAP files, but not read them; inspect the file with mcap info FILE",
        &[b"\x89MCAP0\r\n"],
    ),
    foreign("gzip", "decompress the file first: gzip -dc < FILE > log", &[magic::GZIP]),
    foreign(
        "bzip2",
        "decompress the file first: bzip2 -dc < FILE > log",
        &[b"BZh1", b"BZh2", b"BZh3", b"BZh4", b"BZh5", b"BZh6", b"BZh7", b"BZh8", b"BZh9"],
    ),
    foreign("xz", "decompress the file first: xz -dc < FILE > log", &[magic::XZ]),
    foreign("zstd", "decompress the file first: zstd -dc < FILE > log", &[magic::ZSTD]),
    foreign("lz4", "decompress the file first: lz4 -dc < FILE > log", &[magic::LZ4]),
    foreign("a zip archive", "unpack the archive first", &[b"PK\x03\x04", b"PK\x05\x06"]),
    foreign("a 7-Zip archive", "unpack the archive first", &[b"7z\xbc\xaf\x27\x1c"]),
    foreign("HDF5", "read the file with h5dump", &[b"\x89HDF\r\n\x1a\n"]),
    foreign(
        "an SQLite database, as rosbag2 records it",
        "inspect the file with ros2 bag info FILE",
        &[b"SQLite format 3\0"],
    ),
    foreign(
        "a packet capture (pcap)",
        PCAP,
        &[b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\xc3\xd4", b"\x4d\x3c\xb2\xa1", b"\xa1\xb2\x3c\x4d"],
    ),
    foreign("a packet capture (pcapng)", PCAP, &[b"\x0a\x0d\x0d\x0a"]),
    foreign(
        "a DataFlash log, as ArduPilot writes it",
        "read the file with mavlogdump.py of pymavlink",
        &[b"\xa3\x95\x80"],
    ),
    foreign(
        "a RocketLogger calibration file",
        "open a recording of this logger; its values are already calibrated",
        &[b"%RLC"],
    ),
    foreign("a git-lfs pointer", "fetch the log itself: git lfs pull", &[b"version https://git-lfs"]),
    page(
        "a web page",
        "the download probably returned an error page, so download the log again",
        &[b"<!doctype", b"<html", b"<head", b"<body"],
    ),
    page(
        "XML",
        "if the file was downloaded, the server probably returned an error, so download the log again",
        &[b"<?xml"],
    ),
];

/// The entry for a text file. Text files have no magic number.
static TEXT: Sign = foreign("text", "check that this is the right file; text files are not logs", &[]);

/// Detects the kind of a file from its first bytes. 64 bytes are sufficient for an intact file.
/// With the first 64 KiB, logs with a damaged start are detected too.
///
/// ```
/// use rovelog::{Detection, detect};
///
/// assert!(matches!(detect(b"ULog\x01\x12\x35\x01"), Detection::Format(format) if format.id == "ulog"));
/// assert!(matches!(detect(b"PK\x03\x04"), Detection::Foreign(sign) if sign.what == "a zip archive"));
/// ```
pub fn detect(head: &[u8]) -> Detection {
    if head.is_empty() {
        return Detection::Empty;
    }
    let probes = || FORMATS.iter().map(|format| (format, format.probe(head)));
    if let Some((format, _)) = probes().find(|(_, probe)| *probe == Probe::Yes) {
        return Detection::Format(format);
    }
    if let Some(sign) = SIGNS.iter().find(|sign| sign.is_at(head)) {
        return if sign.format.is_some() { Detection::NotBuiltIn(sign) } else { Detection::Foreign(sign) };
    }
    let cut = probes().find_map(|(format, probe)| match probe {
        Probe::Prefix(bytes) => Some(Detection::Cut(format, bytes)),
        _ => None,
    });
    let recognized = || FORMATS.iter().find(|format| format.recognizes.is_some_and(|is_log| is_log(head)));
    cut.or_else(|| recognized().map(Detection::Format)).unwrap_or_else(|| {
        if head.iter().all(|byte| *byte == 0) {
            Detection::Zeros
        } else if is_text(&head[..head.len().min(PROBE_LEN)]) {
            Detection::Foreign(&TEXT)
        } else {
            Detection::Unknown
        }
    })
}

/// Returns whether more bytes of the file could change the result of detection.
pub(crate) fn is_undecided(head: &[u8]) -> bool {
    let detection = detect(head);
    matches!(detection, Detection::Unknown | Detection::Zeros) || detection == Detection::Foreign(&TEXT)
}

/// Returns the error for a file in which all bytes are zero.
pub(crate) fn only_zeros() -> Error {
    Error::new("rovelog", ErrorKind::NotThisFormat, Some(0), "the file contains only zero bytes").with_next(
        "look for another copy of the log; the recorder reserved the space, but never wrote the data",
    )
}

impl Sign {
    fn is_encrypted(&self) -> bool {
        self.next == DECRYPT
    }

    /// Returns whether a file that starts with `head` is of this kind.
    fn is_at(&self, head: &[u8]) -> bool {
        let head = if self.lenient { head.trim_ascii_start() } else { head };
        self.magics.iter().any(|magic| {
            head.get(..magic.len())
                .is_some_and(|start| start == *magic || (self.lenient && start.eq_ignore_ascii_case(magic)))
        })
    }
}

/// Returns whether the bytes are UTF-8 text without control characters. `head` may end within a
/// character.
fn is_text(head: &[u8]) -> bool {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    !text.is_empty() && text.chars().all(|c| !c.is_control() || c.is_ascii_whitespace())
}

/// Returns the id of the built-in format of a file that starts with `head`. For any other file,
/// returns an error that states its kind.
pub(crate) fn built_in(head: &[u8]) -> Result<&'static str> {
    let start = hex(&head[..head.len().min(4)], " ");
    let copy_again = "copy the log again from where it was recorded";
    let (kind, text, advice): (_, _, Cow<'static, str>) = match detect(head) {
        Detection::Format(format) => return Ok(format.id),
        Detection::Cut(format, bytes) => {
            let text = format!(
                "the file ends after {}, inside the signature of {}, so it contains no data",
                count(bytes, "byte"),
                format.name
            );
            (ErrorKind::Truncated, text, copy_again.into())
        }
        Detection::NotBuiltIn(sign) => {
            let text = format!("this is {}, but this build does not support the format", sign.what);
            (ErrorKind::Unsupported, text, sign.next.into())
        }
        Detection::Foreign(sign) => {
            let text = if sign.is_encrypted() {
                format!("the file is {}, which cannot be read directly", sign.what)
            } else {
                format!("the file is not a supported log, but {}", sign.what)
            };
            (ErrorKind::NotThisFormat, format!("{text} (first bytes {start})"), sign.next.into())
        }
        Detection::Zeros => {
            let first = count(head.len(), "byte");
            let text = format!("the log format is unknown, because the first {first} are zero");
            let advice = "if a log follows the zero bytes, use --input-format with one of the formats in \
                        `rovelog --version`";
            (ErrorKind::NotThisFormat, text, advice.into())
        }
        Detection::Empty => (ErrorKind::Truncated, "the file is empty".to_owned(), copy_again.into()),
        Detection::Unknown => {
            let names: Vec<_> = FORMATS.iter().map(|format| format.name).collect();
            let advice = format!(
                "use a log in one of the formats {}; if only its first bytes are damaged, use --input-format",
                names.join(", ")
            );
            let text = format!("the log format is unknown (first bytes {start})");
            (ErrorKind::NotThisFormat, text, advice.into())
        }
    };
    Err(Error::new("rovelog", kind, Some(0), text).with_next(advice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_entry_hides_a_later_one() {
        for (i, sign) in SIGNS.iter().enumerate() {
            for magic in sign.magics {
                let first = SIGNS.iter().position(|sign| sign.is_at(magic));
                assert_eq!(first, Some(i), "{} is taken for another", sign.what);
            }
        }
    }

    #[test]
    fn built_in_formats_are_never_reported_as_missing() {
        for sign in SIGNS.iter().filter(|sign| sign.format.is_some()) {
            let built_in = FORMATS.iter().find(|format| Some(format.id) == sign.format);
            for magic in sign.magics {
                match detect(magic) {
                    Detection::Format(format) => assert_eq!(Some(format), built_in),
                    Detection::NotBuiltIn(found) => assert!(built_in.is_none() && found == sign),
                    other => panic!("{}: {other:?}", sign.what),
                }
            }
        }
    }

    #[test]
    fn other_kinds_of_files_are_recognized() {
        for (head, what) in [
            (&b"  \n<!DOCTYPE HTML><title>404"[..], "a web page"),
            (b"<HTML>", "a web page"),
            (b"<?xml version=\"1.0\"?><Error>", "XML"),
            (b"version https://git-lfs.github.com/spec/v1\noid", "a git-lfs pointer"),
            (b"ULogEnc\x01", "an encrypted ULog"),
            (b"time,x\n1,2\n", "text"),
            // The head ends within a character that has two bytes.
            (b"gr\xc3\xbc\xc3", "text"),
        ] {
            assert!(matches!(detect(head), Detection::Foreign(sign) if sign.what == what), "{what}");
        }
    }

    #[test]
    fn the_error_for_zeros_states_their_number() {
        assert_eq!(detect(&[0; 64]), Detection::Zeros);
        assert!(is_undecided(&[0; 64]));
        let error = built_in(&[0; 64]).unwrap_err();
        assert!(error.to_string().contains("the first 64 bytes are zero"), "{error}");
    }

    #[test]
    fn files_cut_inside_their_signature_are_recognized() {
        for format in FORMATS {
            for signature in format.signatures {
                for len in 1..signature.0.len() {
                    assert_eq!(detect(&signature.0[..len]), Detection::Cut(format, len));
                }
            }
        }
        assert_eq!(detect(b"ULoX"), Detection::Foreign(&TEXT));
        assert_eq!(detect(b"\x01\x02\xff"), Detection::Unknown);
        assert_eq!(detect(b""), Detection::Empty);
    }
}
