//! Formats numbers and times as text without allocating memory for each of them.

use std::fmt;

use rovelog::{Clock, Scalar, Timestamp};

/// Displays nanoseconds as seconds with nine decimal places.
pub(crate) struct NineDecimals(pub(crate) i64);

impl fmt::Display for NineDecimals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, nanos) = (if self.0 < 0 { "-" } else { "" }, self.0.unsigned_abs());
        write!(f, "{sign}{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
    }
}

/// Converts numbers and times to text. The buffers are used again for each number.
pub(crate) struct Numbers {
    float: zmij::Buffer,
    integer: itoa::Buffer,
    /// Unix time in whole seconds of the last formatted time. Most rows are in time order, so
    /// consecutive rows often share the second.
    second: i64,
    /// Text for `second`. Empty before the first time.
    second_text: String,
}

impl Default for Numbers {
    fn default() -> Self {
        Self {
            float: zmij::Buffer::new(),
            integer: itoa::Buffer::new(),
            second: i64::MIN,
            second_text: String::new(),
        }
    }
}

impl Numbers {
    /// Writes a number or Boolean of a record. `bytes` are its little-endian bytes.
    #[inline]
    pub(crate) fn scalar(&mut self, scalar: Scalar, bytes: &[u8], out: &mut Vec<u8>) {
        macro_rules! read {
            ($ty:ty) => {
                <$ty>::from_le_bytes(*bytes.first_chunk().expect("as many bytes as a scalar has"))
            };
        }
        match scalar {
            Scalar::Bool => out.extend_from_slice(if bytes[0] == 0 { b"false" } else { b"true" }),
            Scalar::Int8 => self.integer(read!(i8), out),
            Scalar::UInt8 => self.integer(read!(u8), out),
            Scalar::Int16 => self.integer(read!(i16), out),
            Scalar::UInt16 => self.integer(read!(u16), out),
            Scalar::Int32 => self.integer(read!(i32), out),
            Scalar::UInt32 => self.integer(read!(u32), out),
            Scalar::Int64 => self.integer(read!(i64), out),
            Scalar::UInt64 => self.integer(read!(u64), out),
            Scalar::Float32 => self.float(read!(f32), out),
            Scalar::Float64 => self.float(read!(f64), out),
        }
    }

    pub(crate) fn integer(&mut self, value: impl itoa::Integer, out: &mut Vec<u8>) {
        append(self.integer.format(value).as_bytes(), out);
    }

    /// Writes a float with the fewest digits that convert back to the same value. Special values
    /// are written as `NaN`, `inf` and `-inf`.
    pub(crate) fn float<F: zmij::Float + Into<f64> + Copy>(&mut self, value: F, out: &mut Vec<u8>) {
        let wide: f64 = value.into();
        if wide.is_finite() {
            append(self.float.format_finite(value).as_bytes(), out);
        } else {
            out.extend_from_slice(if wide.is_nan() { b"NaN" } else { infinity(wide) });
        }
    }

    /// Writes a number in the format of `numpy` 2.4, with the fewest digits that convert back to
    /// the same value. Numbers with an absolute value below 1e-4 or of at least 1e16 have an
    /// exponent. For 32-bit floats, the upper limit is 1e6 instead of 1e16. Before version 2.4,
    /// `numpy` used 1e16 for 32-bit floats, too.
    pub(crate) fn numpy<F: zmij::Float + Into<f64> + Copy>(&mut self, value: F, out: &mut Vec<u8>) {
        let wide: f64 = value.into();
        if !wide.is_finite() {
            out.extend_from_slice(if wide.is_nan() { b"nan" } else { infinity(wide) });
            return;
        }
        let text = self.float.format_finite(value).as_bytes();
        let upper = if size_of::<F>() == 4 { 1e6 } else { 1e16 };
        let magnitude = wide.abs();
        if (1e-4..upper).contains(&magnitude) || magnitude == 0.0 {
            append(text, out);
        } else {
            let (mantissa, exponent) = scientific(text);
            for part in mantissa {
                append(part, out);
            }
            out.extend_from_slice(if magnitude < 1.0 { b"e-" } else { b"e+" });
            if exponent < 10 {
                out.push(b'0');
            }
            self.integer(exponent, out);
        }
    }

    /// Writes a Unix time in nanoseconds in the format of RFC 3339, with nine decimals.
    pub(crate) fn date(&mut self, nanos: i64, out: &mut Vec<u8>) {
        self.date_with(nanos, 9, out);
    }

    /// Writes a Unix time in nanoseconds in the format of RFC 3339. The number of decimals is 0, 3,
    /// 6 or 9, whichever is the smallest that represents the time exactly.
    pub(crate) fn short_date(&mut self, nanos: i64, out: &mut Vec<u8>) {
        let digits = match nanos {
            _ if nanos % 1_000_000_000 == 0 => 0,
            _ if nanos % 1_000_000 == 0 => 3,
            _ if nanos % 1000 == 0 => 6,
            _ => 9,
        };
        self.date_with(nanos, digits, out);
    }

