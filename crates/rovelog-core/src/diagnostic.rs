//! Diagnostics of problems in a log, and the ledger of bytes that could not be read.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use crate::Limits;
use crate::internal::text::count;

/// Severity of a [`Diagnostic`]. The variants are ordered from harmless to serious.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// A notable fact. No data is missing.
    Note,
    /// Something was wrong in the log, and the reader corrected it.
    Repaired,
    /// The reader does not return some valid records. They are restored by recovering the log.
    LeftOut,
    /// Some bytes could not be read.
    DataLost,
}

impl Severity {
    /// Returns the name of the severity as used in JSON: `note`, `repaired`, `left_out` or
    /// `data_lost`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Repaired => "repaired",
            Self::LeftOut => "left_out",
            Self::DataLost => "data_lost",
        }
    }
}

/// A rule, which is a kind of diagnostic. Each format crate declares its rules in one table. The
/// codes and names of rules never change.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// Stable code of the rule, such as `E-ULOG-002`. The first letter is `E` if data is lost.
    /// Otherwise, it is `W`.
    pub code: &'static str,
    /// Stable name of the rule, such as `cut`.
    pub name: &'static str,
    /// Severity of all diagnostics of this kind.
    pub severity: Severity,
    /// Explanation of the rule in one line, without a period at the end.
    pub meaning: &'static str,
}

/// Declares the rules of a format as statics, and a static `ALL` that lists them by code. Each line
/// has the identifier of the static, the code, the name, the severity and the meaning.
///
/// ```
/// rovelog_core::rules! {
///     CUT "E-TOY-001" "cut" DataLost "a record that passes the end of the file"
/// }
/// assert_eq!((CUT.name, ALL.len()), ("cut", 1));
/// ```
#[macro_export]
macro_rules! rules {
    ($( $ident:ident $code:literal $name:literal $severity:ident $meaning:literal )*) => {
        $(
            #[doc = concat!("`", $name, "`: ", $meaning, ".")]
            pub static $ident: $crate::Rule = $crate::Rule {
                code: $code,
                name: $name,
                severity: $crate::Severity::$severity,
                meaning: $meaning,
            };
        )*

        /// All rules, ordered by code.
        pub static ALL: &[&$crate::Rule] = &[$( &$ident ),*];
    };
}

/// Formats the lost data on one line. For example:
/// `4 bytes in 1 place could not be read; 2 records counted by the log are missing from the file`.
impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let are = |n: u64| if n == 1 { "is" } else { "are" };
        let mut parts = Vec::new();
        if self.bytes > 0 {
            let (bytes, places) = (count(self.bytes, "byte"), count(self.losses, "place"));
            parts.push(format!("{bytes} in {places} could not be read"));
        } else if self.missing_records + self.left_out_records == 0 {
            // If the end of a file is missing, the lost data has no bytes in the file, so the
            // number of lost bytes is unknown.
            parts.push("part of the log could not be read".to_owned());
        }
        if self.missing_records > 0 {
            let (records, are) = (count(self.missing_records, "record"), are(self.missing_records));
            parts.push(format!("{records} counted by the log {are} missing from the file"));
        }
        if self.left_out_records > 0 {
            let (records, are) = (count(self.left_out_records, "record"), are(self.left_out_records));
            parts.push(format!("{records} {are} left out; `rovelog recover` keeps them"));
        }
        f.write_str(&parts.join("; "))
    }
}

/// A problem or notable fact in a log, with the range of bytes that it concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Kind of the diagnostic, with its code and severity.
    pub rule: &'static Rule,
    /// Range of bytes in the file that the diagnostic concerns.
    pub range: Range<u64>,
    /// One-line description of the problem or fact.
    pub message: String,
}

