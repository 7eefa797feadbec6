//! ROS 1 definitions as ROS 2 definitions.
//!
//! Type names stay, except those that were renamed before ROS 2. Field and constant names that ROS
//! 2 forbids become the nearest allowed name, with the old name in a comment.

use std::borrow::Cow;
use std::collections::HashSet;

use rovelog::rosbag12::msg::{Array, Constant, FieldText, Primitive};

use super::{Line, Part, SEPARATOR, lines};

/// The ROS 2 types of times and durations.
const TIMES: [(Primitive, &str, &str); 2] = [
    (Primitive::Time, "builtin_interfaces/Time", "int32 sec\nuint32 nanosec\n"),
    (Primitive::Duration, "builtin_interfaces/Duration", "int32 sec\nuint32 nanosec\n"),
];

/// Returns the ROS 2 name of `pkg/Type`.
pub(crate) fn type_name(name: &str) -> String {
    name.split_once('/').map_or_else(|| name.to_owned(), |(package, name)| format!("{package}/msg/{name}"))
}

/// Returns the definition of a line as `ros2msg`: its own text, then those of its nested types.
pub(crate) fn definition(line: &Line<'_>) -> String {
    let mut out = String::new();
    let mut times = [false; 2];
    let mut section = |index: usize, out: &mut String| {
        let ty = &line.types().all()[index];
        for (used, (time, ..)) in times.iter_mut().zip(TIMES) {
            *used |= ty.message().fields.iter().any(|field| Primitive::named(&field.ty) == Some(time));
        }
        own_text(line, index, out);
    };
    if let Some(root) = line.types().all().len().checked_sub(1) {
        section(root, &mut out);
    }
    line.each_dependency(|index, name| {
        out.extend([SEPARATOR, "\nMSG: ", name, "\n"]);
        section(index, &mut out);
    });
    for (_, (_, name, text)) in times.iter().zip(TIMES).filter(|(used, _)| **used) {
        out.extend([SEPARATOR, "\nMSG: ", name, "\n", text]);
    }
    out
}

/// Writes the definition of one type, with its comments.
fn own_text(line: &Line<'_>, index: usize, out: &mut String) {
    let ty = &line.types().all()[index];
    let message = ty.message();
    let text = String::from_utf8_lossy(ty.text());
    let mut fields = Names::new(message.fields.iter().map(|field| &*field.name), is_field_name);
    let mut constants =
        Names::new(message.constants.iter().map(|constant| &*constant.name), is_constant_name);
    let mut nested = ty.nested().iter().enumerate();
    for (spelled, part) in lines(ty, &text) {
        match part {
            Part::Other => out.push_str(spelled.trim_end()),
            Part::Field(field) => {
                let (number, inside) = nested.next().map_or((0, None), |(number, inside)| (number, *inside));
                if line.is_header(index) && number == 0 {
                    continue;
                }
                let word = inside.map_or_else(|| primitive(&field.ty), |index| line.name(index));
                let name = fields.next(&field.name, snake_case);
                out.extend([word, &array(field), " ", &name]);
                let comment = spelled.split_once('#').map(|(_, comment)| comment.trim_end());
                let renamed = (*name != *field.name).then(|| format!(" {} in ROS 1", field.name));
                for comment in renamed.as_deref().into_iter().chain(comment) {
                    out.extend(["  #", comment]);
                }
            }
            Part::Constant(constant) => {
                let name = constants.next(&constant.name, |name| snake_case(name).to_ascii_uppercase());
                match value(constant) {
                    Some(value) => out.extend([primitive(&constant.ty), " ", &name, "=", &value]),
                    // The value does not fit its type: written as a comment.
                    None => out.extend(["# ", spelled.trim()]),
                }
            }
        }
        out.push('\n');
    }
}

/// Returns the ROS 2 name of a primitive: in ROS 1, a `byte` is signed and a `char` is not.
fn primitive(word: &str) -> &str {
    match (word, Primitive::named(word)) {
        ("byte", _) => "int8",
        ("char", _) => "uint8",
        (_, Some(Primitive::Time)) => TIMES[0].1,
        (_, Some(Primitive::Duration)) => TIMES[1].1,
        _ => word,
    }
}

fn array(field: &FieldText) -> String {
    match field.array {
        Array::One => String::new(),
        Array::Any => "[]".to_owned(),
        Array::Fixed(len) => format!("[{len}]"),
    }
}

/// Returns a constant's value; `None` if it does not fit its type.
fn value(constant: &Constant) -> Option<Cow<'_, str>> {
    let text = constant.value.as_str();
    match Primitive::named(&constant.ty)? {
        Primitive::String => {
            let quote = if text.contains('"') { '\'' } else { '"' };
            // Readers disagree on how a quote is escaped.
            (!text.contains(quote) && !text.ends_with('\\')).then(|| format!("{quote}{text}{quote}").into())
        }
        Primitive::Bool => match text {
            "True" | "true" | "1" => Some("true".into()),
            "False" | "false" | "0" => Some("false".into()),
            _ => None,
        },
        Primitive::Float32 | Primitive::Float64 => {
            text.parse().is_ok_and(f64::is_finite).then_some(text.into())
        }
        _ => text.parse::<i128>().is_ok().then_some(text.into()),
    }
}

/// Distinct names of one type's fields or constants.
struct Names {
    taken: HashSet<String>,
    allowed: fn(&str) -> bool,
}

impl Names {
    fn new<'a>(names: impl Iterator<Item = &'a str>, allowed: fn(&str) -> bool) -> Self {
        Self { taken: names.filter(|name| allowed(name)).map(str::to_owned).collect(), allowed }
    }

    /// Returns the name itself if it is allowed, otherwise an allowed name that no other field has.
    fn next<'a>(&mut self, name: &'a str, convert: impl FnOnce(&str) -> String) -> Cow<'a, str> {
        if (self.allowed)(name) {
            return Cow::Borrowed(name);
        }
        let base = convert(name);
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

/// Returns whether ROS 2 allows a name for a field: lower case, words joined by single `_`.
fn is_field_name(name: &str) -> bool {
    let of_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(of_name)
        && !name.contains("__")
        && !name.ends_with('_')
}

/// Returns whether ROS 2 allows a name for a constant: upper case, words joined by single `_`.
fn is_constant_name(name: &str) -> bool {
    !name.contains(|c: char| c.is_ascii_lowercase()) && is_field_name(&name.to_ascii_lowercase())
}

/// Converts a name to snake case: `cameraInfo` to `camera_info`, `D` to `d`, `_x` to `x`.
fn snake_case(name: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_what_ros_2_allows() {
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
        let mut names = Names::new(["K", "k", "_K"].into_iter(), is_field_name);
        let all = ["K", "k", "_K"].map(|name| names.next(name, snake_case).into_owned());
        assert_eq!(all, ["k_2", "k", "k_3"]);
    }

    #[test]
    fn constants_are_values_of_their_types() {
        let value = |ty: &str, text: &str| {
            let constant = Constant { ty: ty.to_owned(), name: String::new(), value: text.to_owned() };
            value(&constant).map(Cow::into_owned)
        };
        assert_eq!(value("string", "a # \"b\"").unwrap(), "'a # \"b\"'");
        assert_eq!(value("bool", "True").unwrap(), "true");
        assert_eq!(value("byte", "-1").unwrap(), "-1");
        assert_eq!(value("float32", "1e-5").unwrap(), "1e-5");
        assert_eq!((value("char", "x"), value("float64", "inf"), value("string", "'\"")), (None, None, None));
    }
}