    fn date_with(&mut self, nanos: i64, width: usize, out: &mut Vec<u8>) {
        let (second, mut part) = (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
        if self.second != second || self.second_text.is_empty() {
            // The start of the second may be too early for 64-bit nanoseconds. Therefore, the time
            // itself is formatted, and its decimals are removed.
            let text = Timestamp::new(nanos, Clock::Unix).rfc3339().unwrap_or_default();
            let until_second = text.split(['.', 'Z']).next().unwrap_or_default();
            (self.second, self.second_text) = (second, until_second.to_owned());
        }
        out.extend_from_slice(self.second_text.as_bytes());
        let mut digits = *b".000000000";
        for digit in digits[1..].iter_mut().rev() {
            *digit = b'0' + u8::try_from(part % 10).unwrap_or(0);
            part /= 10;
        }
        if width > 0 {
            out.extend_from_slice(&digits[..=width]);
        }
        out.push(b'Z');
    }
}

fn infinity(value: f64) -> &'static [u8] {
    if value > 0.0 { b"inf" } else { b"-inf" }
}

/// Splits a number such as `-1.25e-7`, `0.00125` or `1250.0` into its mantissa and the absolute
/// value of its exponent. The mantissa is returned in parts, which the caller concatenates. For
/// example, `0.00125` is 1.25e-3, so the parts are `1`, `.` and `25`, and the exponent is 3.
fn scientific(text: &[u8]) -> ([&[u8]; 5], u32) {
    let (sign, text) = text.split_at(usize::from(text.starts_with(b"-")));
    if let Some(e) = text.iter().position(|byte| *byte == b'e') {
        let digits = text[e + 1..].iter().filter(|byte| byte.is_ascii_digit());
        let exponent = digits.fold(0, |so_far, digit| so_far * 10 + u32::from(digit - b'0'));
        return ([sign, &text[..e], b"", b"", b""], exponent);
    }
    let point = text.iter().position(|byte| *byte == b'.').unwrap_or(text.len());
    let first = text.iter().position(|byte| !matches!(byte, b'0' | b'.')).unwrap_or(0);
    let last = text.iter().rposition(|byte| !matches!(byte, b'0' | b'.')).unwrap_or(0);
    let before = &text[first + 1..point.clamp(first + 1, last + 1)];
    let behind = &text[(point + 1).clamp(first + 1, last + 1)..=last];
    let dot: &[u8] = if last > first { b"." } else { b"" };
    let exponent = if first < point { point - 1 } else { first - point };
    ([sign, &text[first..=first], dot, before, behind], u32::try_from(exponent).unwrap_or(0))
}

/// Appends a short text to `out`. Copying 4 or 8 bytes inline is faster than calling `memcpy`. For
/// example, a text of 11 bytes is copied as its first 8 and its last 8 bytes, which overlap by 5.
#[inline]
fn append(text: &[u8], out: &mut Vec<u8>) {
    let end = out.len() + text.len();
    if let (Some(first), Some(last), 8..=16) = (text.first_chunk::<8>(), text.last_chunk::<8>(), text.len()) {
        out.extend_from_slice(first);
        out.truncate(end - 8);
        out.extend_from_slice(last);
    } else if let (Some(first), Some(last), 4..8) =
        (text.first_chunk::<4>(), text.last_chunk::<4>(), text.len())
    {
        out.extend_from_slice(first);
        out.truncate(end - 4);
        out.extend_from_slice(last);
    } else {
        out.extend_from_slice(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numpy<F: zmij::Float + Into<f64> + Copy>(value: F) -> String {
        let mut out = Vec::new();
        Numbers::default().numpy(value, &mut out);
        String::from_utf8(out).unwrap()
    }

    /// The expected texts are the output of `str(numpy.float64(..))` and `str(numpy.float32(..))`
    /// in numpy 2.4.
    #[test]
    fn floats_are_formatted_as_by_numpy() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-1.5, "-1.5"),
            (0.0001, "0.0001"),
            (0.000_099, "9.9e-05"),
            (-0.000_05, "-5e-05"),
            (1.234_567_890_123_456_7e-5, "1.2345678901234568e-05"),
            (-1.25e-7, "-1.25e-07"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.25e100, "1.25e+100"),
            (123_456.75, "123456.75"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(numpy(value), text);
        }
        for (value, text) in [
            (0.1f32, "0.1"),
            (999_999.0, "999999.0"),
            (4e6, "4e+06"),
            (16_777_216.0, "1.6777216e+07"),
            (1_234_567.5, "1.2345675e+06"),
            (-1e10, "-1e+10"),
            (1.5e12, "1.5e+12"),
            (1e13, "1e+13"),
            (-2.246_815_7e-7, "-2.2468157e-07"),
            (1.25e-6, "1.25e-06"),
            (1e-4, "1e-04"),
            (1e-5, "1e-05"),
            (3.4e38, "3.4e+38"),
        ] {
            assert_eq!(numpy(value), text);
        }
    }

    #[test]
    fn dates_have_nine_digits() {
        let mut numbers = Numbers::default();
        let mut text = |nanos| {
            let mut out = Vec::new();
            numbers.date(nanos, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(0), "1970-01-01T00:00:00.000000000Z");
        assert_eq!(text(1_779_278_465_000_000_001), "2026-05-20T12:01:05.000000001Z");
        assert_eq!(text(1_779_278_465_987_654_321), "2026-05-20T12:01:05.987654321Z");
        assert_eq!(text(-1), "1969-12-31T23:59:59.999999999Z");
        assert_eq!(text(i64::MIN), "1677-09-21T00:12:43.145224192Z");
    }
}
