//! Parses the version line, for example `#ROSRECORD V1.2`.

use rovelog_core::internal::scan::{NeedMore, Window};

use crate::error::BagError;

/// Maximum size in bytes of a version line.
pub(crate) const LINE_MAX: usize = 64;

/// First bytes of every version line.
pub(crate) const PREFIX: &[u8; 4] = b"#ROS";

/// Versions of the bag format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Version {
    /// Version in which records are stored in chunks.
    V2_0,
    /// Version in which each record has a header of named fields.
    V1_2,
    /// Version in which three lines of text precede each message.
    V1_1,
    /// Version with a table of topics at the start, in which one line of text precedes each
    /// message.
    V1_0,
    /// Version with three lines of text at the start and messages of one topic. Such a bag has no
    /// version line, so this version is read only if the caller requests it.
    V0,
}

impl Version {
    /// Returns the version as users write it, for example `1.2`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V2_0 => "2.0",
            Self::V1_2 => "1.2",
            Self::V1_1 => "1.1",
            Self::V1_0 => "1.0",
            Self::V0 => "0",
        }
    }
}

/// A parsed version line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VersionLine {
    pub(crate) version: Version,
    /// Version line without its line end.
    pub(crate) text: String,
    /// Size in bytes of the version line, including its line end.
    pub(crate) len: u64,
    /// True if the version line ends in CR LF.
    pub(crate) crlf: bool,
    /// True if the version line is missing, or is not at the start of the file.
    pub(crate) is_damaged: bool,
}

/// Parses the version line at the start of `head`. `head` has the first 64 bytes of the file, or
/// all bytes of a shorter file.
pub(crate) fn parse(head: &[u8]) -> Result<VersionLine, BagError> {
    if !head.starts_with(PREFIX) {
        let cut = !head.is_empty() && PREFIX.starts_with(head);
        return Err(if cut { BagError::VersionLineCut { len: head.len() as u64 } } else { BagError::NotBag });
    }
    let Some(end) = head.iter().take(LINE_MAX).position(|byte| *byte == b'\n') else {
        let cut = head.len() < LINE_MAX;
        return Err(if cut {
            BagError::VersionLineCut { len: head.len() as u64 }
        } else {
            BagError::BadVersionLine
        });
    };
    let line = head[..end].trim_ascii_end();
    let text = std::str::from_utf8(line).map_err(|_| BagError::BadVersionLine)?;
    let (word, number) = text.split_once(" V").ok_or(BagError::BadVersionLine)?;
    let (major, minor) = number.split_once('.').ok_or(BagError::BadVersionLine)?;
    let number = |digits: &str| digits.parse::<u32>().map_err(|_| BagError::BadVersionLine);
    if !word[1..].chars().all(|c| c.is_ascii_alphanumeric()) {
        return Err(BagError::BadVersionLine);
    }
    let version = match (number(major)?, number(minor)?) {
        (2, 0) => Version::V2_0,
        (1, 2) => Version::V1_2,
        (1, 1) => Version::V1_1,
        (1, 0) => Version::V1_0,
        (major, minor) => return Err(BagError::OtherVersion { version: format!("{major}.{minor}") }),
    };
    let (text, len, crlf) = (text.to_owned(), end as u64 + 1, line.len() < end);
    Ok(VersionLine { version, text, len, crlf, is_damaged: false })
}

/// Returns the line of this version at offset `at`. Such a line starts another section, that is,
/// another bag in the file.
pub(crate) fn at(window: Window<'_>, at: u64, version: Version) -> Result<Option<VersionLine>, NeedMore> {
    if window.upto(at, PREFIX.len() as u64)? != PREFIX {
        return Ok(None);
    }
    let head = window.upto(at, LINE_MAX as u64)?;
    Ok(parse(head).ok().filter(|line| line.version == version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_lines_are_parsed() {
        let line = parse(b"#ROSRECORD V1.2\n....").unwrap();
        assert_eq!((line.version, line.len, line.crlf), (Version::V1_2, 16, false));
        assert!(parse(b"#ROSRECORD V1.2\r\n").unwrap().crlf);
        assert_eq!(parse(b"#ROSBAG V2.0\n").unwrap().version, Version::V2_0);
        assert_eq!(parse(b"#ROSLOG V1.1\n").unwrap().version, Version::V1_1);
        assert_eq!(parse(b"#ROSLOG V1.0\n").unwrap().version, Version::V1_0);
        for (head, version) in [(&b"#ROSBAG V2.1\n"[..], "2.1"), (b"#ROSBAG V1.3\n", "1.3")] {
            assert!(matches!(parse(head), Err(BagError::OtherVersion { version: v }) if v == version));
        }
        assert!(matches!(parse(b"#ROSREC"), Err(BagError::VersionLineCut { len: 7 })));
        assert!(matches!(parse(&[b'#'; 64]), Err(BagError::NotBag)));
        assert!(matches!(parse(b"#ROSRECORD x\n"), Err(BagError::BadVersionLine)));
        assert!(matches!(parse(b"ULog"), Err(BagError::NotBag)));
    }
}
