//! Compares joined topics with a simple search through all rows, and checks how names of signals
//! are looked up.

use std::io::Cursor;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int64Type};
use rovelog::rosbag12::BagWriter;
use rovelog::{AnyLog, Select};
use rovelog_export::signal::{
    Base, Extended, JoinOptions, Method, Signals, derived_fields, each, join, measured_fields, numeric_fields,
};

fn corpus(name: &str) -> AnyLog {
    rovelog::open(rovelog_testing::root().join("corpus").join(name)).expect("a log of the corpus")
}

/// Returns the times and the values of a field, in time order.
fn rows(log: &AnyLog, topic: &str, field: &str) -> Vec<(i64, f64)> {
    let select = Select::all().with_fields([field]);
    let batches = log.topic(topic).expect("the topic").columns(&select).expect("columns");
    let mut rows = Vec::new();
    for batch in batches {
        let batch = batch.expect("a batch");
        let values = batch.column(1).as_primitive::<Float64Type>();
        rows.extend(batch.column(0).as_primitive::<Int64Type>().values().iter().copied().zip(values.iter()));
    }
    rows.into_iter().map(|(time, value)| (time, value.unwrap_or(f64::NAN))).collect()
}

/// Returns the value that a join should give at a time, by a simple search through all rows.
fn plain(rows: &[(i64, f64)], time: i64, method: Method, tolerance: Option<u64>) -> Option<f64> {
    let near = |row: &&(i64, f64)| tolerance.is_none_or(|most| row.0.abs_diff(time) <= most);
    let before = rows.iter().rfind(|row| row.0 <= time);
    let after = rows.iter().find(|row| row.0 > time);
    let found = match method {
        Method::Previous => before.filter(near).map(|row| row.1),
        Method::Nearest => {
            let all = before.into_iter().chain(after);
            all.min_by_key(|row| row.0.abs_diff(time)).filter(near).map(|row| row.1)
        }
        Method::Linear => {
            let before = before.filter(near)?;
            if before.0 == time {
                Some(before.1)
            } else {
                let after = after.filter(near)?;
                let share = (time - before.0) as f64 / (after.0 - before.0) as f64;
                Some(before.1 + (after.1 - before.1) * share)
            }
        }
    };
    found.filter(|value| !value.is_nan())
}

#[test]
fn join_equals_a_simple_search() {
    let log = corpus("rld/v4.rld");
    let topic = log.topics().first().expect("a topic");
    let own = rows(&log, &topic.name, "V1");
    let (first, last) = (own[0].0, own[own.len() - 1].0);
    let times: Vec<i64> = (0..500)
        .map(|i| first - 1_000_000 + i * ((last - first) / 490 + 1))
        .chain(own.iter().map(|row| row.0))
        .collect();
    let mut times = times;
    times.sort_unstable();
    for method in [Method::Previous, Method::Nearest, Method::Linear] {
        for tolerance in [None, Some(300_000)] {
            let mut options = JoinOptions::default();
            (options.method, options.tolerance) = (method, tolerance);
            let select = Select::all().with_fields(["V1"]);
            let joined = join(&*log, Base::Times(times.clone()), &[topic], &select, (options, &[])).unwrap();
            let batches: Vec<RecordBatch> = joined.map(Result::unwrap).collect();
            let found: Vec<Option<f64>> = batches
                .iter()
                .flat_map(|batch| batch.column(1).as_primitive::<Float64Type>().iter().collect::<Vec<_>>())
                .collect();
            let wanted: Vec<_> = times.iter().map(|time| plain(&own, *time, method, tolerance)).collect();
            assert_eq!(found, wanted, "{method:?} {tolerance:?}");
            assert!(found.iter().any(Option::is_some));
            // Without a tolerance, every time has a nearest row.
            let all = method == Method::Nearest && tolerance.is_none();
            assert_eq!(found.iter().all(Option::is_some), all, "{method:?} {tolerance:?}");
        }
    }
}

