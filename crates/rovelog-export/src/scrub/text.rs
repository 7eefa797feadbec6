//! Positions and names in texts. The length of a text stays the same.

use std::ops::Range;
use std::sync::LazyLock;

use chrono::{Days, NaiveDate};
use regex::bytes::Regex;

use super::place::Place;

/// Parts of texts that identify a device or a person. The group `s` is masked.
static IDENTITIES: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let all = [
        // PX4GUID: 000200000000353338373138511600380018
        r"(?i)(?:guid|uuid)\W{1,3}(?<s>[0-9a-f]{16,})",
        // 00:11:22:33:44:55
        r"\b(?<s>(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2})\b",
        // /home/ann/ws/src/node.cpp
        r"(?:/home/|/Users/|\\Users\\)(?<s>[^/\\\s]+)",
        // /talker_annslaptop_4711_1500000000000, a name that ROS makes unique
        r"^/?[A-Za-z][A-Za-z0-9/]*_(?<s>[A-Za-z]\w*?)_\d+_\d{6,}$",
    ];
    all.iter().map(|pattern| Regex::new(pattern).expect("a valid pattern")).collect()
});

/// A sentence of NMEA 0183.
static SENTENCE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\$(?<body>[A-Z]{4,6},[ -#%-)+-~]*)(?:\*(?<sum>[0-9A-Fa-f]{2}))?").expect("a valid pattern")
});

static NUMBER: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"-?\d+(?:\.\d+)?").expect("a valid pattern"));

/// Replaces letters by `x` and digits by `0`.
pub(super) fn mask(text: &mut [u8]) {
    for byte in text {
        *byte = match *byte {
            b'0'..=b'9' => b'0',
            byte if byte.is_ascii_alphabetic() || !byte.is_ascii() => b'x',
            byte => byte,
        };
    }
}

/// Masks user names, host names and hardware ids.
pub(super) fn mask_identities(text: &mut [u8]) {
    let mut found = Vec::new();
    for pattern in IDENTITIES.iter() {
        found.extend(pattern.captures_iter(text).filter_map(|groups| Some(groups.name("s")?.range())));
    }
    for range in found {
        mask(&mut text[range]);
    }
}

/// Masks a latitude and a longitude in degrees or 1e-7 degrees. `is_near` tells whether a place is
/// near a position of the log.
pub(super) fn mask_coordinates(text: &mut [u8], is_near: impl Fn(Place) -> bool) {
    let number = |range: Range<usize>| {
        let stored = std::str::from_utf8(&text[range.clone()]).ok()?;
        let value: f64 = stored.parse().ok()?;
        Some((range, if stored.contains('.') { value } else { value / 1e7 }))
    };
    let numbers: Vec<_> = NUMBER.find_iter(text).filter_map(|found| number(found.range())).collect();
    let mut found = Vec::new();
    for (at, (latitude, north)) in numbers.iter().enumerate() {
        // A longitude is usually the next number, sometimes a few numbers before or after.
        let near = numbers.iter().skip(at.saturating_sub(3)).take(7);
        for (longitude, east) in near {
            if latitude != longitude && Place::new(*north, *east).is_some_and(&is_near) {
                found.extend([latitude.clone(), longitude.clone()]);
            }
        }
    }
    for range in found {
        mask(&mut text[range]);
    }
}

/// Moves the positions and the dates of NMEA sentences, and writes their checksums again. `apply`
/// moves a place.
pub(super) fn edit_sentences(text: &mut [u8], mut apply: impl FnMut(Place) -> Place, days: i64) {
    let found: Vec<_> = SENTENCE
        .captures_iter(text)
        .filter_map(|groups| Some((groups.name("body")?.range(), groups.name("sum").map(|sum| sum.range()))))
        .collect();
    for (body, sum) in found {
        let Ok(old) = std::str::from_utf8(&text[body.clone()]) else { continue };
        let mut fields: Vec<String> = old.split(',').map(str::to_owned).collect();
        for at in 1..fields.len().saturating_sub(3) {
            move_position(&mut fields[at..at + 4], &mut apply);
        }
        shift_date(&mut fields, days);
        let new = fields.join(",");
        if new == old || new.len() != body.len() {
            continue;
        }
        if let Some(sum) = sum {
            let value = new.bytes().fold(0, |sum, byte| sum ^ byte);
            text[sum].copy_from_slice(format!("{value:02X}").as_bytes());
        }
        text[body].copy_from_slice(new.as_bytes());
    }
}

/// Moves the position in four fields, such as `4717.1143`, `N`, `00833.9152` and `E`.
fn move_position(fields: &mut [String], apply: &mut impl FnMut(Place) -> Place) {
    let angle = |at: usize, [positive, negative]: [&str; 2]| {
        let value: f64 = fields[at].parse().ok().filter(|_| fields[at].contains('.'))?;
        let degrees = (value / 100.0).floor() + value % 100.0 / 60.0;
        if fields[at + 1] == positive {
            Some(degrees)
        } else {
            (fields[at + 1] == negative).then_some(-degrees)
        }
    };
    let place = angle(0, ["N", "S"]).zip(angle(2, ["E", "W"]));
    let Some(place) = place.and_then(|(latitude, longitude)| Place::new(latitude, longitude)) else { return };
    let Place { latitude, longitude } = apply(place);
    for (at, degrees, [positive, negative]) in [(0, latitude, ["N", "S"]), (2, longitude, ["E", "W"])] {
        let width = fields[at].len();
        let decimals = fields[at].split('.').nth(1).map_or(0, str::len);
        // Minutes are rounded before they are divided, so that they are never 60.
        let scale = 10_f64.powi(i32::try_from(decimals).unwrap_or(0));
        let minutes = (degrees.abs() * 60.0 * scale).round() / scale;
        let value = (minutes / 60.0).floor() * 100.0 + minutes % 60.0;
        fields[at] = format!("{value:0width$.decimals$}");
        (if degrees < 0.0 { negative } else { positive }).clone_into(&mut fields[at + 1]);
    }
}

