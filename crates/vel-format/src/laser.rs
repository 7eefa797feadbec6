//! Laser scans: the angle of each range, and the codes that replace distances. See section 8 of
//! docs/formats/vel.md.

use std::f64::consts::TAU;

use crate::wire::LaserRange;

/// A laser scanner for which the angles of ranges are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scanner {
    /// Hokuyo URG-04LX, with 1024 steps per turn and a range of 20 mm to 5.6 m.
    Urg04Lx,
    /// Hokuyo UTM-30LX, with 1440 steps per turn. Its range is 30 m, but it measures up to 60 m.
    Utm30Lx,
}

impl Scanner {
    /// Returns the scanner for the sensor type that a message states. Returns `None` if the angles
    /// of that type are unknown.
    pub fn by_type(sensor_type: &[u8]) -> Option<Self> {
        match sensor_type {
            b"Hokuyo_URG-04LX" => Some(Self::Urg04Lx),
            b"Hokuyo_UTM-30LX" => Some(Self::Utm30Lx),
            _ => None,
        }
    }

    /// Returns the number of angular steps per turn of the scanner.
    const fn slits(self) -> u32 {
        match self {
            Self::Urg04Lx => 1024,
            Self::Utm30Lx => 1440,
        }
    }

    /// Returns the angular step at which the scanner points straight ahead.
    const fn front(self) -> i64 {
        match self {
            Self::Urg04Lx => 384,
            Self::Utm30Lx => 540,
        }
    }

    /// Returns the minimum distance in millimeters that the scanner measures. Smaller numbers are
    /// codes.
    const fn min_range(self) -> u32 {
        match self {
            Self::Urg04Lx => 20,
            Self::Utm30Lx => 23,
        }
    }

    /// Returns the minimum and maximum distance in meters that the scanner measures, which it
    /// reports as `DMIN` and `DMAX`.
    pub fn limits(self) -> [f64; 2] {
        let max = match self {
            Self::Urg04Lx => 5.6,
            Self::Utm30Lx => 60.0,
        };
        [f64::from(self.min_range()) / 1000.0, max]
    }

    /// Returns the meaning of a code that the scanner stores instead of a distance.
    pub const fn code(self, code: u32) -> &'static str {
        match (self, code) {
            (Self::Urg04Lx, 0) => "perhaps beyond the range",
            (Self::Urg04Lx, 1 | 2) => "weak return",
            (Self::Urg04Lx, 18) => "strong reflection",
            (Self::Urg04Lx, 19) => "not measurable",
            (Self::Utm30Lx, 1) => "no object",
            (Self::Utm30Lx, 2) => "too near",
            (Self::Utm30Lx, 3) => "interference",
            (Self::Utm30Lx, 4) => "out of the near range",
            _ => "other",
        }
    }

    /// Returns the angular step of the first range in a scan of `count` ranges. If the step is not
    /// known for this count, the middle of the scan is assumed to point straight ahead.
    #[expect(clippy::cast_possible_wrap, reason = "a scan is far shorter")]
    const fn first_step(self, count: usize) -> i64 {
        match (self, count) {
            (Self::Urg04Lx, 682) => 44,
            (Self::Urg04Lx, 726 | 769) | (Self::Utm30Lx, 1081) => 0,
            _ => self.front() - (count / 2) as i64,
        }
    }
}

/// A single range of a laser scan.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ScanPoint {
    /// Index of the range in the scan.
    pub index: usize,
    /// Angular step of the scanner at which the range was measured.
    pub step: i64,
    /// Angle in radians at which the range was measured, counterclockwise as seen from above. 0 is
    /// straight ahead.
    pub angle: f64,
    /// The stored number, which is a distance in millimeters or a code.
    pub raw: u32,
    /// Measured distance in meters. `None` if the stored number is a code.
    pub range: Option<f64>,
}

impl ScanPoint {
    /// Returns the position of the measured point in meters ahead and meters to the left. Returns
    /// `None` if the stored number is a code.
    pub fn xy(&self) -> Option<[f64; 2]> {
        let (sin, cos) = self.angle.sin_cos();
        self.range.map(|range| [range * cos, range * sin])
    }
}

impl<'a> LaserRange<'a> {
    /// Returns the scanner that made this scan. Returns `None` if its angles are unknown.
    pub fn scanner(&self) -> Option<Scanner> {
        Scanner::by_type(&self.sensor_type)
    }

    /// Returns the ranges of the scan with their angles. Returns `None` if the angles of the
    /// scanner are unknown.
    pub fn points(&self) -> Option<impl ExactSizeIterator<Item = ScanPoint> + use<'a>> {
        let scanner = self.scanner()?;
        let first = scanner.first_step(self.ranges.len());
        Some(self.ranges.0.iter().enumerate().map(move |(index, range)| {
            let step = first + i64::try_from(index).unwrap_or(i64::MAX);
            let raw = range.get();
            let angle = (step - scanner.front()) as f64 * TAU / f64::from(scanner.slits());
            let range = (raw >= scanner.min_range()).then(|| f64::from(raw) / 1000.0);
            ScanPoint { index, step, angle, raw, range }
        }))
    }
}
