//! Shows the parameters of several logs as a table with a row for each log and a column for each
//! parameter.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;

use rovelog::Value;
use serde::Serialize;

use super::model::{Param, shown};
use crate::context::{Context, Format};
use crate::failure::Failure;
use crate::table::Table;

/// The parameters of one log in the JSON document `rovelog.params_table/1`.
#[derive(Serialize)]
struct Row<'a> {
    file: &'a str,
    params: BTreeMap<&'a str, Option<&'a Value>>,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    logs: Vec<Row<'a>>,
}

pub(super) fn write(
    logs: &[(String, BTreeMap<String, Param>)],
    format: Format,
    context: &Context,
) -> Result<(), Failure> {
    let names: BTreeSet<&str> =
        logs.iter().flat_map(|(_, params)| params.keys()).map(String::as_str).collect();
    let rows = logs.iter().map(|(file, params)| Row {
        file,
        params: params.iter().map(|(name, param)| (name.as_str(), param.value.as_ref())).collect(),
    });
    let cells = |(file, params): &(String, BTreeMap<String, Param>)| {
        let value = |name: &&str| shown(params.get(*name).and_then(|param| param.value.as_ref()));
        [file.clone()].into_iter().chain(names.iter().map(value)).collect::<Vec<_>>()
    };
    let mut out = context.out();
    match format {
        Format::Json => out.document(&Document { schema: "rovelog.params_table/1", logs: rows.collect() })?,
        Format::Ndjson => rows.into_iter().try_for_each(|row| out.document_line(&row))?,
        Format::Csv => {
            let mut csv = csv::Writer::from_writer(out);
            csv.write_record(["file"].into_iter().chain(names.iter().copied()))?;
            logs.iter().try_for_each(|log| csv.write_record(cells(log)))?;
            return Ok(csv.flush()?);
        }
        _ => {
            let mut table = Table::default().left(["FILE"]).right(names.iter().copied());
            for log in logs {
                table.row(cells(log));
            }
            table.write(&mut out)?;
        }
    }
    Ok(out.flush()?)
}