/// The data that a reader could not read. The totals are exact. The list of ranges is limited: at
/// most a thousand ranges are stored for each kind of diagnostic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Number of bytes that could not be read.
    pub bytes: u64,
    /// Number of byte ranges that could not be read. A range is empty if records are missing and
    /// none of their bytes is in the file.
    pub losses: u64,
    /// Ranges of lost bytes in file order. Adjacent ranges are joined.
    pub ranges: Vec<Range<u64>>,
    /// Number of records that are missing according to record counts in the log. The number is 0 if
    /// the log has no record counts.
    pub missing_records: u64,
    /// Number of valid records that the reader does not return. They are restored by recovering the
    /// log.
    pub left_out_records: u64,
}

impl Ledger {
    /// Returns whether no data is lost and no record is missing or omitted.
    pub fn is_empty(&self) -> bool {
        self.losses == 0 && self.missing_records == 0 && self.left_out_records == 0
    }
}

/// List of the diagnostics of a log in file order. The first thousand diagnostics of each kind are
/// stored. Further diagnostics are only counted.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    /// Stored diagnostics, sorted by the start of their range.
    list: Vec<Diagnostic>,
    /// Number of diagnostics by code, including those that are not stored.
    counts: BTreeMap<&'static str, u64>,
    /// Lost bytes from all diagnostics with the severity `DataLost`, and numbers of missing
    /// records.
    ledger: Ledger,
    /// Maximum number of stored diagnostics with the same code.
    max_per_kind: usize,
    /// Number of bytes of a remote file that were not read.
    unread: u64,
}

impl Diagnostics {
    /// Creates an empty list. `limits` contains the maximum number of stored diagnostics of each
    /// kind.
    pub fn new(limits: &Limits) -> Self {
        Self { max_per_kind: limits.diagnostics_per_kind, ..Self::default() }
    }

    /// Adds a diagnostic for `range`. `message` is called only if the diagnostic is stored.
    pub fn push(&mut self, rule: &'static Rule, range: Range<u64>, message: impl FnOnce() -> String) {
        let count = self.counts.entry(rule.code).or_default();
        *count += 1;
        let is_stored = *count <= self.max_per_kind as u64;
        if rule.severity == Severity::DataLost {
            self.ledger.bytes += range.end - range.start;
            self.ledger.losses += 1;
            match self.ledger.ranges.last_mut() {
                // Adjacent losses are joined even if the maximum number of ranges is reached, so
                // that a long damaged part stays a single range.
                Some(last) if last.end == range.start => last.end = range.end,
                _ if is_stored => {
                    // Lost ranges are usually added in file order. The missing end of a compressed
                    // file is an exception, because it is reported before the records are read.
                    let at = self.ledger.ranges.partition_point(|known| known.start <= range.start);
                    self.ledger.ranges.insert(at, range.clone());
                }
                _ => {}
            }
        }
        if is_stored {
            let at = self.list.partition_point(|d| d.range.start <= range.start);
            self.list.insert(at, Diagnostic { rule, range, message: message() });
        }
    }

    /// Sets the number of bytes of a remote file that were not read.
    pub(crate) fn set_unread(&mut self, bytes: u64) {
        self.unread = bytes;
    }

    /// Returns the number of bytes of a remote file that were not read. They do not cause
    /// diagnostics.
    pub fn unread(&self) -> u64 {
        self.unread
    }

    /// Adds `records` to the number of records that are missing according to record counts in the
    /// log.
    pub fn count_missing(&mut self, records: u64) {
        self.ledger.missing_records += records;
    }

    /// Adds `records` to the number of valid records that the reader does not return.
    pub fn count_left_out(&mut self, records: u64) {
        self.ledger.left_out_records += records;
    }

