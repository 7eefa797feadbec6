//! Counts the rows of a topic in all logs of a folder. The logs are divided into units of work,
//! which are called splits, and the rows are counted split by split: `cargo run -p rovelog-scale
//! --example many_logs -- FOLDER TOPIC`
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use std::collections::BTreeMap;
use std::error::Error;

use rovelog_scale::{Wanted, divide, find, read, schema};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, topic] = &*arguments else { return Err("usage: many_logs FOLDER TOPIC".into()) };
    let wanted = Wanted { topics: Some(vec![topic.clone()]), ..Wanted::default() };
    let logs = find(&[folder])?;
    let columns = schema(&logs, &wanted)?;
    let mut rows: BTreeMap<u32, usize> = BTreeMap::new();
    for split in divide(logs, &wanted, 1 << 20) {
        let ordinal = split.ordinal;
        for batch in read(split, columns.clone()) {
            *rows.entry(ordinal).or_default() += batch?.num_rows();
        }
    }
    for (split, rows) in rows {
        println!("split {split}: {rows} rows");
    }
    Ok(())
}
