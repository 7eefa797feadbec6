//! Sizes as people write them.

use anyhow::{Context, Result};

/// Bytes of `400MB`, `64KiB`, `1.5 GB` or a plain number.
pub(crate) fn parse(text: &str) -> Result<u64> {
    let text = text.trim();
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let unit: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        other => anyhow::bail!("`{other}` is no unit of size (B, KB, MB, GB, KiB, MiB, GiB)"),
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let bad = || format!("`{text}` is no size such as 400MB");
    let whole: u64 = whole.parse().with_context(bad)?;
    let mut bytes = whole.checked_mul(unit).with_context(bad)?;
    if !part.is_empty() {
        let digits: u64 = part.parse().with_context(bad)?;
        let scale = u32::try_from(part.len()).ok().and_then(|n| 10u64.checked_pow(n)).with_context(bad)?;
        let share = u128::from(digits) * u128::from(unit) / u128::from(scale);
        let share = u64::try_from(share).with_context(bad)?;
        bytes = bytes.checked_add(share).with_context(bad)?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn units_are_decimal_unless_they_say_binary() {
        for (text, bytes) in [
            ("0", 0),
            ("17", 17),
            ("400MB", 400_000_000),
            ("64 KiB", 65_536),
            ("1.5g", 1_500_000_000),
            ("2GiB", 2_147_483_648),
        ] {
            assert_eq!(parse(text).unwrap(), bytes, "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "MB", "12 parsecs", "-3MB", "99999999999999999999", "1..5MB"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
