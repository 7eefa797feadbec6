//! The two kinds of md5 sums that identify a message definition in ROS (section 6.4 of
//! docs/formats/rosbag.md).

use rovelog_core::internal::text::hex;
use rovelog_core::internal::wire::U32Le;
use zerocopy::FromBytes;

use super::text::FullText;
use super::types::Types;

/// An md5 sum as 32 lowercase hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sum(pub String);

/// Result of comparing a definition with the md5 sum in a bag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SumMatch {
    /// The md5 sum has the form of ROS 0.6 and later, and the definition matches.
    V2,
    /// The md5 sum has the form of ROS 0.5, which covers the raw text, and the definition matches.
    V1,
    /// The bag contains `*` instead of an md5 sum, which matches any definition.
    Wildcard,
    /// The md5 sum in the bag does not match the definition.
    No,
}

impl SumMatch {
    /// Returns the name of this result in text and JSON output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V2 => "v2",
            Self::V1 => "v1",
            Self::Wildcard => "wildcard",
            Self::No => "differs",
        }
    }
}

/// Returns the md5 sum of `text` as hexadecimal digits.
fn digits(text: &[u8]) -> String {
    hex(&md5(text), "")
}

/// Computes an MD5 hash (RFC 1321). The function is short, and a crate for MD5 would add seven
/// dependencies.
fn md5(text: &[u8]) -> [u8; 16] {
    const TURNS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below 2^32")]
    let constants: [u32; 64] =
        std::array::from_fn(|i| (((i + 1) as f64).sin().abs() * 4_294_967_296.0) as u32);
    let mut padded = text.to_vec();
    padded.push(0x80);
    padded.resize((padded.len() + 8).next_multiple_of(64) - 8, 0);
    padded.extend((8 * text.len() as u64).to_le_bytes());
    let mut state = [0x6745_2301_u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    for block in <[[U32Le; 16]]>::ref_from_bytes(&padded).expect("padded to whole blocks") {
        let [mut a, mut b, mut c, mut d] = state;
        for i in 0..64 {
            let (mixed, word) = match i / 16 {
                0 => ((b & c) | (!b & d), i),
                1 => ((d & b) | (!d & c), 5 * i + 1),
                2 => (b ^ c ^ d, 3 * i + 5),
                _ => (c ^ (b | !d), 7 * i),
            };
            let sum = a.wrapping_add(mixed).wrapping_add(constants[i]).wrapping_add(block[word % 16].get());
            (a, d, c, b) = (d, c, b, b.wrapping_add(sum.rotate_left(TURNS[i / 16][i % 4])));
        }
        for (state, sum) in state.iter_mut().zip([a, b, c, d]) {
            *state = state.wrapping_add(sum);
        }
    }
    zerocopy::transmute!(state.map(U32Le::new))
}

impl Types {
    /// Returns the md5 sum of the root type in the form of ROS 0.6 and later. The sum covers
    /// constants and fields, and each nested type is replaced by its md5 sum.
    pub fn sum_v2(&self) -> Sum {
        self.sums_v2().pop().unwrap_or(Sum(String::new()))
    }

    /// Returns the md5 sum of each type in the form of ROS 0.6 and later, in the order of
    /// [`all`](Self::all).
    pub fn sums_v2(&self) -> Vec<Sum> {
        let mut sums: Vec<String> = Vec::with_capacity(self.list.len());
        for ty in &self.list {
            let constants = ty.message.constants.iter().map(|c| format!("{} {}={}", c.ty, c.name, c.value));
            let fields = ty.message.fields.iter().zip(&ty.fields).map(|(field, nested)| match nested {
                Some(index) => format!("{} {}", sums[*index], field.name),
                None => format!("{} {}", field.spelled(), field.name),
            });
            let lines: Vec<_> = constants.chain(fields).collect();
            sums.push(digits(lines.join("\n").trim().as_bytes()));
        }
        sums.into_iter().map(Sum).collect()
    }

    /// Returns the md5 sum of the root type in the form of ROS 0.5. The sum covers the raw texts of
    /// all types including comments, in the order of the full text.
    pub fn sum_v1(&self) -> Sum {
        let nested = self.in_text_order.iter().map(|index| &self.list[*index]);
        let texts: Vec<&[u8]> = self.list.last().into_iter().chain(nested).map(|ty| &*ty.raw).collect();
        Sum(digits(&texts.concat()))
    }

    /// Compares this definition with the md5 sum `sum` from a bag. `text` is the full text of the
    /// definition.
    pub fn agrees(&self, sum: &[u8], text: &[u8]) -> SumMatch {
        match sum {
            b"*" => SumMatch::Wildcard,
            sum if sum == self.sum_v2().0.as_bytes() => SumMatch::V2,
            sum if sum == self.sum_v1().0.as_bytes() || sum == sum_of_text(text).0.as_bytes() => SumMatch::V1,
            _ => SumMatch::No,
        }
    }
}

/// Returns the md5 sum of the full text `text` in the form of ROS 0.5. The sum covers all types in
/// the text, even types that the root type does not need.
fn sum_of_text(text: &[u8]) -> Sum {
    let full = FullText::split(text);
    let texts: Vec<&[u8]> = full.sections.iter().map(|(_, text)| *text).collect();
    Sum(digits(&[full.root, &texts.concat()].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types(name: &str, text: &str) -> Types {
        Types::resolve(name, text.as_bytes(), 64, &|_| None).unwrap()
    }

    #[test]
    fn md5_matches_the_examples_in_the_rfc() {
        let numbers = "1234567890".repeat(8);
        for (text, sum) in [
            ("a", "0cc175b9c0f1b6a831c399e269772661"),
            ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
            ("abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"),
            (&numbers, "57edf4a22be3c955ac49da2e2107b67a"),
        ] {
            assert_eq!(digits(text.as_bytes()), sum, "{text}");
        }
    }

    #[test]
    fn sums_of_well_known_definitions() {
        let string = types("std_msgs/String", "string data\n");
        assert_eq!(string.sum_v2().0, "992ce8a1687cec8c8bd883ec73ca41d1");
        assert_eq!(types("std_msgs/Empty", "").sum_v2().0, "d41d8cd98f00b204e9800998ecf8427e");
        let header = types("std_msgs/Header", "# c\nuint32 seq\ntime stamp\nstring frame_id\n");
        assert_eq!(header.sum_v2().0, "2176decaecbce78abc3b96ef049fabed");
        let twist = "Vector3  linear\nVector3  angular\n\n====\nMSG: geometry_msgs/Vector3\nfloat64 x\nfloat64 y\nfloat64 z";
        assert_eq!(types("geometry_msgs/Twist", twist).sum_v2().0, "9f195f881246fdfa2798d1d3eebca84a");
    }

    #[test]
    fn the_newer_sum_is_compared_first() {
        let text = b"string data\n";
        let string = types("std_msgs/String", "string data\n");
        assert_eq!(string.agrees(b"992ce8a1687cec8c8bd883ec73ca41d1", text), SumMatch::V2);
        assert_eq!(string.agrees(string.sum_v1().0.as_bytes(), text), SumMatch::V1);
        assert_eq!(string.agrees(b"*", text), SumMatch::Wildcard);
        assert_eq!(string.agrees(b"00000000000000000000000000000000", text), SumMatch::No);
    }
}
