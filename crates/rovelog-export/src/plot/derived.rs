//! Signals that are computed of several fields of a row: `roll(q)`, `norm(accel)`, `power(1)`.

use std::collections::{BTreeSet, HashMap};

use rovelog::ulog_format::px4::roll_pitch_yaw;

use crate::leaf::Leaf;

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Derived {
    /// Angle of a unit quaternion in degrees: 0 roll, 1 pitch, 2 yaw, in the order Z, Y, X.
    Angle(usize),
    /// Length of a vector.
    Norm,
    /// Current of an RLD log: of the low range where that is valid, else of the high range.
    Current,
    /// The same current times the voltage of the same number.
    Power,
}

/// Names in the order in which they are listed.
const NAMES: [(&str, Derived); 6] = [
    ("roll", Derived::Angle(0)),
    ("pitch", Derived::Angle(1)),
    ("yaw", Derived::Angle(2)),
    ("norm", Derived::Norm),
    ("current", Derived::Current),
    ("power", Derived::Power),
];

impl Derived {
    /// Parses a name and its argument: `roll(q)` is of `q`.
    pub(super) fn parse(field: &str) -> Option<(Self, &str)> {
        let (name, argument) = field.strip_suffix(')')?.split_once('(')?;
        let (_, derived) = NAMES.iter().find(|(known, _)| *known == name)?;
        Some((*derived, argument))
    }

    /// Returns the fields that are needed, each by its possible names.
    fn parts(self, of: &str) -> Vec<Vec<String>> {
        let one = |parts: &[&str]| parts.iter().map(|part| format!("{of}{part}")).collect();
        match self {
            Self::Angle(_) => vec![one(&["[0]", "[1]", "[2]", "[3]"]), one(&[".w", ".x", ".y", ".z"])],
            Self::Norm => vec![one(&["[0]", "[1]", "[2]"]), one(&[".x", ".y", ".z"])],
            Self::Current => vec![vec![format!("I{of}H"), format!("I{of}L"), format!("I{of}L_valid")]],
            Self::Power => {
                let current = ["H", "L", "L_valid"].map(|range| format!("I{of}{range}"));
                vec![current.into_iter().chain([format!("V{of}")]).collect()]
            }
        }
    }

    /// Returns the fields as columns are selected by them.
    pub(super) fn paths(self, of: &str) -> Vec<String> {
        match self {
            Self::Angle(_) | Self::Norm => vec![of.to_owned()],
            Self::Current | Self::Power => self.parts(of).concat(),
        }
    }

    /// Returns the leaves that are needed, in the order of [`value`](Self::value).
    pub(super) fn leaves(self, of: &str, leaves: &HashMap<String, Leaf>) -> Option<Vec<Leaf>> {
        let all = |names: Vec<String>| names.iter().map(|name| leaves.get(name).cloned()).collect();
        self.parts(of).into_iter().find_map(all)
    }

    /// Computes the value of one row.
    pub(super) fn value(self, parts: &[f64]) -> f64 {
        let current = || if parts[2] == 0.0 { parts[0] } else { parts[1] };
        match self {
            Self::Angle(axis) => {
                #[expect(clippy::cast_possible_truncation, reason = "angles for a plot")]
                let angles = roll_pitch_yaw([0, 1, 2, 3].map(|i| parts[i] as f32));
                f64::from(angles[axis]).to_degrees()
            }
            Self::Norm => parts[..3].iter().map(|part| part * part).sum::<f64>().sqrt(),
            Self::Current => current(),
            Self::Power => current() * parts[3],
        }
    }

    /// Returns the unit; `of_parts` is that of the first field.
    pub(super) fn unit(self, of_parts: Option<String>) -> Option<String> {
        match self {
            Self::Angle(_) => Some("°".to_owned()),
            Self::Norm | Self::Current => of_parts,
            Self::Power => Some("W".to_owned()),
        }
    }
}

/// Returns the derived signals of a topic with these fields, in their order.
pub(super) fn names(fields: &[String], is_power_log: bool) -> Vec<String> {
    let all: BTreeSet<&str> = fields.iter().map(String::as_str).collect();
    let has = |name: &str| all.contains(name);
    let mut found = Vec::new();
    for field in fields {
        let vector = field.strip_suffix("[0]").map(|of| (of, has(&format!("{of}[3]")), format!("{of}[4]")));
        let parts = field.strip_suffix(".x").map(|of| (of, has(&format!("{of}.w")), String::new()));
        if let Some((of, four, fifth)) = vector.or(parts) {
            let name = of.rsplit('.').next().unwrap_or(of);
            let turns = name == "q" || name.starts_with("q_") || name == "orientation" || name == "rotation";
            let wanted: &[&str] = match (four, turns && !has(&fifth)) {
                (true, true) => &["roll", "pitch", "yaw"],
                (true, false) => &[],
                (false, _) => &["norm"],
            };
            let complete = |name: &&&str| {
                let derived = NAMES.iter().find(|known| known.0 == **name);
                derived.is_some_and(|(_, derived)| {
                    derived.parts(of).iter().any(|all| all.iter().all(|p| has(p)))
                })
            };
            found.extend(wanted.iter().filter(complete).map(|name| format!("{name}({of})")));
        }
        if let Some(of) =
            field.strip_prefix('I').and_then(|rest| rest.strip_suffix('H')).filter(|_| is_power_log)
        {
            for (name, derived) in &NAMES[4..] {
                if derived.parts(of).concat().iter().all(|part| has(part)) {
                    found.push(format!("{name}({of})"));
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_have_a_length_and_quaternions_have_angles() {
        let fields = |all: &[&str]| all.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let found = names(&fields(&["q[0]", "q[1]", "q[2]", "q[3]", "xyz[0]", "xyz[1]", "xyz[2]"]), false);
        assert_eq!(found, ["roll(q)", "pitch(q)", "yaw(q)", "norm(xyz)"]);
        let found = names(
            &fields(&["p.orientation.x", "p.orientation.y", "p.orientation.z", "p.orientation.w"]),
            false,
        );
        assert_eq!(found, ["roll(p.orientation)", "pitch(p.orientation)", "yaw(p.orientation)"]);
        let found =
            names(&fields(&["output[0]", "output[1]", "output[2]", "output[3]", "output[4]", "v.x"]), false);
        assert_eq!(found, [""; 0]);
        let found = names(&fields(&["I1H", "I1L", "I1L_valid", "V1"]), true);
        assert_eq!(found, ["current(1)", "power(1)"]);
    }

    #[test]
    fn values_follow_their_definitions() {
        assert_eq!(Derived::parse("roll(q_d)"), Some((Derived::Angle(0), "q_d")));
        assert_eq!((Derived::parse("roll"), Derived::parse("what(q)")), (None, None));
        assert!((Derived::Norm.value(&[2.0, 3.0, 6.0]) - 7.0).abs() < 1e-12);
        // A quarter turn about Z.
        let half = std::f64::consts::FRAC_1_SQRT_2;
        assert!((Derived::Angle(2).value(&[half, 0.0, 0.0, half]) - 90.0).abs() < 1e-4);
        assert!((Derived::Power.value(&[5.0, 2.0, 1.0, 3.0]) - 6.0).abs() < 1e-12);
        assert!((Derived::Power.value(&[5.0, 2.0, 0.0, 3.0]) - 15.0).abs() < 1e-12);
    }
}
