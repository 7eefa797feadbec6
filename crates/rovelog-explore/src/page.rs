//! The files of the page that shows logs.
//!
//! The page needs one more script, which is loaded before `requests.js` and defines
//! `rovelogSource`. It passes requests to a server or to code in the browser.

use rovelog_export::page;
use rovelog_export::plot::Theme;
use serde_json::{Value, json};

/// A file of the page.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PageFile {
    /// Name by which other files of the page refer to this file.
    pub name: &'static str,
    /// Media type of the file.
    pub media_type: &'static str,
    /// Content of the file.
    pub text: &'static str,
}

const fn file(name: &'static str, media_type: &'static str, text: &'static str) -> PageFile {
    PageFile { name, media_type, text }
}

/// The files of the page. The page itself is the first file, and its name is empty.
pub const FILES: &[PageFile] = &[
    file("", "text/html; charset=utf-8", include_str!("../page/view.html")),
    file("icon.svg", "image/svg+xml", include_str!("../page/icon.svg")),
    file("view.css", "text/css", include_str!("../page/view.css")),
    file("page.css", "text/css", page::STYLE),
    file("uplot.css", "text/css", page::UPLOT_STYLE),
    file("uplot.js", "text/javascript", page::UPLOT),
    file("charts.js", "text/javascript", page::CHARTS),
    file("requests.js", "text/javascript", include_str!("../page/requests.js")),
    file("tree.js", "text/javascript", include_str!("../page/tree.js")),
    file("plots.js", "text/javascript", include_str!("../page/plots.js")),
    file("measure.js", "text/javascript", include_str!("../page/measure.js")),
    file("scene.js", "text/javascript", include_str!("../page/scene.js")),
    file("view.js", "text/javascript", include_str!("../page/view.js")),
];

/// Returns the answer to the first request of the page, as JSON. `logs` are the rows of the list of
/// logs: the name, the size in bytes, and the time of the last change in milliseconds of Unix time.
/// `arguments` are command-line options for the commands that the page shows.
pub fn start(logs: &[Value], arguments: &[String]) -> Value {
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "logs": logs,
        "arguments": arguments,
        "light": page::colors(Theme::Light),
        "dark": page::colors(Theme::Dark),
    })
}