/// Shifts the date of a sentence RMC, such as `230394`, or ZDA, which has three fields.
fn shift_date(fields: &mut [String], days: i64) {
    let kind = fields[0].clone();
    let number = |text: &str, at: Range<usize>| text.get(at)?.parse::<i32>().ok();
    if kind.ends_with("RMC")
        && let Some(date) = fields.get_mut(9)
        && let (Some(day), Some(month), Some(year)) =
            (number(date, 0..2), number(date, 2..4), number(date, 4..6))
        && let Some(new) = shift_days(year + 2000, month, day, days)
    {
        *date = new.format("%d%m%y").to_string();
    }
    if kind.ends_with("ZDA")
        && let [_, _, day, month, year, ..] = fields
        && let (Some(d), Some(m), Some(y)) = (number(day, 0..2), number(month, 0..2), number(year, 0..4))
        && let Some(new) = shift_days(y, m, d, days)
    {
        *day = new.format("%d").to_string();
        *month = new.format("%m").to_string();
        *year = new.format("%Y").to_string();
    }
}

/// Returns a date that is shifted by a number of days.
pub(super) fn shift_days(year: i32, month: i32, day: i32, days: i64) -> Option<NaiveDate> {
    let date = NaiveDate::from_ymd_opt(year, u32::try_from(month).ok()?, u32::try_from(day).ok()?)?;
    let count = Days::new(days.unsigned_abs());
    if days < 0 { date.checked_sub_days(count) } else { date.checked_add_days(count) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(text: &str, edit: impl FnOnce(&mut [u8])) -> String {
        let mut bytes = text.as_bytes().to_vec();
        edit(&mut bytes);
        String::from_utf8(bytes).expect("text")
    }

    /// The sentence RMC and its checksum are the example of the receiver manual of u-blox.
    #[test]
    fn sentences_get_new_positions_dates_and_checksums() {
        let text = "log: $GPRMC,083559.00,A,4717.11437,N,00833.91522,E,0.004,77.52,091202,,,A*57\r\n";
        let same = |place: Place| place;
        assert_eq!(edited(text, |bytes| edit_sentences(bytes, same, 0)), text);
        let south = |place: Place| Place { latitude: -place.latitude, longitude: 0.5 - place.longitude };
        assert_eq!(
            edited(text, |bytes| edit_sentences(bytes, south, -10)),
            "log: $GPRMC,083559.00,A,4717.11437,S,00803.91522,W,0.004,77.52,291102,,,A*5A\r\n"
        );
        // Minutes are rounded to the next degree, not to 60.
        let round = |_: Place| Place { latitude: 9.999_999_9, longitude: 0.0 };
        let text = "$GNGLL,4717.11,N,00833.91,E";
        assert_eq!(edited(text, |bytes| edit_sentences(bytes, round, 0)), "$GNGLL,1000.00,N,00000.00,E");
        let date = "$GPZDA,082710.00,16,09,2002,00,00*64";
        assert!(
            edited(date, |bytes| edit_sentences(bytes, same, 20)).starts_with("$GPZDA,082710.00,06,10,2002")
        );
    }

    #[test]
    fn coordinates_near_the_log_are_masked() {
        let near = |place: Place| (place.latitude - 47.3).abs() < 1.0 && (place.longitude - 8.5).abs() < 1.0;
        let masked = |text| edited(text, |bytes| mask_coordinates(bytes, near));
        assert_eq!(masked("home: 47.3977419, 8.5455938, 488.0"), "home: 00.0000000, 0.0000000, 488.0");
        assert_eq!(masked("lat 473977419 lon 85455938"), "lat 000000000 lon 00000000");
        assert_eq!(masked("voltage 47.3 V, current 22.1 A"), "voltage 47.3 V, current 22.1 A");
    }

    #[test]
    fn names_of_people_hosts_and_devices_are_masked() {
        let masked = |text| edited(text, mask_identities);
        assert_eq!(masked("PX4GUID: 00020000353338373138"), "PX4GUID: 00000000000000000000");
        assert_eq!(masked("FW git-hash: 00020000353338373138"), "FW git-hash: 00020000353338373138");
        assert_eq!(masked("wlan0 00:1a:2B:33:44:55 up"), "wlan0 00:0x:0x:00:00:00 up");
        assert_eq!(masked("in /home/ann/ws/a.cpp"), "in /home/xxx/ws/a.cpp");
        assert_eq!(masked("/play_annslaptop_4711_1500000000000"), "/play_xxxxxxxxxx_4711_1500000000000");
        assert_eq!(masked("/robot_state_publisher"), "/robot_state_publisher");
    }
}
