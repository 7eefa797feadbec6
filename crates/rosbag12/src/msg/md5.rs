//! The two sums by which publishers and subscribers of ROS agree on a definition (section 6.4).

use std::fmt::Write as _;

use md5::{Digest, Md5};

use super::text::FullText;
use super::types::Types;

/// A sum of 32 lower-case hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sum(pub String);

/// How a definition agrees with the sum that a bag gives for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SumMatch {
    /// The sum of ROS 0.6 and later.
    V2,
    /// The older sum, over the raw text.
    V1,
    /// The bag gives `*`: any definition will do.
    Wildcard,
    /// Neither.
    No,
}

impl SumMatch {
    /// The word used in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V2 => "v2",
            Self::V1 => "v1",
            Self::Wildcard => "wildcard",
            Self::No => "differs",
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(32), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl Types {
    /// The sum of ROS 0.6 and later: over constants and fields, with the sums of nested types in their place.
    pub fn sum_v2(&self) -> Sum {
        self.sums_v2().pop().unwrap_or(Sum(String::new()))
    }

    /// The same of each of the types, in the order of [`all`](Self::all).
    pub fn sums_v2(&self) -> Vec<Sum> {
        let mut sums: Vec<String> = Vec::with_capacity(self.list.len());
        for ty in &self.list {
            let constants = ty.message.constants.iter().map(|c| format!("{} {}={}", c.ty, c.name, c.value));
            let fields = ty.message.fields.iter().zip(&ty.fields).map(|(field, nested)| match nested {
                Some(index) => format!("{} {}", sums[*index], field.name),
                None => format!("{} {}", field.spelled(), field.name),
            });
            let lines: Vec<_> = constants.chain(fields).collect();
            sums.push(hex(&Md5::digest(lines.join("\n").trim())));
        }
        sums.into_iter().map(Sum).collect()
    }

    /// The sum of ROS 0.5: over the raw texts, comments included, in the order of the full text.
    pub fn sum_v1(&self) -> Sum {
        let mut md5 = Md5::new();
        if let Some(root) = self.list.last() {
            md5.update(&root.raw);
        }
        for index in &self.in_text_order {
            md5.update(&self.list[*index].raw);
        }
        Sum(hex(&md5.finalize()))
    }

    /// How this definition, whose full text is `text`, agrees with `sum`.
    pub fn agrees(&self, sum: &[u8], text: &[u8]) -> SumMatch {
        match sum {
            b"*" => SumMatch::Wildcard,
            sum if sum == self.sum_v2().0.as_bytes() => SumMatch::V2,
            sum if sum == self.sum_v1().0.as_bytes() || sum == sum_of_text(text).0.as_bytes() => SumMatch::V1,
            _ => SumMatch::No,
        }
    }
}

/// The older sum in the order of the full text itself, whatever types are named in it.
fn sum_of_text(text: &[u8]) -> Sum {
    let full = FullText::split(text);
    let mut md5 = Md5::new();
    md5.update(full.root);
    full.sections.iter().for_each(|(_, text)| md5.update(text));
    Sum(hex(&md5.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types(name: &str, text: &str) -> Types {
        Types::resolve(name, text.as_bytes(), 64, &|_| None).unwrap()
    }

    #[test]
    fn sums_of_definitions_that_everybody_knows() {
        let string = types("std_msgs/String", "string data\n");
        assert_eq!(string.sum_v2().0, "992ce8a1687cec8c8bd883ec73ca41d1");
        assert_eq!(types("std_msgs/Empty", "").sum_v2().0, "d41d8cd98f00b204e9800998ecf8427e");
        let header = types("std_msgs/Header", "# c\nuint32 seq\ntime stamp\nstring frame_id\n");
        assert_eq!(header.sum_v2().0, "2176decaecbce78abc3b96ef049fabed");
        let twist = "Vector3  linear\nVector3  angular\n\n====\nMSG: geometry_msgs/Vector3\nfloat64 x\nfloat64 y\nfloat64 z";
        assert_eq!(types("geometry_msgs/Twist", twist).sum_v2().0, "9f195f881246fdfa2798d1d3eebca84a");
    }

    #[test]
    fn a_sum_is_compared_in_order() {
        let text = b"string data\n";
        let string = types("std_msgs/String", "string data\n");
        assert_eq!(string.agrees(b"992ce8a1687cec8c8bd883ec73ca41d1", text), SumMatch::V2);
        assert_eq!(string.agrees(string.sum_v1().0.as_bytes(), text), SumMatch::V1);
        assert_eq!(string.agrees(b"*", text), SumMatch::Wildcard);
        assert_eq!(string.agrees(b"00000000000000000000000000000000", text), SumMatch::No);
    }
}
