//! Deviations from the specification that do not affect reading. They are counted during the scan,
//! and each kind is reported once at the end.

use std::collections::HashSet;
use std::ops::Range;

use rovelog_core::{Diagnostics, Rule};

use crate::definitions::Definitions;
use crate::diagnostics as rules;
use crate::schema::{Basic, Key};
use crate::wire::Info;

/// Counts the occurrences of one kind of deviation.
#[derive(Debug, Default)]
struct Tally {
    count: u64,
    /// Byte range and description of the deviation's first occurrence.
    first: Option<(Range<u64>, String)>,
}

impl Tally {
    fn add(&mut self, range: Range<u64>, what: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.is_none() {
            self.first = Some((range, what()));
        }
    }

    /// Adds one diagnostic to `notes` if the deviation occurred. `message` is called with the
    /// number of occurrences and the description of the first occurrence.
    fn note(
        &mut self,
        rule: &'static Rule,
        notes: &mut Diagnostics,
        message: impl FnOnce(u64, &str) -> String,
    ) {
        let Self { count, first } = std::mem::take(self);
        if let Some((range, what)) = first {
            notes.push(rule, range, || message(count, &what));
        }
    }
}

/// Deviations found in information messages so far.
#[derive(Debug, Default)]
pub(crate) struct Deviations {
    /// Names that occurred in information messages so far.
    infos: HashSet<Box<str>>,
    /// Names that occurred in multi information messages so far.
    multi_infos: HashSet<Box<str>>,
    /// Information messages whose name occurred before.
    repeated: Tally,
    /// Information values whose size contradicts the type in their key.
    lengths: Tally,
    /// Names of the value types that are not basic types.
    custom: HashSet<Box<str>>,
}

impl Deviations {
    /// Checks an information message. The specification says: "An information message with a
    /// certain key must occur at most once in the entire log."
    pub(crate) fn info(&mut self, range: Range<u64>, key: Key<'_>, part: Info<'_>) {
        if self.infos.contains(key.name) {
            self.repeated.add(range.clone(), || key.name.to_owned());
        } else {
            self.infos.insert(key.name.into());
        }
        self.value(range, key, part);
    }

    /// Checks a multi information message. Returns `true` if it is the first message with its name.
    pub(crate) fn multi_info(&mut self, range: Range<u64>, key: Key<'_>, part: Info<'_>) -> bool {
        self.value(range, key, part);
        !self.multi_infos.contains(key.name) && self.multi_infos.insert(key.name.into())
    }

    /// Starts another log in the same file. The information messages of this log may repeat the
    /// keys of the previous log.
    pub(crate) fn restart(&mut self) {
        self.infos.clear();
        self.multi_infos.clear();
    }

    /// Checks that the size of an information value matches the type in its key. The specification
    /// says: "`value` contains the data as described by `key`."
    fn value(&mut self, range: Range<u64>, key: Key<'_>, part: Info<'_>) {
        let Some(ty) = key.type_name() else { return };
        match ty.fits_value(part.value.len()) {
            Some(false) => self.lengths.add(range, || format!("{ty} {}", key.name)),
            None if Basic::parse(ty.base).is_none() && !self.custom.contains(ty.base) => {
                self.custom.insert(ty.base.into());
            }
            Some(true) | None => {}
        }
    }

    /// Reports the deviations at the end of the log. Also computes the layouts of formats that are
    /// used as types of information values.
    ///
    /// An information value may precede the format of its type, so the layouts are computed when
    /// all definitions are known.
    pub(crate) fn finish(&mut self, definitions: &mut Definitions, notes: &mut Diagnostics) {
        self.repeated.note(&rules::INFO_REPEATED, notes, |count, first| {
            let messages = if count == 1 { "message repeats" } else { "messages repeat" };
            format!(
                "{count} info {messages} the key of an earlier one, first {first}; the last value is used"
            )
        });
        self.lengths.note(&rules::VALUE_LENGTH, notes, |count, first| {
            let values = if count == 1 { "value does" } else { "values do" };
            format!(
                "{count} {values} not have the length of the declared type, first {first}; all bytes are read"
            )
        });
        self.custom.drain().for_each(|name| definitions.prepare(&name));
    }
}
