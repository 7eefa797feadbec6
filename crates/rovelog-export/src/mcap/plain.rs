//! Additional messages for log formats that have no other messages for viewers: console lines as
//! `foxglove.Log`.

use rovelog::{AnyLog, Text};

use super::extras::{Extra, Extras};
use super::foxglove::{self, WellKnown};
use super::options::{McapOptions, RosForm};
use crate::TimeBase;

/// Additional messages of ROS bags and other logs.
pub(super) struct Plain<'a> {
    log: &'a AnyLog,
    /// True if messages are added that viewers can draw.
    typed: bool,
    /// True if the records are converted to ROS 2.
    ros2: bool,
}

impl<'a> Plain<'a> {
    pub(super) fn new(log: &'a AnyLog, options: &McapOptions) -> Self {
        // A file with the profile `ros2` may only contain CDR messages, so no protobuf messages are
        // added.
        let ros2 = options.ros == RosForm::Ros2;
        Self { log, typed: options.typed && !ros2, ros2 }
    }
}

impl Extras for Plain<'_> {
    fn profile(&self) -> &'static str {
        match self.log.format().id {
            _ if self.ros2 => "ros2",
            "rosbag" => "ros1",
            id => id,
        }
    }

    fn messages(&self, _from: Option<i64>) -> Vec<Extra> {
        let base = TimeBase::of(&**self.log);
        let texts = self.log.texts().filter(|_| self.typed);
        texts.into_iter().flatten().map(|text| log_message(&text, &base)).collect()
    }
}

/// Returns the message for a console line. A line without a time gets the time 0.
pub(super) fn log_message(text: &Text, base: &TimeBase) -> Extra {
    let nanos = text.time.map_or(0, |time| time.nanos);
    let at = base.place(nanos).unwrap_or(nanos);
    let source = text.source.as_deref().unwrap_or_default();
    Extra::drawn(nanos, "/foxglove/log", WellKnown::Log, foxglove::log(at, text.level, source, &text.text))
}
