//! Plans. A plan divides logs into splits, which are units of work of about the same size.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::sources::{LogFile, find};
use crate::{ScaleError, Wanted};

/// Version of the JSON form of a split.
const VERSION: u32 = 1;

/// A unit of work for a worker. It consists of several small logs, or of a part of a large log.
///
/// A worker needs only the JSON form of the split, and access to the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// Number of this split in the list of all splits.
    pub ordinal: u32,
    /// Logs that the split contains completely, or a part of a large log.
    pub parts: Vec<Part>,
    /// Selection of records to read from the logs.
    pub wanted: Wanted,
}

/// A log or a part of a log in a split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The log that is read.
    pub log: LogFile,
    /// Byte range of the log. The part consists of all blocks that start within this range. `None`
    /// selects the whole log.
    pub blocks: Option<Range<u64>>,
}

/// The JSON form of a split. The folder that all paths have in common is stored only once, because
/// the list of paths is the largest part of a split with many logs.
#[derive(Serialize, Deserialize)]
struct SplitForm {
    rovelog_split: u32,
    ordinal: u32,
    #[serde(flatten)]
    wanted: Wanted,
    base: String,
    parts: Vec<PartForm>,
}

/// The JSON form of a log in a split, which is an array. Its elements are the path without the
/// folder that all paths have in common, the size, and the time of the last change. The array of
/// `Blocks` also has the start and the end of a byte range.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum PartForm {
    Blocks(String, u64, i64, u64, u64),
    Whole(String, u64, i64),
}

impl Split {
    /// Returns the split in its JSON form.
    #[expect(clippy::missing_panics_doc, reason = "texts and numbers are JSON")]
    pub fn to_json(&self) -> String {
        let base = common_start(self.parts.iter().map(|part| part.log.uri.as_str()));
        let form = |part: &Part| {
            let LogFile { uri, size, changed_us } = &part.log;
            let rest = uri[base.len()..].to_owned();
            match &part.blocks {
                Some(blocks) => PartForm::Blocks(rest, *size, *changed_us, blocks.start, blocks.end),
                None => PartForm::Whole(rest, *size, *changed_us),
            }
        };
        let parts = self.parts.iter().map(form).collect();
        let (wanted, base) = (self.wanted.clone(), base.to_owned());
        let form = SplitForm { rovelog_split: VERSION, ordinal: self.ordinal, wanted, base, parts };
        serde_json::to_string(&form).expect("texts and numbers are JSON")
    }

    /// Parses a split from its JSON form.
    ///
    /// # Errors
    /// Returns an error if the text is not a split, or if a different version wrote it.
    pub fn from_json(text: &str) -> Result<Self, ScaleError> {
        let form: SplitForm =
            serde_json::from_str(text).map_err(|error| ScaleError::Split(error.to_string()))?;
        if form.rovelog_split != VERSION {
            let why =
                format!("it has version {}, but this program reads version {VERSION}", form.rovelog_split);
            return Err(ScaleError::Split(why));
        }
        let log = |rest: String, size, changed_us| {
            let uri = format!("{}{rest}", form.base);
            LogFile { uri, size, changed_us }
        };
        let part = |part| match part {
            PartForm::Blocks(rest, size, changed, start, end) => {
                Part { log: log(rest, size, changed), blocks: Some(start..end) }
            }
            PartForm::Whole(rest, size, changed) => Part { log: log(rest, size, changed), blocks: None },
        };
        let parts = form.parts.into_iter().map(part).collect();
        Ok(Self { ordinal: form.ordinal, parts, wanted: form.wanted })
    }

    /// Returns the approximate number of bytes to read. For a part of a log, only the bytes in its
    /// range are counted.
    pub fn bytes(&self) -> u64 {
        let of_part = |part: &Part| match &part.blocks {
            None => part.log.size,
            Some(blocks) => blocks.end.min(part.log.size).saturating_sub(blocks.start),
        };
        self.parts.iter().map(of_part).sum()
    }
}

/// Returns the longest start that all paths have in common and that ends with `/`.
fn common_start<'a>(mut paths: impl Iterator<Item = &'a str>) -> &'a str {
    let Some(first) = paths.next() else { return "" };
    let mut len = first.len();
    for path in paths {
        len = first.bytes().zip(path.bytes()).take(len).take_while(|(a, b)| a == b).count();
    }
    let start = first.as_bytes()[..len].iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    &first[..start]
}

/// Finds the logs of all sources and divides them into splits of about `target` bytes. No log is
/// opened, so dividing 100 000 logs takes as long as listing them.
///
/// The splits together contain each record of all logs exactly once, for any `target`.
///
/// # Errors
/// Returns an error if a source does not exist or has no logs.
pub fn plan<S: AsRef<str>>(sources: &[S], wanted: &Wanted, target: u64) -> Result<Vec<Split>, ScaleError> {
    Ok(divide(find(sources)?, wanted, target))
}

