//! A page that is written section by section.

use std::fmt::{self, Write};

/// Body of the page below its head, and the sections for the navigation.
#[derive(Default)]
pub(super) struct Page {
    pub(super) text: String,
    pub(super) sections: Vec<(&'static str, &'static str)>,
}

impl Page {
    pub(super) fn push_str(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Starts a section; `title` is escaped and may be longer than the link to it.
    pub(super) fn section(&mut self, id: &'static str, link: &'static str, title: &str) {
        self.sections.push((id, link));
        let _ = writeln!(self, "<h2 id=\"{id}\">{title}</h2>");
    }
}

impl Write for Page {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.text.write_str(text)
    }
}
