//! Prints the address of a page with the logs of a folder, and answers until the program ends.

use rovelog_view::{View, ViewError, ViewOptions};

#[allow(clippy::print_stdout)]
fn main() -> Result<(), ViewError> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let view = View::open(&[folder], ViewOptions::default())?;
    println!("{} logs: {}", view.logs(), view.address());
    view.run()
}
