//! Estimates the width of text in the font of the pictures.

use std::borrow::Cow;

/// Advance widths of the characters from space to `~` in the font Inter Regular, in thousandths of
/// the font size. The table is needed in builds that write SVG without embedding the font, that is,
/// without the feature `pictures`. A test compares the table with the font.
#[rustfmt::skip]
const ADVANCES: [u16; 95] = [
    281, 278, 403, 631, 638, 812, 639, 222, 362, 362, 500, 659, 280, 460, 276, 357,
    625, 464, 605, 636, 642, 608, 624, 571, 616, 624, 276, 280, 659, 659, 659, 507,
    936, 676, 651, 727, 719, 598, 587, 743, 740, 264, 543, 652, 562, 889, 753, 761,
    635, 761, 639, 638, 642, 741, 676, 949, 642, 665, 625, 362, 357, 362, 469, 452,
    497, 564, 621, 558, 621, 582, 361, 609, 591, 237, 237, 544, 237, 869, 585, 597,
    609, 609, 372, 523, 364, 581, 557, 812, 540, 557, 541, 362, 327, 362, 659,
];

/// Ratio between the widths of bold and regular text. The ratio includes a reserve.
pub(super) const WIDE: f64 = 1.08;

/// Returns the width of a character as a fraction of the font size.
fn advance(c: char) -> f64 {
    let known = u32::from(c).checked_sub(0x20).and_then(|at| usize::try_from(at).ok());
    f64::from(known.and_then(|at| ADVANCES.get(at)).copied().unwrap_or(700)) / 1000.0
}

/// Returns the width of a text at the font size `size`. The width includes a reserve of 4 %,
/// because a viewer may substitute a wider font.
pub(super) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(advance).sum::<f64>() * size * 1.04
}

/// Returns the text. If it is wider than `space`, characters in its middle are removed. Both ends
/// remain, because most field names differ at their ends.
pub(super) fn fitted(text: &str, size: f64, space: f64) -> Cow<'_, str> {
    if width(text, size) <= space {
        return Cow::Borrowed(text);
    }
    let chars: Vec<char> = text.chars().collect();
    let mut kept = chars.len().saturating_sub(1);
    loop {
        let head: String = chars[..kept / 2].iter().collect();
        let tail: String = chars[chars.len() - kept.div_ceil(2)..].iter().collect();
        let shortened = format!("{head}…{tail}");
        if kept == 0 || width(&shortened, size) <= space {
            return Cow::Owned(shortened);
        }
        // Removing single characters from a very long name would take quadratic time, so half of
        // the characters are removed while the text is far too wide.
        kept -= if width(&shortened, size) > space * 2.0 { kept.div_ceil(2) } else { 1 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(fitted("abc", 10.0, 100.0), "abc");
        let short = fitted("vehicle_local_position_setpoint.acceleration[2]", 10.0, 120.0);
        assert!(short.starts_with("veh") && short.ends_with("[2]") && short.contains('…'), "{short}");
        assert!(width(&short, 10.0) <= 120.0);
        assert_eq!(fitted(&"x".repeat(100_000), 10.0, 0.0), "…");
    }
}
