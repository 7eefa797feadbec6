//! Breaches of the specification that cost nothing to read past: noticed on the way, said once at
//! the end.

use std::collections::HashSet;
use std::ops::Range;

use rovelog_core::{Diagnostics, Rule};

use crate::definitions::Definitions;
use crate::diagnostics as rules;
use crate::schema::{Basic, Key};
use crate::wire::Info;

/// How often something occurred, and the first time.
#[derive(Debug, Default)]
struct Tally {
    count: u64,
    first: Option<(Range<u64>, String)>,
}

impl Tally {
    fn add(&mut self, range: Range<u64>, what: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.is_none() {
            self.first = Some((range, what()));
        }
    }

    /// Pushes one note, if there is something to note; `message` gets the count and the first one.
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

/// What was noticed of information messages.
#[derive(Debug, Default)]
pub(crate) struct Breaches {
    infos: HashSet<Box<str>>,
    repeated: Tally,
    lengths: Tally,
    /// Types of values that are no basic types.
    custom: HashSet<Box<str>>,
}

impl Breaches {
    /// "An information message with a certain key must occur at most once in the entire log."
    pub(crate) fn info(&mut self, range: Range<u64>, key: Key<'_>, part: Info<'_>) {
        if self.infos.contains(key.name) {
            self.repeated.add(range.clone(), || key.name.to_owned());
        } else {
            self.infos.insert(key.name.into());
        }
        self.value(range, key, part);
    }

    /// Starts another log in the same file.
    pub(crate) fn restart(&mut self) {
        self.infos.clear();
    }

    /// "`value` contains the data as described by `key`."
    pub(crate) fn value(&mut self, range: Range<u64>, key: Key<'_>, part: Info<'_>) {
        let Some(ty) = key.type_name() else { return };
        match ty.fits_value(part.value.len()) {
            Some(false) => self.lengths.add(range, || format!("{ty} {}", key.name)),
            None if Basic::parse(ty.base).is_none() && !self.custom.contains(ty.base) => {
                self.custom.insert(ty.base.into());
            }
            Some(true) | None => {}
        }
    }

    /// Notes everything at the end of the log, and lays out the formats that are types of values.
    pub(crate) fn finish(&mut self, definitions: &mut Definitions, notes: &mut Diagnostics) {
        self.repeated.note(&rules::INFO_REPEATED, notes, |count, first| {
            let messages = if count == 1 { "message" } else { "messages" };
            format!("{count} info {messages} with the key of an earlier one, {first} first: the last value is used")
        });
        self.lengths.note(&rules::VALUE_LENGTH, notes, |count, first| {
            let values = if count == 1 { "value" } else { "values" };
            format!(
                "{count} {values} longer or shorter than the declared type, {first} first: all bytes are read"
            )
        });
        self.custom.drain().for_each(|name| definitions.prepare(&name));
    }
}
