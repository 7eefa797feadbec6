//! Copies of logs that can be shared: positions are moved, and names and numbers of devices are
//! removed. All other bytes stay the same.

mod names;
mod number;
mod place;
mod report;
mod scrubber;
mod text;

use std::io::{self, Write};

use rovelog::core::internal::edit::Part;
use rovelog::{AnyLog, Error};

pub use place::{Move, Place};
pub use report::{Action, Change, Report};
use scrubber::{Scrubber, Survey};

/// The changes that a copy of a log contains.
#[derive(Clone, Debug, Default)]
pub struct ScrubOptions {
    /// The move of all positions. If it is `None`, only the positions of the log are found.
    pub positions: Option<Move>,
    /// Days to add to dates.
    pub days: i64,
    /// True to replace images and videos with zeros.
    pub drop_images: bool,
    /// True to mask all lines of consoles.
    pub mask_texts: bool,
    /// Names of topics, fields and values that stay unchanged.
    pub keep: Vec<String>,
    /// Names of topics, fields and values that are replaced with zeros.
    pub blank: Vec<String>,
}

/// Changes the values of a log. See the documentation of this module.
#[derive(Debug)]
pub struct Scrub<'a> {
    log: &'a AnyLog,
    survey: Survey,
}

impl<'a> Scrub<'a> {
    /// Finds the positions of a log.
    ///
    /// # Errors
    /// Returns an error if the log cannot be copied.
    pub fn new(log: &'a AnyLog) -> Result<Self, Error> {
        let (options, mut survey) = (ScrubOptions::default(), Survey::new(log));
        let mut scrubber = Scrubber::new(&options, &mut survey);
        log.rewrite(&mut |part, bytes| scrubber.edit(part, bytes), &mut io::sink())?;
        survey.finish();
        Ok(Self { log, survey })
    }

    /// Returns the first position in the region where most positions of the log are. Returns `None`
    /// if the log has no position.
    pub fn place(&self) -> Option<Place> {
        self.survey.main()
    }

    /// Masks positions, user names and device ids in a text, and returns the result.
    pub(crate) fn redact(&self, text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        text::edit_sentences(&mut bytes, |_| Place { latitude: 0.0, longitude: 0.0 }, 0);
        text::mask_coordinates(&mut bytes, |place| self.survey.is_near(place));
        text::mask_identities(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Writes the copy. If the report has doubts, the copy must not be published.
    ///
    /// # Errors
    /// Returns an error if writing fails.
    pub fn write(&self, options: &ScrubOptions, out: &mut dyn Write) -> Result<Report, Error> {
        let mut survey = self.survey.clone();
        let mut scrubber = Scrubber::new(options, &mut survey);
        let mut edit = |part: Part<'_>, bytes: &mut [u8]| scrubber.edit(part, bytes);
        self.log.rewrite(&mut edit, out)?;
        Ok(scrubber.report())
    }
}
