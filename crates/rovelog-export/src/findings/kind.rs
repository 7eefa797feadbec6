//! The kinds of findings.

/// Declares the enum [`Kind`]. Each line has a variant, its id and its meaning.
macro_rules! kinds {
    ($( $variant:ident $id:literal $meaning:literal )*) => {
        /// Cause of a finding.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Kind {
            $( #[doc = $meaning] $variant, )*
        }

        impl Kind {
            /// All kinds, grouped by the format of the logs in which they occur.
            pub const ALL: &'static [Self] = &[$( Self::$variant ),*];

            /// Returns the stable id of the kind, such as `battery-brownout`.
            pub const fn id(self) -> &'static str {
                match self { $( Self::$variant => $id ),* }
            }

            /// Returns the meaning of the kind in one sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $( Self::$variant => $meaning ),* }
            }
        }
    };
}

kinds! {
    LostBytes "lost-bytes" "Bytes of the file could not be read."
    AttitudeFailure "attitude-failure" "A multicopter rolled or pitched so far that it was out of control."
    Failsafe "failsafe" "The autopilot reacted to a failure by changing the flight mode."
    Kill "kill" "The motors were stopped in flight by the kill switch."
    Termination "termination" "The autopilot ended the flight by stopping the motors."
    MotorFailure "motor-failure" "A motor stopped, or its output or speed controller failed."
    MotorSaturation "motor-saturation" "A motor was at full power for a long time."
    BatteryBrownout "battery-brownout" "The battery voltage stayed below the level at which cells fail."
    BatterySag "battery-sag" "The battery voltage fell below the level at which cells fail for a moment."
    BatteryLow "battery-low" "The autopilot warned of a low battery."
    GpsLoss "gps-loss" "The GPS receiver lost its position in flight."
    GpsInterference "gps-interference" "The GPS position became inaccurate, or was jammed."
    EkfInnovation "ekf-innovation" "The position estimator disagreed with its sensors for a long time."
    EkfFault "ekf-fault" "The position estimator reported a fault of its own or of its sensors."
    EkfReset "ekf-reset" "The position estimator moved its estimate by a jump in flight."
    Vibration "vibration" "The vehicle vibrated more than its sensors can handle."
    RcLoss "rc-loss" "The signal of the remote control was lost."
    CpuLoad "cpu-load" "The processor of the autopilot was overloaded."
    Dropout "dropout" "The logger could not write, so data are missing."
    CurrentOutOfRange "current-out-of-range" "A current was larger than the logger can measure."
    StuckRangeBit "stuck-range-bit" "A current is outside of its range, but its range bit says valid."
    ClockStep "clock-step" "The clock of the logger was set during the measurement."
    MissingBlocks "missing-blocks" "The logger lost blocks of samples."
    TopicStall "topic-stall" "A topic with a steady rate paused or stopped."
    ClockJump "clock-jump" "The times of most topics go back, or all records have the same time."
    LateMessages "late-messages" "Messages arrived later than usual, or in the wrong order."
    LostPackets "lost-packets" "Packets of a laser scanner are missing."
    FrozenSensor "frozen-sensor" "The values of a sensor did not change although they should."
}