    /// Adds the diagnostics of another file of the same log. Offset 0 of this file is offset `base`
    /// of the log. `name` is inserted at the start of each message.
    pub fn append(&mut self, name: &str, base: u64, other: &Self) {
        for (code, count) in &other.counts {
            *self.counts.entry(code).or_default() += count;
        }
        let shift = |range: &Range<u64>| range.start + base..range.end + base;
        let lost = &other.ledger;
        self.ledger.bytes += lost.bytes;
        self.ledger.losses += lost.losses;
        // Files are appended in order, so the lost ranges of this file follow all earlier ranges.
        self.ledger.ranges.extend(lost.ranges.iter().map(shift));
        self.ledger.missing_records += lost.missing_records;
        self.ledger.left_out_records += lost.left_out_records;
        self.list.extend(other.list.iter().map(|diagnostic| Diagnostic {
            rule: diagnostic.rule,
            range: shift(&diagnostic.range),
            message: format!("{name}: {}", diagnostic.message),
        }));
    }

    /// Returns the stored diagnostics in file order.
    pub fn list(&self) -> &[Diagnostic] {
        &self.list
    }

    /// Returns the data that could not be read.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Returns the number of diagnostics for each code, including those that were not stored.
    pub fn counts(&self) -> &BTreeMap<&'static str, u64> {
        &self.counts
    }

    /// Returns the number of diagnostics, including those that were not stored.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static LOST: Rule = Rule { code: "E-T-1", name: "lost", severity: Severity::DataLost, meaning: "lost" };
    static NOTE: Rule = Rule { code: "W-T-1", name: "note", severity: Severity::Note, meaning: "note" };

    #[test]
    fn totals_are_exact_above_the_limit() {
        let limits = Limits { diagnostics_per_kind: 2, ..Limits::default() };
        let mut diagnostics = Diagnostics::new(&limits);
        for i in 0..5 {
            diagnostics.push(&LOST, i * 10..i * 10 + 4, || i.to_string());
        }
        diagnostics.push(&NOTE, 3..4, String::new);
        assert_eq!(diagnostics.list().len(), 3);
        assert_eq!(diagnostics.list()[1].rule, &NOTE);
        assert_eq!(diagnostics.ledger().bytes, 20);
        assert_eq!(diagnostics.ledger().losses, 5);
        assert_eq!(diagnostics.ledger().ranges, [0..4, 10..14]);
        assert_eq!(diagnostics.total(), 6);
    }

    #[test]
    fn adjacent_losses_are_one_range() {
        let mut diagnostics = Diagnostics::new(&Limits::default());
        diagnostics.push(&LOST, 4..6, String::new);
        diagnostics.push(&LOST, 6..9, String::new);
        assert_eq!(diagnostics.ledger().ranges, std::slice::from_ref(&(4..9)));
        assert_eq!(diagnostics.ledger().losses, 2);
    }

    #[test]
    fn the_ledger_counts_records_without_lost_bytes() {
        let mut diagnostics = Diagnostics::new(&Limits::default());
        assert!(diagnostics.ledger().is_empty());
        diagnostics.count_left_out(3);
        assert!(!diagnostics.ledger().is_empty());
        let mut diagnostics = Diagnostics::new(&Limits::default());
        diagnostics.push(&LOST, 9..9, String::new);
        diagnostics.count_missing(2);
        let ledger = diagnostics.ledger();
        assert_eq!((ledger.bytes, ledger.losses, ledger.missing_records), (0, 1, 2));
        assert_eq!(ledger.to_string(), "2 records counted by the log are missing from the file");
        assert!(!ledger.is_empty());
    }

    #[test]
    fn diagnostics_of_another_file_are_shifted_by_its_offset() {
        let mut all = Diagnostics::new(&Limits::default());
        all.push(&LOST, 4..6, String::new);
        let mut other = Diagnostics::new(&Limits::default());
        other.push(&LOST, 1..3, || "cut".to_owned());
        other.count_missing(5);
        all.append("part", 10, &other);
        assert_eq!(all.list()[1].range, 11..13);
        assert_eq!(all.list()[1].message, "part: cut");
        assert_eq!((all.total(), all.ledger().bytes, all.ledger().missing_records), (2, 4, 5));
        assert_eq!(all.ledger().ranges, [4..6, 11..13]);
    }
}