// Example for `divide`: three logs of 50 MB are followed by a log of 300 MB. If the target is 128
// MB, the splits are:
//
//     0          the first two logs
//     1, 2, 3    parts of 100 MB of the large log
//     4          the third log, which does not fit into split 0 and is not followed by a small log

/// Divides logs into units of work, which are called splits. Each split has about `target` bytes.
pub fn divide(logs: Vec<LogFile>, wanted: &Wanted, target: u64) -> Vec<Split> {
    let target = target.max(1);
    let mut packs: Vec<Vec<Part>> = Vec::new();
    let mut pack = Vec::new();
    let mut filled = 0_u64;
    for log in logs.into_iter().filter(|log| wanted.keeps_log(&log.uri)) {
        let count = if log.is_compressed() { 1 } else { log.size.div_ceil(target) };
        if count > 1 {
            packs.extend(parts(&log, count).map(|part| vec![part]));
            continue;
        }
        let cost = log.cost();
        if !pack.is_empty() && filled.saturating_add(cost) > target {
            packs.push(std::mem::take(&mut pack));
            filled = 0;
        }
        filled = filled.saturating_add(cost);
        pack.push(Part { log, blocks: None });
    }
    packs.extend(Some(pack).filter(|pack| !pack.is_empty()));
    let split = |(ordinal, parts)| Split { ordinal, parts, wanted: wanted.clone() };
    (0..).zip(packs).map(split).collect()
}

/// Divides a log into `count` byte ranges of the same size. The last range has no end. A log can
/// consist of several files, and blocks in the other files have offsets after the end of the first
/// file.
fn parts(log: &LogFile, count: u64) -> impl Iterator<Item = Part> {
    let at = move |number: u64, size: u64| {
        let product = u128::from(size) * u128::from(number) / u128::from(count);
        u64::try_from(product).unwrap_or(u64::MAX)
    };
    (0..count).map(move |number| {
        let end = if number + 1 == count { u64::MAX } else { at(number + 1, log.size) };
        Part { log: log.clone(), blocks: Some(at(number, log.size)..end) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(uri: &str, size: u64) -> LogFile {
        LogFile { uri: uri.to_owned(), size, changed_us: 1_700_000_000_000_000 }
    }

    #[test]
    fn small_logs_are_packed_and_large_logs_are_divided() {
        let logs = ["/d/a.ulg", "/d/b.ulg", "/d/c.ulg"].map(|uri| log(uri, 10)).to_vec();
        let splits = divide(logs, &Wanted::default(), 2 * log("/d/a.ulg", 10).cost());
        assert_eq!(splits.len(), 2, "three logs cost more than the target");
        let logs = vec![log("/d/a.ulg", 10), log("/d/c.ulg", 1000), log("/d/e.bag.gz", 1000)];
        let splits = divide(logs, &Wanted::default(), 400);
        let ranges: Vec<_> = splits.iter().map(|split| split.parts[0].blocks.clone()).collect();
        assert_eq!(ranges, [Some(0..333), Some(333..666), Some(666..u64::MAX), None, None]);
        assert_eq!(splits.iter().map(|split| split.ordinal).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert_eq!(splits.iter().map(Split::bytes).sum::<u64>(), 2010);
    }

    #[test]
    fn a_split_is_restored_from_json() {
        let logs = vec![log("/d/x/a.ulg", 10), log("/d/x/ab.ulg", 11), log("/d/y.ulg", 12)];
        let wanted = Wanted { topics: Some(vec!["battery_status".into()]), ..Wanted::default() };
        for split in divide(logs, &wanted, 1 << 20).into_iter().chain(divide(vec![log("c", 99)], &wanted, 10))
        {
            assert_eq!(Split::from_json(&split.to_json()).unwrap(), split);
        }
        let text = divide(vec![log("c", 9)], &wanted, 10)[0].to_json();
        let next = text.replace("\"rovelog_split\":1", "\"rovelog_split\":2");
        assert!(Split::from_json(&next).unwrap_err().to_string().contains("version 2"));
        assert!(Split::from_json("{}").is_err());
    }

    #[test]
    fn unselected_logs_are_not_planned() {
        let logs = vec![log("/d/a.ulg", 10), log("/d/b.ulg", 10)];
        let wanted = Wanted { logs: Some(vec!["/d/b.ulg".into()]), ..Wanted::default() };
        let splits = divide(logs, &wanted, 1);
        assert!(splits.iter().all(|split| split.parts[0].log.uri == "/d/b.ulg"));
        assert_eq!(splits.len(), 10);
    }
}
