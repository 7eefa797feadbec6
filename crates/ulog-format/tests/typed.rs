//! Rows as structs hold what records hold.

mod support;

use std::borrow::Cow;

use rovelog_core::{LogReader, Select, Value};
use support::{LOGS, open, try_open};
use ulog_format::{UlogError, rows};

rows! {
    #[derive(Debug, PartialEq)]
    struct Plain {
        timestamp: u64,
        x: f32,
    }
}

rows! {
    /// As PX4 logs it.
    #[derive(Debug)]
    pub(crate) struct Attitude<'a> {
        pub(crate) timestamp: u64,
        q: [f32; 4],
        last: f32 = "q[3]",
        of_a_later_release: Option<u16>,
        unit: Option<Cow<'a, str>>,
    }
}

rows! {
    struct Wrong {
        x: f64,
    }
}

rows! {
    struct WrongOption {
        x: Option<[f32; 3]>,
    }
}

rows! {
    struct Bytes<'a> {
        name: &'a [u8],
    }
}

#[test]
fn structs_hold_what_records_hold() {
    let mut seen = 0;
    for log in LOGS.corpus() {
        let Some(log) = try_open(&log.bytes) else { continue };
        let Ok(structs) = log.rows::<Plain>("t", &Select::all()) else { continue };
        let name = &log.topic("t").unwrap().name;
        let structs: Vec<_> = structs.map(Result::unwrap).collect();
        let values: Vec<_> = log.records(&Select::topic(name)).map(|r| r.unwrap().value().unwrap()).collect();
        assert_eq!(structs.len(), values.len());
        for (row, value) in structs.iter().zip(&values) {
            assert_eq!(value.get("timestamp"), Some(&Value::UInt(row.timestamp, 64)));
            assert_eq!(value.get("x"), Some(&Value::F32(row.x)));
        }
        seen += structs.len();
    }
    assert!(seen >= 400, "{seen} rows");
}

#[test]
fn a_field_that_is_missing_or_of_another_type_is_named() {
    let log = open(&LOGS.case("subscription-repeated").bytes);
    let message = |error: UlogError| error.to_string();
    assert_eq!(
        log.rows::<Wrong>("t", &Select::all()).map(|_| ()).map_err(message),
        Err("t has no field x of type float64".to_owned())
    );
    assert_eq!(
        log.rows::<WrongOption>("t", &Select::all()).map(|_| ()).map_err(message),
        Err("t has no field x of type float32[3]".to_owned())
    );
    assert_eq!(
        log.rows::<Bytes<'_>>("t", &Select::all()).map(|_| ()).map_err(message),
        Err("t has no field name of type char[]".to_owned())
    );
    assert_eq!(
        log.rows::<Plain>("nobody", &Select::all()).map(|_| ()).map_err(message),
        Err("the log has no topic nobody".to_owned())
    );
}

#[test]
fn a_struct_reads_every_real_attitude() {
    let mut rows = 0;
    for file in LOGS.real() {
        let log = open(&file.bytes);
        let Some(topic) = log.topic("vehicle_attitude") else { continue };
        let Ok(attitudes) = log.rows::<Attitude<'_>>(&topic.name, &Select::all()) else { continue };
        let mut count = 0;
        for attitude in attitudes {
            let Attitude { timestamp, q, last, of_a_later_release, unit } = attitude.unwrap();
            let norm: f32 = q.iter().map(|part| part * part).sum();
            assert!((norm - 1.0).abs() < 1e-3, "{}: {q:?} at {timestamp}", file.name);
            assert_eq!((last, of_a_later_release, unit), (q[3], None, None));
            count += 1;
        }
        assert_eq!(count, topic.count, "{}", file.name);
        rows += count;
    }
    assert!(rows > 10_000 || LOGS.folder().is_none(), "{rows} rows");
}
