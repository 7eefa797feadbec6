//! Functions for text output: colors, sizes, padding and paths.

use std::fmt::Display;
use std::path::Path;

use anstyle::{AnsiColor, Reset, Style};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

pub(crate) use rovelog::core::internal::text::{count, escape, is_terminal_control};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const RED: Style = AnsiColor::Red.on_default().bold();
const YELLOW: Style = AnsiColor::Yellow.on_default().bold();

/// Colors of the curves in a plot. If a plot has more curves, the colors are used again.
const LINES: [Style; 6] = [
    AnsiColor::Cyan.on_default(),
    AnsiColor::Yellow.on_default(),
    AnsiColor::Green.on_default(),
    AnsiColor::Magenta.on_default(),
    AnsiColor::Blue.on_default(),
    AnsiColor::Red.on_default(),
];

/// Formats text with colors if the contained value is true. Otherwise returns the text unchanged.
#[derive(Clone, Copy)]
pub(crate) struct Paint(pub(crate) bool);

impl Paint {
    fn with(self, style: Style, text: &str) -> String {
        if self.0 { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// Returns the length of the color code at the start of `text`, if it is a code that this
    /// program writes.
    pub(crate) fn code_at(self, text: &str) -> Option<usize> {
        let styles = [RED, YELLOW, BOLD, DIM].into_iter().chain(LINES);
        let mut codes = styles.map(|style| style.render().to_string()).chain([Reset.render().to_string()]);
        codes.find(|code| self.0 && text.starts_with(code)).map(|code| code.len())
    }

    /// Colors the text that belongs to the curve with index `line` in a plot.
    pub(crate) fn line(self, line: usize, text: &str) -> String {
        self.with(LINES[line % LINES.len()], text)
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.with(BOLD, text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.with(DIM, text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.with(RED, text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.with(YELLOW, text)
    }
}

/// Returns the width of `text` in columns of the terminal. East Asian characters take two columns,
/// and combining marks take none.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// Returns the number of columns of the terminal. The environment variable `COLUMNS` has priority.
/// Returns `None` if stdout is not a terminal and the variable is not set.
pub(crate) fn terminal_columns() -> Option<usize> {
    let chosen = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    chosen.or_else(|| terminal_size::terminal_size().map(|(width, _)| width.0.into()))
}

/// Divides `text` into lines of at most `columns` columns.
pub(crate) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for c in text.chars() {
        let wide = c.width().unwrap_or(0);
        if used + wide > columns && used > 0 {
            lines.push(String::new());
            used = 0;
        }
        used += wide;
        lines.last_mut().into_iter().for_each(|line| line.push(c));
    }
    lines
}

/// Pads `text` with spaces to a width of `columns`.
pub(crate) fn padded(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// Formats a size in bytes, for example as `512 B`, `92 kB` or `7.9 MB`. The units are powers of
/// 1000, as in `ls -h --si`.
pub(crate) fn size(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = "B";
    for next in ["kB", "MB", "GB", "TB"] {
        // 999.5 kB would be rounded to 1000 kB, so this size is shown as 1.0 MB.
        if value < 999.5 {
            break;
        }
        value /= 1000.0;
        unit = next;
    }
    let is_rounded = unit == "B" || (unit == "kB" && value >= 9.95);
    if is_rounded { format!("{value:.0} {unit}") } else { format!("{value:.1} {unit}") }
}

/// Parses a size such as `1000`, `500MB`, `8GiB` or `1.5 GB`.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 9] = [
        ("", 1),
        ("b", 1),
        ("kb", 1000),
        ("mb", 1_000_000),
        ("gb", 1_000_000_000),
        ("tb", 1_000_000_000_000),
        ("kib", 1 << 10),
        ("mib", 1 << 20),
        ("gib", 1 << 30),
    ];
    let (number, unit) =
        text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len()));
    let unit = unit.trim().to_ascii_lowercase();
    let unit = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, bytes)| *bytes);
    let bytes = number.parse::<f64>().ok().zip(unit).map(|(number, unit)| number * unit as f64);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked here")]
    match bytes.filter(|bytes| (1.0..9e18).contains(bytes)) {
        Some(bytes) => Ok(bytes as u64),
        None => Err("a size must have a number and a unit, such as 500MB or 8GiB".to_owned()),
    }
}

/// Truncates a name to at most 100 bytes, so that a file name made from it is not too long.
pub(crate) fn short(name: &str) -> &str {
    &name[..name.floor_char_boundary(100)]
}

/// Returns the text of a value, or an empty text if there is no value.
pub(crate) fn cell(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Lists the counts that are not zero, such as `2 high, 1 low`.
pub(crate) fn counts<T: Display + Default + PartialEq>(counts: &[(T, &str)]) -> String {
    let shown = counts.iter().filter(|(count, _)| *count != T::default());
    shown.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
}

/// Returns the last part of a message about the output, such as `; wrote flight.ulg`. Returns an
/// empty text if no file was written.
pub(crate) fn wrote(path: Option<&Path>) -> String {
    path.map_or_else(String::new, |path| format!("; wrote {}", path.display()))
}

/// Replaces the word `FILE` in `text` by the path `file`. The path is quoted for a shell if
/// necessary.
pub(crate) fn with_file(text: &str, file: &Path) -> String {
    let path = file.to_string_lossy();
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:@,%".contains(c);
    let quoted = if !path.is_empty() && path.chars().all(plain) {
        path.into_owned()
    } else {
        format!("'{}'", path.replace('\'', r"'\''"))
    };
    text.replace("FILE", &quoted)
}

/// Divides the name of a topic into a sort key, so that `imu/2` sorts before `imu/10`.
pub(crate) fn natural(name: &str) -> (&str, u64, &str) {
    match name.rsplit_once('/') {
        Some((base, instance)) => {
            let digits = instance.find(|c: char| !c.is_ascii_digit()).unwrap_or(instance.len());
            (base, instance[..digits].parse().unwrap_or(u64::MAX), &instance[digits..])
        }
        None => (name, 0, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_decimal_and_short() {
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (92_004, "92 kB"),
            (999_499, "999 kB"),
            (999_500, "1.0 MB"),
            (7_903_440, "7.9 MB"),
            (44_761_206, "44.8 MB"),
            (3_200_000_000, "3.2 GB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn sizes_are_read_with_both_kinds_of_units() {
        for (text, bytes) in
            [("1", 1), ("500MB", 500_000_000), ("8GiB", 8 << 30), ("1.5 kb", 1500), ("2kib", 2048), ("7b", 7)]
        {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "0", "-1", "GiB", "1 pound", "1e3", "99999999999tb", "1.2.3"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_path_is_quoted_if_a_shell_needs_it() {
        assert_eq!(with_file("see FILE", Path::new("logs/a_1.ulg")), "see logs/a_1.ulg");
        assert_eq!(with_file("see FILE", Path::new("my log's.ulg")), r"see 'my log'\''s.ulg'");
    }
}
