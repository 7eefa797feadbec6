//! How long a record is, without decoding it.

use std::sync::Arc;

use super::scalar::scalar_value;
use super::types::{Element, Layout, Len, Slot, Step};
use super::value::length;
use crate::wire::U32Le;

/// Steps that are copied into the layout around them; larger layouts are stepped into.
const INLINE: usize = 256;

/// How the length of a record fits its layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// Every byte is part of a field.
    Exact,
    /// So many bytes are left over.
    Surplus(u64),
    /// The record ends inside a field that starts at this byte of it.
    Short(u64),
}

impl Layout {
    /// Measures a record: every byte of it must be part of a field.
    #[inline]
    pub fn fit(&self, record: &[u8]) -> Fit {
        let len = record.len() as u64;
        if self.is_fixed && len == self.min_size {
            return Fit::Exact;
        }
        match self.end(record, 0) {
            Ok(end) if end == len => Fit::Exact,
            Ok(end) => Fit::Surplus(len - end),
            Err(at) => Fit::Short(at),
        }
    }

    /// Returns whether a record has the bytes of all fields, and, unless it may have a surplus,
    /// none behind them. A decoder of such a record runs against no end, and its lists have not
    /// more elements than the record has space for.
    pub fn decodes(&self, record: &[u8], may_have_surplus: bool) -> bool {
        let fits = match self.fit(record) {
            Fit::Exact => true,
            Fit::Surplus(_) => may_have_surplus,
            Fit::Short(_) => false,
        };
        fits && (!self.is_hollow || self.value(record).is_ok())
    }

    pub(super) fn take(&mut self, slot: Slot) {
        let (element, len, size) = (&slot.element, slot.len, slot.element.size());
        match len {
            // Its count is known only to who reads the fields before it.
            Len::Field(_) => self.is_linked = true,
            Len::One => match (element, size) {
                (_, Some(size)) => self.pass(size),
                (Element::Struct(layout), None)
                    if self.steps.len() + layout.steps.len() < INLINE && !layout.is_linked =>
                {
                    for step in &layout.steps {
                        match step {
                            Step::Pass(bytes) => self.pass(*bytes),
                            step => self.steps.push(step.clone()),
                        }
                    }
                    self.pass(layout.tail);
                }
                (Element::Struct(layout), None) => self.steps.push(Step::Each(Some(1), Arc::clone(layout))),
                _ => self.steps.push(Step::Counted(1)),
            },
            Len::Fixed(len) => match (element, size) {
                (_, Some(size)) => self.pass(size.saturating_mul(len.into())),
                (_, None) if len == 0 => {}
                (Element::Struct(layout), None) => self.steps.push(Step::Each(Some(len), Arc::clone(layout))),
                _ => self.steps.push(Step::Texts(Some(len))),
            },
            Len::Counted => match (element, size) {
                (_, Some(size)) => self.steps.push(Step::Counted(size)),
                (Element::Struct(layout), None) => self.steps.push(Step::Each(None, Arc::clone(layout))),
                _ => self.steps.push(Step::Texts(None)),
            },
        }
        let (min_size, values, is_fixed) = match len {
            Len::One => (element.min_size(), element.values(), size.is_some()),
            Len::Fixed(len) => {
                let n = u64::from(len);
                // Elements with bytes are as many as the record has space for; others count here.
                let values = match element {
                    Element::Struct(_) => element.values().saturating_mul(n),
                    _ => 0,
                };
                (element.min_size().saturating_mul(n), values.saturating_add(1), size.is_some() || len == 0)
            }
            Len::Counted => (4, 1, false),
            Len::Field(_) => (0, 1, false),
        };
        if let Element::Struct(layout) = element {
            let is_list = matches!(len, Len::Counted | Len::Field(_));
            self.is_hollow |= layout.is_hollow || (is_list && element.min_size() == 0);
        }
        self.min_size = self.min_size.saturating_add(min_size);
        self.values = self.values.saturating_add(values);
        self.is_fixed &= is_fixed;
        self.slots.push(slot);
    }

