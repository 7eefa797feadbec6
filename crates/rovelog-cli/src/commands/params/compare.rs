//! Compares the parameters of two logs.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use rovelog::Value;
use serde::Serialize;

use super::model::{Param, differing, shown};
use crate::context::{Context, Format};
use crate::failure::Failure;
use crate::text::{escape, padded, width};

/// JSON document with the schema `rovelog.params_diff/1`, which compares the parameters of two
/// logs.
#[derive(Serialize)]
struct DiffDocument<'a> {
    schema: &'static str,
    a: String,
    b: String,
    differences: Vec<Difference<'a>>,
}

#[derive(Serialize)]
struct Difference<'a> {
    name: &'a str,
    a: Option<&'a Value>,
    b: Option<&'a Value>,
}

pub(super) fn compare(
    a: (&Path, &BTreeMap<String, Param>),
    b: (&Path, &BTreeMap<String, Param>),
    format: Format,
    context: &Context,
) -> Result<(), Failure> {
    let pairs: Vec<_> = differing(a.1, b.1).collect();
    let differences = pairs.iter().map(|(name, a, b)| Difference { name, a: *a, b: *b });
    let mut out = context.out();
    match format {
        Format::Text | Format::Qgc | Format::Octave => {
            let name_width = pairs.iter().map(|(name, ..)| width(&escape(name))).max().unwrap_or_default();
            for (name, a, b) in pairs {
                let name = padded(&escape(name), name_width);
                match (a, b) {
                    (Some(_), Some(_)) => writeln!(out, "~ {name}  {} -> {}", shown(a), shown(b))?,
                    (None, _) => writeln!(out, "+ {name}  {}", shown(b))?,
                    (_, None) => writeln!(out, "- {name}  {}", shown(a))?,
                }
            }
        }
        Format::Json => out.document(&DiffDocument {
            schema: "rovelog.params_diff/1",
            a: a.0.to_string_lossy().into_owned(),
            b: b.0.to_string_lossy().into_owned(),
            differences: differences.collect(),
        })?,
        Format::Ndjson => differences.into_iter().try_for_each(|difference| out.line(&difference))?,
        Format::Csv => {
            let rows = pairs.iter().map(|(name, a, b)| (name, shown(*a), shown(*b)));
            out.csv(["name", "a", "b"], rows)?;
        }
    }
    Ok(out.flush()?)
}
