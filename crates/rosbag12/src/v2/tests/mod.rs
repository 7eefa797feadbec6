//! Tests of scanning and indexing V2.0 bags. The bags are built by the tests, and most of them are
//! damaged.

mod connections;
mod index;
mod made;
mod records;
mod scan;
