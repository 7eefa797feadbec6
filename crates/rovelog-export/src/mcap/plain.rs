//! Messages that are added for every format: console lines as `foxglove.Log`.

use rovelog::{AnyLog, Text};

use super::extras::{Extra, ExtraSchema, Extras};
use super::foxglove::{self, WellKnown};
use super::options::{McapOptions, RosForm};
use crate::TimeBase;

pub(super) struct Plain<'a> {
    log: &'a AnyLog,
    typed: bool,
    ros2: bool,
}

impl<'a> Plain<'a> {
    pub(super) fn new(log: &'a AnyLog, options: &McapOptions) -> Self {
        let ros2 = options.ros == RosForm::Ros2;
        Self { log, typed: options.typed && !ros2, ros2 }
    }
}

impl Extras for Plain<'_> {
    fn profile(&self) -> &'static str {
        match self.log.format().id {
            "rosbag" if self.ros2 => "ros2",
            "rosbag" => "ros1",
            id => id,
        }
    }

    fn messages(&self) -> Vec<Extra> {
        let base = TimeBase::of(&**self.log);
        let texts = self.log.texts().filter(|_| self.typed);
        texts.into_iter().flatten().map(|text| log_message(&text, &base)).collect()
    }
}

/// Returns a console line; one without a time is at the start.
pub(super) fn log_message(text: &Text, base: &TimeBase) -> Extra {
    let nanos = text.time.map_or(0, |time| time.nanos);
    let mut bytes = Vec::new();
    let from = (text.level, text.source.as_deref().unwrap_or_default());
    foxglove::log(base.place(nanos).unwrap_or(nanos), from, &text.text, &mut bytes);
    let schema = ExtraSchema::WellKnown(WellKnown::Log);
    Extra { nanos, topic: "/foxglove/log".into(), schema, bytes }
}
