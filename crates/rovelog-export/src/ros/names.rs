//! Names that ROS 1 and ROS 2 allow for fields, constants, types and topics.

use std::borrow::Cow;
use std::collections::HashSet;

/// Creates unique names for the fields or constants of a type.
pub(crate) struct Names {
    /// Names that are in use. Names that the output allows are in use from the start, so that no
    /// other field gets one of them.
    taken: HashSet<String>,
    /// Names that the output allows and that `next` has already returned.
    returned: HashSet<String>,
    /// Function that returns whether the output allows a name.
    allowed: fn(&str) -> bool,
}

impl Names {
    pub(crate) fn new<'a>(names: impl Iterator<Item = &'a str>, allowed: fn(&str) -> bool) -> Self {
        let taken = names.filter(|name| allowed(name)).map(str::to_owned).collect();
        Self { taken, returned: HashSet::new(), allowed }
    }

    /// Returns the name if the output allows it and it is the first of its kind. Otherwise, returns
    /// a similar name that the output allows and that is not in use.
    pub(crate) fn next<'a>(&mut self, name: &'a str, convert: impl FnOnce(&str) -> String) -> Cow<'a, str> {
        let is_allowed = (self.allowed)(name);
        if is_allowed && self.returned.insert(name.to_owned()) {
            return Cow::Borrowed(name);
        }
        let base = if is_allowed { name.to_owned() } else { convert(name) };
        let mut new = base.clone();
        for number in 2.. {
            if self.taken.insert(new.clone()) {
                break;
            }
            new = format!("{base}_{number}");
        }
        Cow::Owned(new)
    }
}

/// Returns whether ROS 2 allows a name for a field. Such a name has lowercase letters and digits,
/// starts with a letter, and has single underscores between words.
pub(crate) fn is_field_name(name: &str) -> bool {
    let of_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(of_name)
        && !name.contains("__")
        && !name.ends_with('_')
}

/// Returns whether ROS 2 allows a name for a constant. The rules are the same as for fields, except
/// that letters are uppercase.
#[cfg_attr(not(feature = "mcap"), expect(dead_code, reason = "only ROS 2 messages need it"))]
pub(crate) fn is_constant_name(name: &str) -> bool {
    !name.contains(|c: char| c.is_ascii_lowercase()) && is_field_name(&name.to_ascii_lowercase())
}

/// Converts a name to snake case. For example, `cameraInfo` becomes `camera_info`, `D` becomes `d`,
/// and `_x` becomes `x`.
pub(crate) fn snake_case(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut out = String::with_capacity(name.len() + 4);
    for (i, c) in chars.iter().enumerate() {
        let before = i.checked_sub(1).map(|before| chars[before]);
        let next_is_lower = chars.get(i + 1).is_some_and(char::is_ascii_lowercase);
        let begins_word = c.is_ascii_uppercase()
            && before.is_some_and(|before| !before.is_ascii_uppercase() || next_is_lower);
        if (begins_word || !c.is_ascii_alphanumeric()) && !out.is_empty() && !out.ends_with('_') {
            out.push('_');
        }
        if c.is_ascii_alphanumeric() {
            out.push(c.to_ascii_lowercase());
        }
    }
    let out = out.trim_end_matches('_');
    if out.starts_with(|c: char| c.is_ascii_lowercase()) {
        out.to_owned()
    } else {
        format!("f_{out}").trim_end_matches('_').to_owned()
    }
}

/// Converts a name to one that ROS allows in topics. It has single underscores between words, and
/// starts with a letter. For example, `battery_status/1` becomes `battery_status_1`. Cameras may have
/// negative numbers, so `camera/-1` becomes `camera_minus_1`.
pub(crate) fn topic_word(name: &str) -> String {
    let name = name.replace("/-", "/minus_");
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let out = words.collect::<Vec<_>>().join("_");
    if out.starts_with(|c: char| c.is_ascii_alphabetic()) { out } else { format!("t_{out}") }
}

/// Converts a name to one that ROS allows for a message type. For example, `vehicle_attitude`
/// becomes `VehicleAttitude`.
pub(crate) fn type_word(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric());
    let capitalized = words.flat_map(|word| {
        let mut chars = word.chars();
        chars.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(chars)
    });
    let out: String = capitalized.collect();
    if out.starts_with(|c: char| c.is_ascii_alphabetic()) { out } else { format!("T{out}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_converted_to_allowed_names() {
        for (old, new) in [
            ("D", "d"),
            ("frameId", "frame_id"),
            ("HTTPServer2Port", "http_server2_port"),
            ("_x__y_", "x_y"),
            ("2d", "f_2d"),
            ("__", "f"),
            ("größe", "gr_e"),
        ] {
            assert!(!is_field_name(old) && is_field_name(new));
            assert_eq!(snake_case(old), new);
        }
        assert!(is_constant_name("LEVEL_2") && !is_constant_name("Level") && !is_constant_name("A__B"));
        assert_eq!(topic_word("battery_status/1"), "battery_status_1");
        assert_eq!(topic_word("camera/-1"), "camera_minus_1");
        assert_eq!(topic_word("0x1F__2"), "t_0x1F_2");
        assert_eq!(
            (type_word("vehicle_attitude"), type_word("0x1F")),
            ("VehicleAttitude".into(), "T0x1F".into())
        );
        let mut names = Names::new(["K", "k", "_K"].into_iter(), is_field_name);
        let all = ["K", "k", "_K"].map(|name| names.next(name, snake_case).into_owned());
        assert_eq!(all, ["k_2", "k", "k_3"]);
    }
}
