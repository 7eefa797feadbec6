//! Fields that follow from others: the angles of quaternions, currents of two ranges as one.
//!
//! Each is an expression of fields of its own topic.

use std::collections::BTreeMap;

/// Returns the derived fields of a topic with these fields, each with its expression. A field that
/// the log has comes first: nothing derived replaces it.
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

/// Returns the quaternions among these fields, with the names of w, x, y and z.
fn quaternions(format: &str, fields: &[&str]) -> Vec<(String, [String; 4])> {
    let has = |name: &str| fields.contains(&name);
    let mut stems: Vec<(String, [String; 4])> = Vec::new();
    for field in fields {
        // PX4: arrays with w first. A VEL file has them in an order that is inferred, and in that
        // order in columns of their own.
        if let Some(stem) = field.strip_suffix("[0]").filter(|_| format == "ulog") {
            let last = stem.rsplit('.').next().unwrap_or(stem);
            let four = has(&format!("{stem}[3]")) && !has(&format!("{stem}[4]"));
            if four && last.split('_').any(|word| word == "q") {
                stems.push((stem.to_owned(), std::array::from_fn(|i| format!("{stem}[{i}]"))));
            }
        }
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

/// Returns the currents of an RLD log that were measured in a low and a high range, as the logger's
/// own software merges them: the low range where its bit says that it is valid.
fn currents(fields: &[&str]) -> Vec<(String, String)> {
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    // `I1L` is before `I1H`: the low range is more precise.
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
