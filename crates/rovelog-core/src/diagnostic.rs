//! Diagnostics: what a reader noticed in the bytes, and the ledger of what it could not read.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use crate::Limits;
use crate::text::count;

/// How much a [`Diagnostic`] matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing; nothing is missing.
    Note,
    /// Something was wrong and could be put right.
    Repaired,
    /// Valid records are left out; recovering the log keeps them.
    LeftOut,
    /// Bytes could not be read.
    DataLost,
}

impl Severity {
    /// Returns the word used in JSON: `note`, `repaired`, `left_out` or `data_lost`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Repaired => "repaired",
            Self::LeftOut => "left_out",
            Self::DataLost => "data_lost",
        }
    }
}

/// A kind of diagnostic. Each format crate lists its rules in one table; they are stable.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// The stable code: `E-ULOG-002`. `E` where data is lost, `W` otherwise.
    pub code: &'static str,
    /// The stable name: `cut`.
    pub name: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What it means, one line without a full stop.
    pub meaning: &'static str,
}

/// Declares the rules of a format, one after the other: name of the static, code, name, severity,
/// meaning. `ALL` lists them by code.
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

        /// All of them, by code.
        pub static ALL: &[&$crate::Rule] = &[$( &$ident ),*];
    };
}

/// Says in one line what is lost: "4 bytes in 1 place could not be read; 2 records are missing".
impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let are = |n: u64| if n == 1 { "is" } else { "are" };
        let mut said = Vec::new();
        if self.bytes > 0 {
            let (bytes, places) = (count(self.bytes, "byte"), count(self.losses, "place"));
            said.push(format!("{bytes} in {places} could not be read"));
        } else if self.missing_records + self.left_out_records == 0 {
            // What is missing behind the end of a file has no bytes in it.
            said.push("part of the log could not be read".to_owned());
        }
        if self.missing_records > 0 {
            let (records, are) = (count(self.missing_records, "record"), are(self.missing_records));
            said.push(format!("{records} counted by the log {are} missing from the file"));
        }
        if self.left_out_records > 0 {
            let (records, are) = (count(self.left_out_records, "record"), are(self.left_out_records));
            said.push(format!("{records} {are} left out; `rovelog recover` keeps them"));
        }
        f.write_str(&said.join("; "))
    }
}

/// One thing noticed in a log, with the bytes it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The kind.
    pub rule: &'static Rule,
    /// The bytes, from the start of the file.
    pub range: Range<u64>,
    /// The particulars, one line.
    pub message: String,
}

/// The data that a reader could not read: exact totals, and the ranges up to a limit per kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Bytes lost.
    pub bytes: u64,
    /// Losses, each one range of bytes. The range is empty if records are missing and no byte is
    /// left of them.
    pub losses: u64,
    /// The ranges in file order; neighbours joined.
    pub ranges: Vec<Range<u64>>,
    /// Records that the log counts and that are not in the file, as far as the log counts any.
    pub missing_records: u64,
    /// Valid records that reading leaves out and recovering keeps.
    pub left_out_records: u64,
}

impl Ledger {
    /// Returns whether nothing is lost, missing or left out.
    pub fn is_empty(&self) -> bool {
        self.losses == 0 && self.missing_records == 0 && self.left_out_records == 0
    }
}

/// Diagnostics in file order, the first thousand of each kind one by one, the others counted.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    counts: BTreeMap<&'static str, u64>,
    ledger: Ledger,
    per_kind: usize,
    unread: u64,
}

impl Diagnostics {
    /// Returns an empty list that keeps as many of a kind as `limits` says.
    pub fn new(limits: &Limits) -> Self {
        Self { per_kind: limits.diagnostics_per_kind, ..Self::default() }
    }

    /// Takes note of `range`; `message` is only called for a diagnostic that is kept.
    pub fn push(&mut self, rule: &'static Rule, range: Range<u64>, message: impl FnOnce() -> String) {
        let count = self.counts.entry(rule.code).or_default();
        *count += 1;
        let keep = *count <= self.per_kind as u64;
        if rule.severity == Severity::DataLost {
            self.ledger.bytes += range.end - range.start;
            self.ledger.losses += 1;
            match self.ledger.ranges.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ if keep => {
                    // The end of a compressed file is known before what is in it.
                    let at = self.ledger.ranges.partition_point(|known| known.start <= range.start);
                    self.ledger.ranges.insert(at, range.clone());
                }
                _ => {}
            }
        }
        if keep {
            let at = self.list.partition_point(|d| d.range.start <= range.start);
            self.list.insert(at, Diagnostic { rule, range, message: message() });
        }
    }

    /// Sets how many bytes of the file are not read.
    pub(crate) fn set_unread(&mut self, bytes: u64) {
        self.unread = bytes;
    }

    /// Returns how many bytes of the file are not read, so that nothing is said about them.
    pub fn unread(&self) -> u64 {
        self.unread
    }

    /// Counts records that the log counts and that are not in the file.
    pub fn count_missing(&mut self, records: u64) {
        self.ledger.missing_records += records;
    }

    /// Counts valid records that are left out.
    pub fn count_left_out(&mut self, records: u64) {
        self.ledger.left_out_records += records;
    }

    /// Adds the diagnostics of a further file of the log, which starts at byte `base`. `name` says
    /// which one in messages.
    pub fn append(&mut self, name: &str, base: u64, other: &Self) {
        for (code, count) in &other.counts {
            *self.counts.entry(code).or_default() += count;
        }
        let shift = |range: &Range<u64>| range.start + base..range.end + base;
        let lost = &other.ledger;
        self.ledger.bytes += lost.bytes;
        self.ledger.losses += lost.losses;
        self.ledger.ranges.extend(lost.ranges.iter().map(shift));
        self.ledger.missing_records += lost.missing_records;
        self.ledger.left_out_records += lost.left_out_records;
        self.list.extend(other.list.iter().map(|noticed| Diagnostic {
            rule: noticed.rule,
            range: shift(&noticed.range),
            message: format!("{name}: {}", noticed.message),
        }));
    }

    /// Returns the diagnostics that were kept, in file order.
    pub fn list(&self) -> &[Diagnostic] {
        &self.list
    }

    /// Returns the bytes lost.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Returns how many there were of each code, those not kept included.
    pub fn counts(&self) -> &BTreeMap<&'static str, u64> {
        &self.counts
    }

    /// Returns how many there were in all.
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
    fn totals_stay_exact_past_the_limit() {
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
    fn neighbouring_losses_are_one_range() {
        let mut diagnostics = Diagnostics::new(&Limits::default());
        diagnostics.push(&LOST, 4..6, String::new);
        diagnostics.push(&LOST, 6..9, String::new);
        assert_eq!(diagnostics.ledger().ranges, std::slice::from_ref(&(4..9)));
        assert_eq!(diagnostics.ledger().losses, 2);
    }

    #[test]
    fn what_is_missing_or_left_out_is_in_the_ledger_without_a_byte() {
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
    fn diagnostics_of_a_further_file_lie_behind_those_of_the_first() {
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
