//! Statistics of all fields of a log in one pass.

mod number;
mod running;

use std::collections::HashMap;
use std::sync::Arc;

use rovelog::core::layout::{At, Layout, Leaf, Plan, Visit, scalar_value};
use rovelog::core::parallel::{self, Jobs};
use rovelog::{Error, ErrorKind, FieldType, LogReader, Record, Scalar, Select, Value};

use crate::{Loss, leaf};

pub use number::{Number, short};
pub use running::Statistics;

/// The fields of one topic in the order of their first record.
#[derive(Default)]
struct Fields {
    list: Vec<(String, Statistics)>,
    numbers: HashMap<String, usize>,
    direct: Direct,
    /// The numbers of one record.
    buffer: Vec<Number>,
    /// Records that cannot be decoded.
    undecodable: u64,
}

/// How the numbers of records are found without their names.
#[derive(Default)]
enum Direct {
    /// There was no record yet.
    #[default]
    Unknown,
    /// A record has names that depend on its content, or no layout.
    No,
    /// Every record of this layout has the same numbers, which are of these fields.
    Yes(Arc<Layout>, Arc<Plan<IsList>>, Vec<usize>),
}

/// Whether a field is a list whose length a record says.
type IsList = bool;

impl Fields {
    fn push(&mut self, record: &Record<'_>) {
        let layout = record.layout();
        if let (Direct::Yes(known, plan, fields), Some(layout)) = (&self.direct, layout)
            && Arc::ptr_eq(known, layout)
            && numbers(plan, &record.payload, &mut self.buffer)
        {
            for (field, number) in fields.iter().zip(&self.buffer) {
                self.list[*field].1.push(*number);
            }
            return;
        }
        let Ok(value) = record.value() else {
            self.undecodable += 1;
            return;
        };
        let is_first = matches!(self.direct, Direct::Unknown);
        let (mut next, mut met) = (0, Vec::new());
        value.flatten(&mut |name, value| {
            let Some(number) = number(value) else { return };
            let field = self.named(name, next);
            self.list[field].1.push(number);
            if is_first {
                met.push(field);
            }
            next = field + 1;
        });
        if is_first {
            self.direct = layout.map_or(Direct::No, |layout| {
                let plan = Plan::new(layout, &mut |_, field| matches!(field.ty, FieldType::List(_)));
                let is_direct = numbers(&plan, &record.payload, &mut self.buffer);
                if is_direct && self.buffer.len() == met.len() {
                    Direct::Yes(Arc::clone(layout), plan, met)
                } else {
                    Direct::No
                }
            });
        }
    }

    /// Returns the index of the field with this name. `next` is its index if the record has the
    /// same fields as the previous one.
    fn named(&mut self, name: &str, next: usize) -> usize {
        if self.list.get(next).is_some_and(|(known, _)| known == name) {
            return next;
        }
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.list.len();
        self.list.push((name.to_owned(), Statistics::default()));
        self.numbers.insert(name.to_owned(), number);
        number
    }
}

fn number(value: &Value) -> Option<Number> {
    match value {
        Value::Bool(bit) => Some(Number::Int(i128::from(*bit))),
        Value::Int(value, _) => Some(Number::Int(i128::from(*value))),
        Value::UInt(value, _) => Some(Number::Int(i128::from(*value))),
        value => value.as_f64().map(Number::Float),
    }
}

/// Collects the numbers of a record; `false` if their names depend on its content.
fn numbers(plan: &Plan<IsList>, payload: &[u8], buffer: &mut Vec<Number>) -> bool {
    buffer.clear();
    let mut visit = Numbers { buffer, is_fixed: true };
    plan.run(payload, &mut visit).is_ok() && visit.is_fixed
}

struct Numbers<'a> {
    buffer: &'a mut Vec<Number>,
    is_fixed: bool,
}

