//! Numbers and times as text, without an allocation each.

use rovelog::{Clock, Timestamp};

/// Buffers in which numbers become text.
pub(super) struct Numbers {
    float: zmij::Buffer,
    integer: itoa::Buffer,
    /// The last whole second that was written as a date, and its text up to the seconds: rows come in the
    /// order of time.
    second: (i64, String),
}

impl Numbers {
    pub(super) fn new() -> Self {
        Self { float: zmij::Buffer::new(), integer: itoa::Buffer::new(), second: (i64::MIN, String::new()) }
    }

    pub(super) fn integer(&mut self, value: impl itoa::Integer, out: &mut Vec<u8>) {
        out.extend_from_slice(self.integer.format(value).as_bytes());
    }

    /// The shortest digits that give the same number again at its width; `NaN`, `inf`, `-inf`.
    pub(super) fn float<F: zmij::Float + Into<f64> + Copy>(&mut self, value: F, out: &mut Vec<u8>) {
        let wide: f64 = value.into();
        if wide.is_finite() {
            out.extend_from_slice(self.float.format_finite(value).as_bytes());
        } else {
            out.extend_from_slice(if wide.is_nan() { b"NaN" } else { infinity(wide) });
        }
    }

    /// As numpy 2.4 prints it: the same digits, with an exponent below 1e-4 and from 1e16, of 32 bits from 1e6
    /// (older editions: from 1e16 too).
    pub(super) fn numpy<F: zmij::Float + Into<f64> + Copy>(&mut self, value: F, out: &mut Vec<u8>) {
        let wide: f64 = value.into();
        if !wide.is_finite() {
            out.extend_from_slice(if wide.is_nan() { b"nan" } else { infinity(wide) });
            return;
        }
        if wide.is_sign_negative() {
            out.push(b'-');
        }
        if wide == 0.0 {
            out.extend_from_slice(b"0.0");
            return;
        }
        let (digits, point) = digits(self.float.format_finite(value));
        let digits = digits.as_slice();
        let upper = if size_of::<F>() == 4 { 1e6 } else { 1e16 };
        if !(1e-4..upper).contains(&wide.abs()) {
            out.push(digits[0]);
            if digits.len() > 1 {
                out.push(b'.');
                out.extend_from_slice(&digits[1..]);
            }
            let exponent = point - 1;
            out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
            if exponent.abs() < 10 {
                out.push(b'0');
            }
            self.integer(exponent.unsigned_abs(), out);
            return;
        }
        match usize::try_from(point) {
            Ok(point) if point > 0 => {
                let whole = &digits[..point.min(digits.len())];
                out.extend_from_slice(whole);
                out.extend(std::iter::repeat_n(b'0', point - whole.len()));
                out.push(b'.');
                let part = &digits[whole.len()..];
                out.extend_from_slice(if part.is_empty() { b"0" } else { part });
            }
            _ => {
                out.extend_from_slice(b"0.");
                out.extend(std::iter::repeat_n(b'0', point.unsigned_abs() as usize));
                out.extend_from_slice(digits);
            }
        }
    }

    /// Nanoseconds of Unix time as RFC 3339 with nine digits.
    pub(super) fn date(&mut self, nanos: i64, out: &mut Vec<u8>) {
        let (second, part) = (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
        if self.second.0 != second || self.second.1.is_empty() {
            // A whole second before the range of nanoseconds has no timestamp of its own: the digits are cut off.
            let text = Timestamp::new(nanos, Clock::Unix).rfc3339().unwrap_or_default();
            let whole = text.split(['.', 'Z']).next().unwrap_or_default();
            self.second = (second, whole.to_owned());
        }
        out.extend_from_slice(self.second.1.as_bytes());
        let mut digits = *b".000000000Z";
        let mut rest = part;
        for digit in digits[1..10].iter_mut().rev() {
            *digit = b'0' + u8::try_from(rest % 10).unwrap_or(0);
            rest /= 10;
        }
        out.extend_from_slice(&digits);
    }
}

fn infinity(value: f64) -> &'static [u8] {
    if value > 0.0 { b"inf" } else { b"-inf" }
}

/// The digits of a number without its sign, and how many of them stand before the point.
struct Digits {
    bytes: [u8; 24],
    len: usize,
}

impl Digits {
    fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Takes `-1.25e-7`, `0.5` or `120.0` apart.
fn digits(text: &str) -> (Digits, i32) {
    let text = text.trim_start_matches('-');
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let mut point: i32 = exponent.parse().unwrap_or(0);
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits = Digits { bytes: [0; 24], len: 0 };
    point += i32::try_from(whole.len()).unwrap_or(0);
    for digit in whole.bytes().chain(part.bytes()) {
        if digits.len == 0 && digit == b'0' {
            point -= 1;
        } else if digits.len < digits.bytes.len() {
            digits.bytes[digits.len] = digit;
            digits.len += 1;
        }
    }
    while digits.len > 1 && digits.bytes[digits.len - 1] == b'0' {
        digits.len -= 1;
    }
    (digits, point)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numpy<F: zmij::Float + Into<f64> + Copy>(value: F) -> String {
        let mut out = Vec::new();
        Numbers::new().numpy(value, &mut out);
        String::from_utf8(out).unwrap()
    }

    /// What `str(numpy.float64(..))` and `str(numpy.float32(..))` of numpy 2.4 give.
    #[test]
    fn floats_as_numpy_prints_them() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-1.5, "-1.5"),
            (0.0001, "0.0001"),
            (0.000_099, "9.9e-05"),
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
            (1e-4, "1e-04"),
            (1e-5, "1e-05"),
            (3.4e38, "3.4e+38"),
        ] {
            assert_eq!(numpy(value), text);
        }
    }

    #[test]
    fn dates_have_nine_digits() {
        let mut numbers = Numbers::new();
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