    pub(super) fn pass(&mut self, bytes: u64) {
        match self.steps.last_mut() {
            Some(Step::Pass(known)) => *known = known.saturating_add(bytes),
            _ if bytes > 0 => self.steps.push(Step::Pass(bytes)),
            _ => {}
        }
    }

    /// Returns where the value that starts at `at` ends; the offset of what is cut where the record
    /// ends before.
    fn end(&self, record: &[u8], mut at: u64) -> Result<u64, u64> {
        if self.is_linked {
            return self.linked_end(record, at);
        }
        let len = record.len() as u64;
        for step in &self.steps {
            match step {
                Step::Pass(bytes) => at = pass(at, *bytes, len)?,
                Step::Counted(size) => {
                    let (count, behind) = count(record, at)?;
                    at = pass(behind, u64::from(count).saturating_mul(*size), len).map_err(|_| at)?;
                }
                Step::Texts(fixed) => {
                    let (texts, behind) = counted(*fixed, record, at)?;
                    at = texts_end(record, behind, texts.into())?;
                }
                Step::Each(fixed, layout) => {
                    let (values, behind) = counted(*fixed, record, at)?;
                    at = behind;
                    for _ in 0..values {
                        at = pass(layout.end(record, at)?, layout.tail, len)?;
                    }
                }
            }
        }
        Ok(at)
    }

    /// Returns the same for layouts with lengths in other fields.
    #[cold]
    fn linked_end(&self, record: &[u8], mut at: u64) -> Result<u64, u64> {
        let len = record.len() as u64;
        // Grows with the bytes met: a layout may have more fields than the record has bytes.
        let mut integers: Vec<u64> = Vec::new();
        for slot in &self.slots {
            at = pass(at, slot.padding as u64, len)?;
            integers.push(slot.integer(record, at));
            let (n, behind) = match slot.len {
                Len::One => (1, at),
                Len::Fixed(n) => (n.into(), at),
                Len::Counted => count(record, at).map(|(n, behind)| (n.into(), behind))?,
                Len::Field(field) => (integers.get(field).copied().unwrap_or(0), at),
            };
            at = match (&slot.element, slot.element.size()) {
                (_, Some(size)) => pass(behind, n.saturating_mul(size), len).map_err(|_| at)?,
                (Element::Struct(layout), None) => {
                    let mut end = behind;
                    for _ in 0..n {
                        end = pass(layout.end(record, end)?, layout.tail, len)?;
                    }
                    end
                }
                (_, None) => texts_end(record, behind, n)?,
            };
        }
        Ok(at)
    }
}

impl Slot {
    /// Returns what the field at `at` says as the length of others; more than there can be where it
    /// is negative, 0 where it is none or cut.
    pub(crate) fn integer(&self, record: &[u8], at: u64) -> u64 {
        let (Element::Scalar(scalar), Len::One) = (&self.element, self.len) else { return 0 };
        let bytes = usize::try_from(at).ok().and_then(|at| record.get(at..)?.get(..scalar.size()));
        match bytes.map(|bytes| scalar_value(*scalar, bytes)) {
            Some(value) => length(&value),
            None => 0,
        }
    }
}

fn pass(at: u64, bytes: u64, len: u64) -> Result<u64, u64> {
    if bytes > len - at { Err(at) } else { Ok(at + bytes) }
}

/// Returns the count at `at`, and where the elements begin.
#[inline]
fn count(record: &[u8], at: u64) -> Result<(u32, u64), u64> {
    let start = usize::try_from(at).map_err(|_| at)?;
    let rest = record.get(start..).ok_or(at)?;
    Ok((U32Le::first(rest).ok_or(at)?.get(), at + 4))
}

fn counted(fixed: Option<u32>, record: &[u8], at: u64) -> Result<(u32, u64), u64> {
    fixed.map_or_else(|| count(record, at), |fixed| Ok((fixed, at)))
}

/// Returns where `texts` texts end that begin at `at`.
fn texts_end(record: &[u8], mut at: u64, texts: u64) -> Result<u64, u64> {
    for _ in 0..texts {
        let (chars, behind) = count(record, at)?;
        at = pass(behind, chars.into(), record.len() as u64).map_err(|_| at)?;
    }
    Ok(at)
}
