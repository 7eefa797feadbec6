//! Flights that tests describe by the rows of their topics.
// Each test file is a separate crate, which uses only some of these helpers.
#![allow(dead_code)]

use std::collections::BTreeMap;

use rovelog::ulog_format::{FormatBuilder, UlogWriter};
use rovelog::{AnyLog, ReadOptions};
use rovelog_export::findings::{Finding, findings};

/// Names and values of fields.
pub(crate) type Values = Vec<(&'static str, f64)>;

/// A row of a topic.
pub(crate) struct Row {
    /// Time in seconds.
    pub(crate) time: f64,
    /// Name of the topic, such as `battery_status`, or `battery_status/1` for its instance 1.
    pub(crate) topic: &'static str,
    pub(crate) values: Values,
}

/// A flight that a test describes by the rows of its topics.
#[derive(Default)]
pub(crate) struct Flight {
    pub(crate) rows: Vec<Row>,
    /// Dropouts by their time in seconds and their duration in milliseconds.
    pub(crate) dropouts: Vec<(f64, u16)>,
    /// Parameters of the vehicle.
    pub(crate) parameters: Vec<(&'static str, f32)>,
}

impl Flight {
    /// Creates a multicopter flight that is armed and in the air from 1 s to 90 s.
    pub(crate) fn new() -> Self {
        let status = |armed: f64| vec![("arming_state", armed), ("nav_state", 2.0), ("vehicle_type", 1.0)];
        let mut flight = Self::default();
        flight.row(0.0, "vehicle_status", &status(1.0));
        flight.row(1.0, "vehicle_status", &status(2.0));
        flight.row(90.0, "vehicle_status", &status(1.0));
        flight.row(0.0, "vehicle_land_detected", &[("landed", 1.0)]);
        flight.row(1.0, "vehicle_land_detected", &[("landed", 0.0)]);
        flight
    }

    pub(crate) fn row(&mut self, time: f64, topic: &'static str, values: &[(&'static str, f64)]) {
        self.rows.push(Row { time, topic, values: values.to_vec() });
    }

    /// Adds a row every 100 ms. `values` returns the values at a time.
    pub(crate) fn every<const N: usize>(
        mut self,
        topic: &'static str,
        times: std::ops::Range<u32>,
        values: impl Fn(f64) -> [(&'static str, f64); N],
    ) -> Self {
        for time in (times.start * 10..times.end * 10).map(|tenth| f64::from(tenth) / 10.0) {
            self.row(time, topic, &values(time));
        }
        self
    }

    /// Writes the flight as a ULog, and opens it.
    pub(crate) fn log(self) -> AnyLog {
        rovelog::from_bytes(self.bytes().into(), &ReadOptions::default()).unwrap()
    }

    /// Writes the flight as a ULog.
    pub(crate) fn bytes(mut self) -> Vec<u8> {
        self.rows.sort_by(|a, b| a.time.total_cmp(&b.time));
        let mut writer = UlogWriter::new(Vec::new(), 0).unwrap();
        let mut fields: BTreeMap<&str, &[(&str, f64)]> = BTreeMap::new();
        for Row { topic, values, .. } in &self.rows {
            fields.entry(topic).or_insert(values);
        }
        for (name, value) in &self.parameters {
            writer.parameter(name, *value).unwrap();
        }
        for (topic, columns) in &fields {
            let (type_name, instance) = topic.split_once('/').unwrap_or((topic, "0"));
            // The first instance has the same format.
            if instance != "0" && fields.contains_key(type_name) {
                continue;
            }
            let mut format = FormatBuilder::new(type_name).field::<u64>("timestamp");
            let mut last = "";
            for (name, _) in *columns {
                let base = name.split('[').next().unwrap();
                let len = columns.iter().filter(|(other, _)| other.split('[').next() == Some(base)).count();
                format = match base {
                    _ if base == last => format,
                    "arming_state" | "nav_state" | "failsafe" => format.field::<u8>(base),
                    _ if *name == base => format.field::<f64>(base),
                    _ => format.array::<f64>(base, len),
                };
                last = base;
            }
            writer.define(&format).unwrap();
        }
        let mut topics = BTreeMap::new();
        for topic in fields.keys() {
            let (type_name, instance) = topic.split_once('/').unwrap_or((topic, "0"));
            let handle = writer.subscribe(type_name, instance.parse().unwrap()).unwrap();
            topics.insert(*topic, writer.row_buffer(handle).unwrap());
        }
        let mut dropouts = self.dropouts.iter().peekable();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small numbers")]
        for Row { time, topic, values } in &self.rows {
            while let Some((_, millis)) = dropouts.next_if(|(at, _)| at < time) {
                writer.dropout(*millis).unwrap();
            }
            let row = topics.get_mut(topic).unwrap();
            let place = row.place("timestamp").unwrap();
            row.set(place, (time * 1e6).round() as u64).unwrap();
            for (name, value) in values {
                let place = row.place(name).unwrap();
                match *name {
                    "arming_state" | "nav_state" | "failsafe" => row.set(place, *value as u8).unwrap(),
                    _ => row.set(place, *value).unwrap(),
                }
            }
            writer.write(row).unwrap();
        }
        writer.finish().unwrap()
    }

    /// Returns kind, severity, start and end in seconds of all findings.
    pub(crate) fn findings(self) -> Vec<String> {
        findings(&self.log()).unwrap().iter().map(short).collect()
    }
}

/// Returns severity, kind, start and end in seconds of a finding.
pub(crate) fn short(finding: &Finding) -> String {
    let (start, end) = (finding.start as f64 / 1e9, finding.end as f64 / 1e9);
    format!("{} {} {start} {end}", finding.severity.name(), finding.kind.id())
}
