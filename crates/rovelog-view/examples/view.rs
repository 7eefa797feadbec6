//! Prints the URL of a page that shows the logs of a folder, and serves this page until the program
//! ends.

use rovelog_view::{View, ViewError, ViewOptions};

#[allow(clippy::print_stdout)]
fn main() -> Result<(), ViewError> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let view = View::open(&[folder], ViewOptions::default())?;
    println!("{} logs: {}", view.logs(), view.address());
    view.run()
}
