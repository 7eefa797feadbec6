//! Writes records as rows of CSV.

use rovelog::core::Fields;
use rovelog::core::internal::layout::{At, FieldKeys, Leaf, Number as _, Values, Visit};
use rovelog::{Field, FieldType, Scalar};

use super::Keep;
use crate::number::Numbers;
use crate::table::quoted;

/// Writes records as rows of CSV. The buffers are reused for each row, so that most rows need no
/// allocation.
#[derive(Default)]
pub struct CsvRows {
    numbers: Numbers,
    text: String,
    list: Values,
}

impl CsvRows {
    /// Appends the cells of the selected leaves to `row`, each with a comma before it. Returns true
    /// if one of these leaves has raw bytes. The cells of such leaves are empty.
    ///
    /// - A ROS time is a single cell. `date` is called to format its nanoseconds.
    /// - A ROS duration is a single cell with its nanoseconds.
    /// - A list of variable length is a single cell with JSON.
    ///
    /// # Errors
    /// Returns an error if the record cannot be decoded. The row is then incomplete.
    pub fn write(
        &mut self,
        fields: &Fields<'_>,
        keep: &Keep,
        date: &dyn Fn(i64, &mut String),
        row: &mut Vec<u8>,
    ) -> rovelog::Result<bool> {
        let mut cells = Cells { rows: self, keep, date, row, place: 0, lists: 0, has_bytes: false };
        let visited = fields.visit(&FieldKeys, &mut cells);
        let has_bytes = cells.has_bytes;
        if visited.is_err() {
            self.list = Values::default();
        }
        visited.map(|()| has_bytes)
    }

    /// Appends a cell with a float, with a comma before it. The cell is empty if there is no value.
    pub fn float(&mut self, value: Option<f64>, row: &mut Vec<u8>) {
        row.push(b',');
        if let Some(value) = value {
            self.numbers.float(value, row);
        }
    }

    /// Appends an integer without a comma before it.
    pub fn integer(&mut self, value: i64, row: &mut Vec<u8>) {
        self.numbers.integer(value, row);
    }
}

/// Visitor that writes the cells of one record.
struct Cells<'a> {
    rows: &'a mut CsvRows,
    keep: &'a Keep,
    date: &'a dyn Fn(i64, &mut String),
    row: &'a mut Vec<u8>,
    /// Index of the next leaf.
    place: usize,
    /// Number of open lists, counted from the outermost list of variable length. While it is not 0,
    /// values are collected for a JSON cell.
    lists: usize,
    has_bytes: bool,
}

impl Cells<'_> {
    /// Starts the next cell, and returns false if its leaf is not selected. `leaves` is the number
    /// of leaves that the cell replaces. It is 2 for a ROS time or duration, whose seconds and
    /// nanoseconds are separate leaves.
    #[inline]
    fn start(&mut self, leaves: usize) -> bool {
        let is_kept = (self.place..self.place + leaves).any(|place| self.keep.leaf(place));
        self.place += leaves;
        if is_kept {
            self.row.push(b',');
        }
        is_kept
    }

    /// Writes the list of variable length that was collected as a cell with JSON.
    fn write_list(&mut self) {
        let list = self.rows.list.take_first();
        if self.start(1)
            && let Some(list) = list
        {
            quoted(&list.to_json(), b',', self.row);
        }
    }

    /// Writes the cell of a ROS time or duration. `parts` has its seconds and its nanoseconds, each
    /// as four bytes.
    fn write_pair(&mut self, field: &Field, scalar: Scalar, parts: [u8; 8]) {
        if !self.start(2) {
            return;
        }
        let part = |bytes: &[u8]| match scalar {
            Scalar::Int32 => i32::from_wire(bytes).map_or(0, i64::from),
            _ => u32::from_wire(bytes).map_or(0, i64::from),
        };
        let nanos = part(&parts[..4]).saturating_mul(1_000_000_000).saturating_add(part(&parts[4..]));
        if is_time(&field.ty) {
            self.rows.text.clear();
            (self.date)(nanos, &mut self.rows.text);
            quoted(&self.rows.text, b',', self.row);
        } else {
            self.rows.numbers.integer(nanos, self.row);
        }
    }
}

/// Returns whether a type is a ROS time or an array of ROS times.
fn is_time(ty: &FieldType) -> bool {
    match ty {
        FieldType::Array(element, _) => is_time(element),
        ty => *ty == FieldType::Time,
    }
}

impl Visit<Field> for Cells<'_> {
    #[inline]
    fn scalar(&mut self, field: &Field, scalar: Scalar, bytes: &[u8]) {
        if self.lists > 0 {
            self.rows.list.scalar(field, scalar, bytes);
        } else if self.start(1) {
            self.rows.numbers.scalar(scalar, bytes, self.row);
        }
    }

    fn scalars(&mut self, field: &Field, scalar: Scalar, bytes: &[u8]) {
        let is_list = matches!(field.ty, FieldType::List(_));
        if self.lists > 0 || is_list {
            self.rows.list.scalars(field, scalar, bytes);
            if self.lists == 0 {
                self.write_list();
            }
            return;
        }
        bytes.chunks_exact(scalar.size()).for_each(|bytes| self.scalar(field, scalar, bytes));
    }

    fn leaf(&mut self, field: &Field, at: At, leaf: Leaf<'_>) {
        if self.lists > 0 {
            return self.rows.list.leaf(field, at, leaf);
        }
        match leaf {
            Leaf::Pair(scalar, parts) => self.write_pair(field, scalar, *parts),
            leaf => {
                let is_kept = self.start(1);
                match leaf {
                    Leaf::Text(text) if is_kept => quoted(&text, b',', self.row),
                    Leaf::Bytes(_) => self.has_bytes |= is_kept,
                    _ => {}
                }
            }
        }
    }

    fn open(&mut self, field: &Field, at: At) {
        if self.lists > 0 {
            self.rows.list.open(field, at);
        }
    }

    fn close(&mut self, field: &Field, at: At) {
        if self.lists > 0 {
            self.rows.list.close(field, at);
        }
    }

    fn list(&mut self, field: &Field, len: usize) {
        if self.lists > 0 || matches!(field.ty, FieldType::List(_)) {
            self.rows.list.list(field, len);
            self.lists += 1;
        }
    }

    fn end_list(&mut self, field: &Field) {
        if self.lists > 0 {
            self.rows.list.end_list(field);
            self.lists -= 1;
            if self.lists == 0 {
                self.write_list();
            }
        }
    }
}