impl Visit<IsList> for Numbers<'_> {
    #[inline]
    fn scalar(&mut self, _: &IsList, scalar: Scalar, bytes: &[u8]) {
        // Most fields of most logs.
        if let (Scalar::Float32, Some(bytes)) = (scalar, bytes.first_chunk()) {
            self.buffer.push(Number::Float(f64::from(f32::from_le_bytes(*bytes))));
        } else if let Some(number) = number(&scalar_value(scalar, bytes)) {
            self.buffer.push(number);
        }
    }

    fn scalars(&mut self, is_list: &IsList, scalar: Scalar, bytes: &[u8]) {
        self.is_fixed &= !is_list;
        for bytes in bytes.chunks_exact(scalar.size()) {
            self.scalar(is_list, scalar, bytes);
        }
    }

    fn leaf(&mut self, _: &IsList, _: At, leaf: Leaf<'_>) {
        if let Leaf::Pair(scalar, bytes) = leaf {
            self.scalars(&false, scalar, bytes);
        }
    }

    fn open(&mut self, _: &IsList, _: At) {}

    fn close(&mut self) {}

    fn list(&mut self, is_list: &IsList) {
        self.is_fixed &= !is_list;
    }

    fn end_list(&mut self) {}
}

/// Records and bytes of records that are handed on at once.
const RECORDS: usize = 4096;
const BYTES: usize = 1 << 20;

/// Records that wait to be handed on, by topic.
struct Waiting<'a> {
    topics: Vec<Vec<Record<'a>>>,
    /// Topics that have some.
    some: Vec<usize>,
    records: usize,
    bytes: usize,
}

impl<'a> Waiting<'a> {
    fn add(&mut self, record: Record<'a>) {
        let topic = record.topic.id.index();
        if self.topics[topic].is_empty() {
            self.some.push(topic);
        }
        self.records += 1;
        self.bytes += record.payload.len();
        self.topics[topic].push(record);
    }

    fn hand_on<E>(&mut self, push: &mut dyn FnMut(usize, Vec<Record<'a>>) -> Result<(), E>) -> Result<(), E> {
        (self.records, self.bytes) = (0, 0);
        self.some.drain(..).try_for_each(|topic| push(topic, std::mem::take(&mut self.topics[topic])))
    }
}

/// Returns the statistics of all numbers that `select` has: by topic of the log, in the order of the
/// first record of each, with flat names. Records that cannot be decoded are left out, and
/// counted in `losses`. `at` is told the offset of each record.
///
/// Each topic is worked on by one thread at a time, its records in their order, so that the sums do
/// not depend on the number of threads.
///
/// # Errors
/// Returns an error if a record cannot be read, or the topics have more than a million fields.
pub fn statistics(
    log: &dyn LogReader,
    select: &Select,
    jobs: Jobs,
    at: &dyn Fn(u64),
    losses: &mut Vec<Loss>,
) -> rovelog::Result<Vec<Vec<(String, Statistics)>>> {
    refuse_too_many(log, select)?;
    let topics = log.topics().len();
    let mut fields = Vec::new();
    fields.resize_with(topics, Fields::default);
    let work = |fields: &mut Fields, records: Vec<Record<'_>>| {
        for record in &records {
            fields.push(record);
        }
        Ok::<_, rovelog::Error>(())
    };
    let fields = parallel::lanes(jobs, fields, work, |push| {
        let mut waiting =
            Waiting { topics: vec![Vec::new(); topics], some: Vec::new(), records: 0, bytes: 0 };
        for record in log.intact_records(select) {
            let record = record?;
            at(record.offset);
            waiting.add(record);
            if waiting.records == RECORDS || waiting.bytes >= BYTES {
                waiting.hand_on(push)?;
            }
        }
        waiting.hand_on(push)
    })?;
    let lost = log.topics().iter().zip(&fields).filter(|(_, fields)| fields.undecodable > 0);
    losses.extend(lost.map(|(topic, fields)| Loss::undecodable(topic, fields.undecodable)));
    Ok(fields.into_iter().map(|fields| fields.list).collect())
}

/// Maximum number of fields that statistics are kept of, some hundred bytes each. Real logs have some
/// ten thousands.
const MOST_FIELDS: usize = 1_000_000;

/// Refuses topics whose definitions have too many fields together: a log of 20 MB may describe a
/// hundred million.
fn refuse_too_many(log: &dyn LogReader, select: &Select) -> rovelog::Result<()> {
    let topics = log.topics().iter().filter(|topic| topic.count > 0 && select.keeps_topic(topic));
    let fields = topics.filter_map(|topic| topic.schema.as_deref()).map(|schema| leaf::count(schema, true));
    let fields = fields.fold(0, usize::saturating_add);
    if fields <= MOST_FIELDS {
        return Ok(());
    }
    let what = format!("the topics have {fields} fields in all, and statistics are kept of {MOST_FIELDS}");
    Err(Error::new("rovelog", ErrorKind::LimitExceeded, None, what).with_next("select topics: --topics NAME"))
}
