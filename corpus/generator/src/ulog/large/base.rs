//! Ten seconds of a synthetic flight: about forty topics with the layouts and rates of PX4 logs.

use std::collections::BTreeMap;

use super::super::log::{SYNC, header, keyed, message, shape, subscription};
use crate::lay::lay;

/// For each topic: instances, microseconds between rows, format.
const TOPICS: &str = include_str!("flight.txt");

const NESTED: &str = "esc_report:uint64_t timestamp;uint32_t esc_errorcount;int32_t esc_rpm;float esc_voltage;float esc_current;float esc_temperature;uint16_t failures;uint8_t esc_address;uint8_t esc_state;";

const START: u64 = 60_000_000;
const LENGTH: u64 = 10_000_000;

/// Returns the bytes of the flight.
pub(super) fn flight() -> Vec<u8> {
    let topic = |line: &'static str| {
        let (instances, rest) = line.split_once(' ')?;
        let (step, format) = rest.split_once(' ')?;
        Some((instances.parse().ok()?, step.parse().ok()?, format))
    };
    let topics: Vec<(u8, u64, &str)> = TOPICS.lines().map(|line| topic(line).expect("three parts")).collect();
    let named = |text: &str| text.split_once(':').map(|(name, fields)| (name.to_owned(), fields.to_owned()));
    let formats: BTreeMap<_, _> =
        topics.iter().map(|topic| topic.2).chain([NESTED]).filter_map(named).collect();

    let mut log = header(1, START);
    let mut say = |kind, payload: &[u8]| log.extend(message(kind, payload));
    say(b'B', &[0; 40]);
    say(b'F', NESTED.as_bytes());
    for topic in &topics {
        say(b'F', topic.2.as_bytes());
    }
    say(b'I', &keyed("char[3] sys_name", b"PX4"));
    for i in 0..600u16 {
        say(b'P', &keyed(&format!("float PARAM_{i}"), &lay![f32::from(i)]));
    }

    // (time of the next row, id, microseconds between rows, bytes of a row after its time)
    let mut series = Vec::new();
    for (instances, step, format) in topics {
        let name = format.split(':').next().unwrap_or_default();
        for instance in 0..instances {
            let id = u16::try_from(series.len()).expect("a few dozen series");
            say(b'A', &subscription(instance, id, name));
            // Small phase differences, as on a real vehicle.
            series.push((START + 137 * u64::from(id), id, step, shape(&formats, name).trimmed_size() - 8));
        }
    }
    say(b'S', &SYNC);

    let mut state = 1u32;
    let mut next_sync = START + 500_000;
    while let Some(due) = series.iter_mut().min_by_key(|s| (s.0, s.1)) {
        let (time, id, step, size) = *due;
        if time >= START + LENGTH {
            break;
        }
        due.0 += step;
        if time >= next_sync {
            next_sync += 500_000;
            say(b'S', &SYNC);
            say(b'L', &lay![b'6', time, "[commander] still flying\t"]);
        }
        let mut row = lay![time];
        for _ in 0..size {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            row.push(state.to_be_bytes()[0]);
        }
        say(b'D', &lay![id, row]);
    }
    log
}
