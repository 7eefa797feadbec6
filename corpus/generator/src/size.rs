//! Parses sizes in bytes with units.

use anyhow::{Context, Result, bail, ensure};

/// Parses a size such as `400MB`, `64KiB` or `1.5 GB`, or a plain number of bytes.
///
/// # Errors
///
/// Returns an error if the text is not a number with a known unit, or exceeds 10^15 bytes.
pub fn parse(text: &str) -> Result<u64> {
    let text = text.trim();
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let unit = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "kib" => 1024.0,
        "mib" => 1024.0 * 1024.0,
        "gib" => 1024.0 * 1024.0 * 1024.0,
        other => bail!("`{other}` is not a unit (B, KB, MB, GB, KiB, MiB, GiB)"),
    };
    let number: f64 = number.parse().with_context(|| format!("`{text}` is not a size such as 400MB"))?;
    let bytes = number * unit;
    ensure!(bytes < 1e15, "{text} is too large");
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative, and below 10^15"
    )]
    Ok(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn sizes_are_parsed() {
        for (text, bytes) in [("0", 0), ("400MB", 400_000_000), ("64 KiB", 65_536), ("1.5g", 1_500_000_000)] {
            assert_eq!(parse(text).unwrap(), bytes, "{text}");
        }
        for text in ["", "MB", "12 parsecs", "-3MB", "99999999999999999999", "1..5MB"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
