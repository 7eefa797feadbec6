//! Writes the fields of ROS 1 messages.

/// A time in nanoseconds that ROS can represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RosTime {
    pub(crate) sec: u32,
    pub(crate) nsec: u32,
}

impl RosTime {
    /// Returns the time for Unix nanoseconds, if its seconds are not greater than `max_sec`.
    pub(super) fn new(nanos: i64, max_sec: u32) -> Option<Self> {
        let sec = u32::try_from(nanos.div_euclid(1_000_000_000)).ok().filter(|sec| *sec <= max_sec)?;
        Some(Self { sec, nsec: u32::try_from(nanos.rem_euclid(1_000_000_000)).ok()? })
    }
}

/// Payload of a ROS 1 message. The fields are appended in the order of the definition.
#[derive(Debug, Default)]
pub(super) struct Payload(pub(super) Vec<u8>);

impl Payload {
    /// Starts a message with the field `header`. Its `seq` is 0, because ROS ignores it.
    pub(super) fn stamped(time: RosTime, frame: &str) -> Self {
        Self::default().u32(0).time(time).text(frame)
    }

    /// Appends bytes, such as those of a `uint8`, or of an array of fixed length.
    pub(super) fn put(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.0.extend_from_slice(bytes.as_ref());
        self
    }

    pub(super) fn u32(self, value: u32) -> Self {
        self.put(value.to_le_bytes())
    }

    pub(super) fn time(self, time: RosTime) -> Self {
        self.u32(time.sec).u32(time.nsec)
    }

    /// Appends values of the type `float32`, each of which is rounded once.
    pub(super) fn f32s(mut self, values: impl IntoIterator<Item = f64>) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "rounded once, to the width of the field")]
        self.0.extend(values.into_iter().flat_map(|value| (value as f32).to_le_bytes()));
        self
    }

    pub(super) fn f64s(mut self, values: impl IntoIterator<Item = f64>) -> Self {
        self.0.extend(values.into_iter().flat_map(f64::to_le_bytes));
        self
    }

    /// Appends a quaternion, which ROS stores in the order x, y, z, w.
    pub(super) fn quaternion(self, [w, x, y, z]: [f64; 4]) -> Self {
        self.f64s([x, y, z, w])
    }

    /// Appends the number of elements in a list.
    pub(super) fn len(self, len: usize) -> Self {
        // No log has a message with 2^32 elements.
        self.u32(u32::try_from(len).unwrap_or(u32::MAX))
    }

    /// Appends a list of bytes.
    pub(super) fn bytes(self, bytes: &[u8]) -> Self {
        self.len(bytes.len()).put(bytes)
    }

    pub(super) fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }
}

/// Returns the payload of a `sensor_msgs/Imu`. A quantity that is `None` is marked as not measured.
/// `orientation` has the order w, x, y, z.
pub(super) fn imu(
    (time, frame): (RosTime, &str),
    orientation: Option<[f64; 4]>,
    angular_velocity: Option<[f64; 3]>,
    acceleration: Option<[f64; 3]>,
) -> Payload {
    // A first element of -1 means that the quantity is not measured. All zeros mean that it is, with
    // an unknown covariance.
    let covariance = |is_known| [if is_known { 0.0 } else { -1.0 }, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    Payload::stamped(time, frame)
        .quaternion(orientation.unwrap_or([1.0, 0.0, 0.0, 0.0]))
        .f64s(covariance(orientation.is_some()))
        .f64s(angular_velocity.unwrap_or_default())
        .f64s(covariance(angular_velocity.is_some()))
        .f64s(acceleration.unwrap_or_default())
        .f64s(covariance(acceleration.is_some()))
}

/// A position for a `sensor_msgs/NavSatFix`.
pub(super) struct Fix {
    /// Status in `sensor_msgs/NavSatStatus`: -1 for no fix, 0 for a fix, 1 with corrections from
    /// satellites, 2 with corrections from the ground.
    pub(super) status: i8,
    /// Latitude and longitude in degrees, and altitude above the ellipsoid in meters.
    pub(super) position: [f64; 3],
    /// Horizontal and vertical standard deviation in meters.
    pub(super) accuracy: Option<(f64, f64)>,
}

impl Fix {
    /// Returns the payload of a `sensor_msgs/NavSatFix`.
    pub(super) fn payload(&self, time: RosTime, frame: &str) -> Payload {
        let (horizontal, vertical) = self.accuracy.unwrap_or_default();
        let (h, v) = (horizontal * horizontal, vertical * vertical);
        // The log does not contain the satellite systems, so the service is GPS, which is 1. The
        // covariance type 2 means that only the diagonal is known.
        Payload::stamped(time, frame)
            .put(self.status.to_le_bytes())
            .put(1_u16.to_le_bytes())
            .f64s(self.position)
            .f64s([h, 0.0, 0.0, 0.0, h, 0.0, 0.0, 0.0, v])
            .put([if self.accuracy.is_some() { 2 } else { 0 }])
    }
}

/// A position that is unknown, because the receiver has no fix.
pub(super) const NO_FIX: Fix = Fix { status: -1, position: [f64::NAN; 3], accuracy: None };
