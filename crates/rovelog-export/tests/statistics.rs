//! Statistics of all fields, compared with statistics of the decoded records.

use std::collections::{BTreeMap, HashMap};

use rovelog::core::internal::parallel::Jobs;
use rovelog::{AnyLog, ReadOptions, Select, Value};
use rovelog_export::statistics::{FieldStatistics, Number, Statistics, statistics};
use rovelog_testing::{RLD, ROSBAG, ULOG, VEL};

/// Computes statistics from the value of each record, and the number of records without a value.
fn from_values(log: &AnyLog, select: &Select) -> (Vec<FieldStatistics>, u64) {
    let mut topics = vec![FieldStatistics::new(); log.topics().len()];
    let mut places = vec![HashMap::new(); topics.len()];
    let mut undecodable = 0;
    for record in log.intact_records(select) {
        let record = record.unwrap();
        let Ok(value) = record.value() else {
            undecodable += 1;
            continue;
        };
        let (fields, places) = (&mut topics[record.topic.id.index()], &mut places[record.topic.id.index()]);
        value.flatten(&mut |name, value| {
            let number = match value {
                Value::Bool(bit) => Number::Int(i128::from(*bit)),
                Value::Int(value, _) => Number::Int(i128::from(*value)),
                Value::UInt(value, _) => Number::Int(i128::from(*value)),
                Value::F32(value) => Number::Float(f64::from(*value)),
                Value::F64(value) => Number::Float(*value),
                _ => return,
            };
            let place = *places.entry(name.to_owned()).or_insert_with(|| {
                fields.push((name.to_owned(), Statistics::default()));
                fields.len() - 1
            });
            fields[place].1.push(number);
        });
    }
    (topics, undecodable)
}

/// Returns the statistics by field. Only the debug format shows the parts of which results are
/// computed.
fn by_field(fields: &FieldStatistics) -> BTreeMap<&str, String> {
    fields.iter().map(|(name, field)| (&**name, format!("{field:?}"))).collect()
}

/// The result must have each number of each record, with the same rounding errors, whether a topic
/// is computed from its columns or from its records.
#[test]
fn statistics_equal_those_of_the_values() {
    let mut numbers = 0;
    for logs in [ULOG, RLD, ROSBAG, VEL] {
        for file in logs.all() {
            let Ok(log) = rovelog::from_bytes(file.bytes.clone(), &ReadOptions::default()) else { continue };
            // Logs for tests of limits have too many fields.
            let whole = Select::all();
            let Ok(result) = statistics(&*log, &whole, Jobs::ONE, &|_| ()) else { continue };
            let span = log.info().span().map(|(first, last)| (first.nanos, last.nanos));
            let middle = span.map(|(first, last)| first.midpoint(last));
            for (select, result) in [
                (whole, result),
                (Select::all().between(middle, None), {
                    let select = Select::all().between(middle, None);
                    statistics(&*log, &select, Jobs::ONE, &|_| ()).unwrap()
                }),
            ] {
                let (expected, undecodable) = from_values(&log, &select);
                let name = &file.name;
                for (topic, (got, want)) in log.topics().iter().zip(result.fields.iter().zip(&expected)) {
                    assert_eq!(by_field(got), by_field(want), "{name} {}", topic.name);
                    numbers += want.iter().map(|(_, field)| field.count).sum::<u64>();
                }
                let lost = result.losses.iter().map(|loss| loss.why.split(' ').next().unwrap());
                assert_eq!(
                    lost.map(|count| count.parse::<u64>().unwrap()).sum::<u64>(),
                    undecodable,
                    "{name}"
                );
            }
        }
    }
    assert!(numbers > 100_000, "{numbers} numbers");
}
