//! Derived fields: the Euler angles of quaternions, and RLD currents that are merged from a low and
//! a high range.

use std::collections::BTreeMap;

/// Returns the name and expression of each field that can be derived from `fields`. If the log has
/// a field with the name of a derived field, the derived field is omitted.
pub(super) fn derived(format: &str, fields: &[&str]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (stem, parts) in quaternions(format, fields) {
        for angle in ["roll", "pitch", "yaw"] {
            let name = if stem.is_empty() { angle.to_owned() } else { format!("{stem}.{angle}") };
            found.push((name, format!("{angle}({})", parts.join(","))));
        }
    }
    if format == "rld" {
        found.extend(currents(fields));
    }
    found.retain(|(name, _)| !fields.contains(&&**name));
    found
}

/// Returns the name of each quaternion among `fields`, and the names of its components w, x, y and
/// z.
fn quaternions(format: &str, fields: &[&str]) -> Vec<(String, [String; 4])> {
    let has = |name: &str| fields.contains(&name);
    let mut stems: Vec<(String, [String; 4])> = Vec::new();
    for field in fields {
        // PX4 stores quaternions as arrays with the component w first. VEL logs have separate
        // columns for the components, which are handled below.
        if let Some(stem) = field.strip_suffix("[0]").filter(|_| format == "ulog") {
            // Any array of four numbers could be a quaternion, so the field name decides: `q`,
            // `q_d` and `delta_q_reset` are quaternions, `quad` is not.
            let last = stem.rsplit('.').next().unwrap_or(stem);
            let four = has(&format!("{stem}[3]")) && !has(&format!("{stem}[4]"));
            if four && last.split('_').any(|word| word == "q") {
                stems.push((stem.to_owned(), std::array::from_fn(|i| format!("{stem}[{i}]"))));
            }
        }
        // The ROS type `geometry_msgs/Quaternion` has the members x, y, z and w.
        if let Some(stem) = field.strip_suffix(".w") {
            let parts = ["w", "x", "y", "z"].map(|part| format!("{stem}.{part}"));
            if parts.iter().all(|part| has(part)) {
                stems.push((stem.to_owned(), parts));
            }
        }
    }
    if format == "vel" && ["qw", "qx", "qy", "qz"].iter().all(|part| has(part)) {
        stems.push((String::new(), ["qw", "qx", "qy", "qz"].map(str::to_owned)));
    }
    stems
}

/// Merges the low and high range of each RLD current, as RocketLogger's own software does: the low
/// range is used wherever its valid bit is set. For example, `I1L` and `I1H` give `I1 =
/// coalesce(I1L,I1H)`.
fn currents(fields: &[&str]) -> Vec<(String, String)> {
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    // `coalesce` takes the first value that exists, so the more precise low range comes first.
    for range in ['L', 'H'] {
        for field in fields {
            if let Some(name) = field.strip_suffix(range)
                && name.starts_with('I')
                && name.len() > 1
                && name[1..].bytes().all(|byte| byte.is_ascii_digit())
            {
                found.entry(name).or_default().push(field);
            }
        }
    }
    found
        .into_iter()
        .map(|(name, ranges)| (name.to_owned(), format!("coalesce({})", ranges.join(","))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quaternions_and_currents_are_found() {
        let names = |format, fields: &[&str]| {
            derived(format, fields)
                .into_iter()
                .map(|(name, text)| format!("{name}={text}"))
                .collect::<Vec<_>>()
        };
        let q = ["timestamp", "q[0]", "q[1]", "q[2]", "q[3]", "quad[0]", "quad[3]"];
        assert_eq!(names("ulog", &q)[1], "q.pitch=pitch(q[0],q[1],q[2],q[3])");
        assert_eq!(names("ulog", &q).len(), 3);
        let pose = ["o.x", "o.y", "o.z", "o.w", "p.x", "p.y", "p.z"];
        assert_eq!(names("rosbag", &pose)[0], "o.roll=roll(o.w,o.x,o.y,o.z)");
        assert_eq!(names("vel", &["qw", "qx", "qy", "qz"])[2], "yaw=yaw(qw,qx,qy,qz)");
        let rld = ["V1", "I1H", "I1L", "I1L_valid", "I2H", "IB"];
        assert_eq!(names("rld", &rld), ["I1=coalesce(I1L,I1H)", "I2=coalesce(I2H)"]);
        assert!(names("rld", &["I1L", "I1H", "I1"]).is_empty());
    }
}