#[test]
fn names_are_found_or_similar_names_are_suggested() {
    let log = corpus("ulog/one-topic+multi-id.ulg");
    let signals = Signals::new(&*log);
    let names = |text: &str| {
        let found = signals.find(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        found.iter().map(|signal| signal.name().to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names("t.x"), "t.x");
    assert_eq!(names("t/1.x"), "t/1.x");
    assert_eq!(names("t*.{x,x}"), "t.x t/1.x");
    assert_eq!(names("y=t.x*2"), "y");
    let cause = |text: &str| signals.find(text).unwrap_err();
    assert_eq!(cause("x").cause, "2 topics have a field x");
    assert_eq!(cause("x").next, "also name the topic: t.x, t/1.x");
    assert_eq!(cause("t.z").cause, "topic t/0 has no numeric field z");
    assert_eq!(cause("tt.x").next, "list all: rovelog topics FILE");
    assert_eq!(cause("t.x + t.z").cause, "topic t/0 has no numeric field z");
}

/// If a topic cannot be read, the result must be an error, and not an empty list of fields.
#[test]
fn fields_that_cannot_be_read_are_an_error() {
    let (log, other) = (corpus("ulog/one-topic.ulg"), corpus("ulog/one-topic.ulg"));
    assert!(!numeric_fields(&*log, &log.topics()[0]).unwrap().is_empty());
    for fields in [numeric_fields, measured_fields, derived_fields] {
        let error = fields(&*log, &other.topics()[0]).unwrap_err();
        assert!(error.to_string().contains("belongs to another log"), "{error}");
    }
}

/// Rows without a time must be in tables, but must not be joined with rows of another topic.
#[test]
fn rows_without_a_time_are_not_joined() {
    let log = corpus("ulog/timestamp-out-of-range.ulg");
    let topic = &log.topics()[0];
    let signals = Signals::new(&*log);
    let column = |text: &str| {
        let signal = [signals.one(text).unwrap()];
        let select = Extended::reads(&signal, &Select::all());
        let mut extended = Extended::new(&*log, topic, &signal, &select).unwrap();
        let batches = log.own(topic).unwrap().columns(&select).unwrap();
        let values = batches.flat_map(|batch| {
            let batch = extended.extend(&batch.unwrap()).unwrap();
            let last = batch.column(batch.num_columns() - 1).as_primitive::<Float64Type>();
            last.iter().collect::<Vec<_>>()
        });
        let thousandths = |value: f64| format!("{:.0}", value * 1000.0).parse::<i64>().unwrap();
        values.map(|value| value.map(thousandths)).collect::<Vec<_>>()
    };
    let (none, some) = (None, Some);
    assert_eq!(column("2*x"), [0, 2000, 4000, 1000, 1000, 6000, 8000, 10000].map(some), "of the row alone");
    assert_eq!(
        column("integral(x)"),
        [some(0), some(5), some(20), none, none, some(45), some(80), some(125)]
    );
    let change = [none, some(1000), some(1000), none, none, some(1000), some(1000), some(1000)];
    assert_eq!(column("difference(x)"), change);
    assert_eq!(column("derivative(x)"), change.map(|change| change.map(|change| change * 100)));
}

/// A ROS bag may have the topics `/x` and `/x/0`. They are separate topics, and not instances of
/// the same topic. The names may also lack the leading slash.
#[test]
fn topics_are_not_mixed_up_with_their_sub_topics() {
    for name in ["/x", "x"] {
        let mut bag = BagWriter::new(Cursor::new(Vec::new())).unwrap();
        let below = format!("{name}/0");
        for (topic, value) in [(name, 1.0_f64), (&below, 10.0)] {
            let topic = bag.connect(topic.as_bytes(), b"std_msgs/Float64", &[b'0'; 32], b"float64 data\n");
            bag.message(topic.unwrap(), 1, 0, None, &value.to_le_bytes()).unwrap();
        }
        let bytes = bag.finish().unwrap().into_inner();
        let log = rovelog::from_bytes(bytes.into(), &rovelog::ReadOptions::default()).unwrap();
        let topics: Vec<_> = log.topics().iter().collect();
        let (base, options) = (Base::Topic(topics[0]), JoinOptions::default());
        let mut joined = join(&*log, base, &topics[1..], &Select::all(), (options, &[])).unwrap();
        let columns: Vec<_> = joined.schema().fields().iter().map(|field| field.name().clone()).collect();
        assert_eq!(columns, ["t_ns".to_owned(), format!("{name}.data"), format!("{below}.data")]);
        let batch = joined.next().unwrap().unwrap();
        let values = [1, 2].map(|column| batch.column(column).as_primitive::<Float64Type>().value(0));
        assert_eq!(values.map(|value| value.to_string()), ["1", "10"]);
        let signal = Signals::new(&*log).one(&format!("`{below}.data` - `{name}.data`")).unwrap();
        let mut differences = Vec::new();
        each(&*log, &signal, &Select::all(), &mut |_, value| differences.push(value)).unwrap();
        assert_eq!(differences, [9.0], "{name}");
    }
}
