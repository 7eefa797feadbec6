#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

mod arguments;
mod callbacks;
mod facts;
mod query;
mod types;
mod vectors;
