//! Splits an intact log into a part that is written once and a part that can be repeated, with the
//! position of every time in it. Knows only the necessary parts of `ULog`: frames, and sizes of
//! fields.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};

use super::super::log::shape;

/// The parts of a log.
pub(super) struct Sections {
    /// Header, definitions, subscriptions.
    pub(super) once: Vec<u8>,
    /// Rows, texts, dropouts.
    pub(super) again: Vec<u8>,
    /// End offset of each message of `again`.
    pub(super) ends: Vec<usize>,
    /// Offsets in `again` of times that are not zero, and their values.
    pub(super) times: Vec<(usize, u64)>,
}

impl Sections {
    /// Splits a log; a file that is not intact is refused.
    pub(super) fn of(log: &[u8]) -> Result<Self> {
        ensure!(log.starts_with(b"ULog\x01\x12\x35"), "not a ULog");
        let (header, mut rest) = log.split_at_checked(16).context("no whole header")?;
        let mut sections =
            Self { once: header.to_vec(), again: Vec::new(), ends: Vec::new(), times: Vec::new() };
        let mut formats: BTreeMap<String, String> = BTreeMap::new();
        let mut time_at: BTreeMap<u16, Option<usize>> = BTreeMap::new();
        while let Some((&[low, high, kind], body)) = rest.split_first_chunk() {
            let size = usize::from(u16::from_le_bytes([low, high]));
            let Some((payload, behind)) = body.split_at_checked(size) else {
                break; // cut: what is cut is not repeated
            };
            let message = &rest[..3 + size];
            rest = behind;
            match kind {
                b'B' => ensure!(
                    payload.get(8).is_some_and(|bits| bits & 1 == 0),
                    "a log with appended data cannot be repeated"
                ),
                b'F' => {
                    let text = std::str::from_utf8(payload)?;
                    let (name, fields) = text.split_once(':').context("a format without `:`")?;
                    formats.insert(name.to_owned(), fields.to_owned());
                }
                b'A' => {
                    let (id, name) = payload.split_at_checked(3).context("a short A")?;
                    let name = std::str::from_utf8(name)?;
                    let id = u16::from_le_bytes([id[1], id[2]]);
                    ensure!(formats.contains_key(name), "a subscription to no format");
                    let place = shape(&formats, name).place("timestamp");
                    ensure!(place.is_none_or(|place| place.1 == 8), "{name} has a narrow timestamp");
                    time_at.insert(id, place.map(|place| place.0));
                }
                b'D' => {
                    let id = payload.first_chunk().context("a short D")?;
                    let at = time_at.get(&u16::from_le_bytes(*id));
                    let at = at.context("a row of an unknown id")?;
                    sections.repeat(message, at.map(|at| 3 + 2 + at));
                    continue;
                }
                b'L' => {
                    sections.repeat(message, Some(3 + 1));
                    continue;
                }
                b'O' => {
                    sections.repeat(message, None);
                    continue;
                }
                // A sync does not affect other messages; the others belong to one position in time.
                b'S' | b'C' | b'R' => continue,
                _ => {}
            }
            sections.once.extend_from_slice(message);
        }
        Ok(sections)
    }

    fn repeat(&mut self, message: &[u8], time_at: Option<usize>) {
        let time = time_at.and_then(|at| message.get(at..)?.first_chunk());
        let us = time.copied().map_or(0, u64::from_le_bytes);
        if let Some(at) = time_at.filter(|_| us != 0) {
            self.times.push((self.again.len() + at, us));
        }
        self.again.extend_from_slice(message);
        self.ends.push(self.again.len());
    }

    /// Returns the first and the last time.
    pub(super) fn span(&self) -> Option<(u64, u64)> {
        let times = || self.times.iter().map(|time| time.1);
        times().min().zip(times().max())
    }

    /// Returns the time between repetitions in microseconds.
    pub(super) fn step_us(&self) -> u64 {
        self.span().map_or(0, |(first, last)| last - first + 1000)
    }
}
