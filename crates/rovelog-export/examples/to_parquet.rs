//! Writes each topic of a log as a Parquet file. Usage:
//! `cargo run -p rovelog-export --example to_parquet -- LOG FOLDER`
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use std::path::PathBuf;

use rovelog::Select;
use rovelog_export::table::{self, Kind, TableOptions};
use rovelog_export::{Provenance, topic_names};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(path), Some(folder)) = (args.next(), args.next().map(PathBuf::from)) else {
        return Err("name a log and a folder".into());
    };
    let log = rovelog::open(&path)?;
    std::fs::create_dir_all(&folder)?;
    let topics: Vec<_> =
        log.topics().iter().filter(|topic| topic.count > 0 && topic.schema.is_some()).collect();
    let files = topic_names(&topics).into_iter().map(|name| folder.join(name + ".parquet"));
    let outputs = topics.iter().zip(files).map(|(topic, file)| Ok((*topic, std::fs::File::create(file)?)));
    let outputs = outputs.collect::<std::io::Result<Vec<_>>>()?;

    let how = (Kind::Parquet, &TableOptions::default());
    let (written, losses) =
        table::write(&*log, outputs, &Select::all(), how, &Provenance::new(path), &mut |_| ())?;
    for (topic, table) in topics.iter().zip(&written) {
        println!("{}: {} rows", topic.name, table.rows);
    }
    // A loss describes values that Parquet cannot represent.
    for loss in losses {
        println!("{} {}: {}", loss.topic, loss.column, loss.why);
    }
    Ok(())
}
