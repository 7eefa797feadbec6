//! Downloads the start and the end of a remote file. Prints how many bytes were downloaded with how
//! many requests: `cargo run -p rovelog-remote --example outline s3://bucket/log.ulg`.
#![expect(clippy::print_stdout, reason = "the example prints its result")]

use rovelog_core::internal::partial::{END, Ranges as _};
use rovelog_remote::{Address, Options, RemoteFile};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let text = std::env::args().nth(1).ok_or("name an address")?;
    let file = RemoteFile::open(&Address::parse(&text)?, &Options::default())?;
    file.fetch(std::slice::from_ref(&(0..END.min(file.size()))))?;
    let moved = file.moved();
    println!("{} of {} bytes in {} requests", moved.bytes, file.size(), moved.requests);
    Ok(())
}
