//! Converts ROS 1 message definitions to ROS 2.
//!
//! ROS 2 has stricter rules for names. A field or constant with a name that ROS 2 does not allow is
//! renamed, and the old name is added as a comment. For example, `float64[9] D` becomes `float64[9]
//! d  # D in ROS 1`.

use std::borrow::Cow;

use rovelog::Scalar;
use rovelog::rosbag12::msg::{Array, Constant, FieldText, Primitive};

use super::names::{Names, is_constant_name, is_field_name, snake_case};
use super::{ExportedType, Part, SEPARATOR, lines};

/// Types of times and durations, which are primitives in ROS 1, but message types in ROS 2. Each
/// entry has the ROS 1 primitive, the name of the ROS 2 type, and its definition.
const TIMES: [(Primitive, &str, &str); 2] = [
    (Primitive::Time, "builtin_interfaces/Time", "int32 sec\nuint32 nanosec\n"),
    (Primitive::Duration, "builtin_interfaces/Duration", "int32 sec\nuint32 nanosec\n"),
];

/// Returns the ROS 2 name of a type, such as `pkg/msg/Type` for `pkg/Type`.
pub(crate) fn type_name(name: &str) -> String {
    name.split_once('/').map_or_else(|| name.to_owned(), |(package, name)| format!("{package}/msg/{name}"))
}

/// Returns the definition of a topic's type in the MCAP encoding `ros2msg`. This is the text of the
/// type, followed by the texts of its nested types.
pub(crate) fn definition(exported: &ExportedType<'_>) -> String {
    let mut out = String::new();
    let mut times = [false; 2];
    let mut section = |index: usize, out: &mut String| {
        let ty = &exported.types.all()[index];
        for (used, (time, ..)) in times.iter_mut().zip(TIMES) {
            *used |= ty.message().fields.iter().any(|field| Primitive::named(&field.ty) == Some(time));
        }
        own_text(exported, index, out);
    };
    if let Some(root) = exported.types.all().len().checked_sub(1) {
        section(root, &mut out);
    }
    exported.each_dependency(|index, name| {
        out.extend([SEPARATOR, "\nMSG: ", name, "\n"]);
        section(index, &mut out);
    });
    for (_, (_, name, text)) in times.iter().zip(TIMES).filter(|(used, _)| **used) {
        out.extend([SEPARATOR, "\nMSG: ", name, "\n", text]);
    }
    out
}

/// Writes the ROS 2 definition of a single type, including its comments.
fn own_text(exported: &ExportedType<'_>, index: usize, out: &mut String) {
    let ty = &exported.types.all()[index];
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
                // The first field of the standard header is `seq`, which ROS 2 does not have.
                if exported.is_header(index) && number == 0 {
                    continue;
                }
                let word = inside.map_or_else(|| primitive(&field.ty), |index| exported.name(index));
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
                    // The value does not fit the type, so the constant is written as a comment.
                    // Otherwise, ROS 2 would reject the whole definition.
                    None => out.extend(["# ", spelled.trim()]),
                }
            }
        }
        out.push('\n');
    }
}

/// Returns the ROS 2 name of a primitive type. In ROS 1, `byte` is a signed and `char` an unsigned
/// integer. In ROS 2, both names have a different meaning.
fn primitive(word: &str) -> &str {
    match (word, Primitive::named(word)) {
        ("byte", _) => "int8",
        ("char", _) => "uint8",
        (_, Some(Primitive::Time)) => TIMES[0].1,
        (_, Some(Primitive::Duration)) => TIMES[1].1,
        _ => word,
    }
}

/// Returns the array suffix that follows the type of a field, or an empty text if the field is no
/// array.
fn array(field: &FieldText) -> String {
    match field.array {
        Array::One => String::new(),
        Array::Any => "[]".to_owned(),
        Array::Fixed(len) => format!("[{len}]"),
    }
}

/// Returns the text for the value of a constant. Returns `None` if the value does not fit the type.
fn value(constant: &Constant) -> Option<Cow<'_, str>> {
    let text = constant.value.as_str();
    match Primitive::named(&constant.ty)? {
        Primitive::String => {
            let quote = if text.contains('"') { '\'' } else { '"' };
            // Strings are quoted in ROS 2. Readers handle escaped quotes in different ways, so a
            // string that needs an escaped quote is rejected.
            (!text.contains(quote) && !text.ends_with('\\')).then(|| format!("{quote}{text}{quote}").into())
        }
        Primitive::Scalar(Scalar::Bool) => match text {
            "True" | "true" | "1" => Some("true".into()),
            "False" | "false" | "0" => Some("false".into()),
            _ => None,
        },
        Primitive::Scalar(Scalar::Float32 | Scalar::Float64) => {
            text.parse().is_ok_and(f64::is_finite).then_some(text.into())
        }
        _ => text.parse::<i128>().is_ok().then_some(text.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
