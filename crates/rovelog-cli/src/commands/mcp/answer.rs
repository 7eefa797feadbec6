//! Shortens answers, because an agent pays for every byte that it reads.

use rmcp::model::ContentBlock;
use serde_json::Value;

/// Maximum size of a text in bytes. Together with [`MAX_NOTES`] and the rest of the message, an
/// answer has at most 16 kB.
pub(super) const MAX_CONTENT: usize = 14_500;

/// Maximum size of the notes in bytes.
const MAX_NOTES: usize = 1_000;

/// Maximum number of characters of a text in a shortened document.
const MAX_TEXT: usize = 1_000;

/// Number of keys that an object keeps, even if arrays become shorter.
const MIN_KEYS: usize = 40;

/// Answer of a tool.
pub(super) enum Answer {
    /// A text, and what was left out of it.
    Text { text: String, notes: Vec<String> },
    /// A PNG file in base64.
    Png(String),
}

impl Answer {
    /// Returns the answer as content of the protocol.
    pub(super) fn into_content(self) -> Vec<ContentBlock> {
        match self {
            Self::Text { text, notes } => {
                let notes = (!notes.is_empty()).then(|| ContentBlock::text(self::notes(&notes)));
                std::iter::once(ContentBlock::text(text)).chain(notes).collect()
            }
            Self::Png(picture) => vec![ContentBlock::image(picture, "image/png")],
        }
    }
}

/// Returns a document as an answer. If it is too large, its longest arrays and objects lose their
/// last elements, and the notes say how many there are.
pub(super) fn fit(document: &Value, mut notes: Vec<String>) -> Answer {
    let mut text = document.to_string();
    if start(&text, MAX_CONTENT).len() < text.len() {
        // The largest number of elements with which the document fits.
        let (mut fits, mut too_many) = (0, text.len());
        while too_many - fits > 1 {
            let middle = fits.midpoint(too_many);
            let shorter = cut(document, middle, "", &mut Vec::new()).to_string();
            if start(&shorter, MAX_CONTENT) == shorter { fits = middle } else { too_many = middle }
        }
        let mut left_out = Vec::new();
        text = cut(document, fits, "", &mut left_out).to_string();
        text.truncate(start(&text, MAX_CONTENT).len());
        left_out.truncate(10);
        notes.push(format!(
            "left out: {}; select topics, fields or a time range to see more",
            left_out.join(", ")
        ));
    }
    Answer::Text { text, notes }
}

/// Returns `value` with at most `max` elements in each array and object. `left_out` receives a text
/// for each that lost elements. `path` is the path of the value in the document.
fn cut(value: &Value, max: usize, path: &str, left_out: &mut Vec<String>) -> Value {
    let mut count = |kept: usize, all: usize| {
        if kept < all {
            left_out.push(format!("{path} has {kept} of {all}"));
        }
    };
    match value {
        Value::Array(values) => {
            count(max.min(values.len()), values.len());
            let values = values.iter().take(max);
            values.enumerate().map(|(i, value)| cut(value, max, &format!("{path}[{i}]"), left_out)).collect()
        }
        Value::Object(fields) => {
            let max_keys = max.max(MIN_KEYS);
            count(max_keys.min(fields.len()), fields.len());
            let fields = fields.iter().take(max_keys);
            let dot = if path.is_empty() { "" } else { "." };
            let fields = fields
                .map(|(key, value)| (key.clone(), cut(value, max, &format!("{path}{dot}{key}"), left_out)));
            Value::Object(fields.collect())
        }
        Value::String(text) if text.chars().count() > MAX_TEXT => {
            let start: String = text.chars().take(MAX_TEXT).collect();
            left_out.push(format!("{path} has {MAX_TEXT} of {} characters", text.chars().count()));
            Value::String(start)
        }
        value => value.clone(),
    }
}

/// Returns the whole lines of `text` as an answer.
pub(super) fn rows(text: &str, mut notes: Vec<String>) -> Answer {
    let mut rows = start(text, MAX_CONTENT);
    if rows.len() < text.len() {
        rows = &rows[..rows.rfind('\n').map_or(0, |at| at + 1)];
        let count = rows.lines().count().saturating_sub(1);
        notes.push(format!("these are the first {count} rows; for more, give a later start"));
    }
    Answer::Text { text: rows.to_owned(), notes }
}

/// Returns a list of texts as an answer.
pub(super) fn list(name: &str, texts: impl Iterator<Item = String>) -> Answer {
    let mut fields = serde_json::Map::new();
    fields.insert(name.to_owned(), texts.collect::<Vec<_>>().into());
    fit(&Value::Object(fields), Vec::new())
}

/// Returns a text that is not longer than an answer may be.
pub(super) fn shortened(text: &str) -> String {
    start(text, MAX_CONTENT).to_owned()
}

/// Returns the notes as one text.
pub(super) fn notes(lines: &[String]) -> String {
    start(&lines.join("\n"), MAX_NOTES).to_owned()
}

/// Returns the longest start of `text` that has at most `max` bytes in a JSON string.
fn start(text: &str, max: usize) -> &str {
    let mut size = 0;
    let end = text.char_indices().find(|(_, char)| {
        size += match char {
            '"' | '\\' | '\n' | '\r' | '\t' => 2,
            char if char.is_control() => 6,
            char => char.len_utf8(),
        };
        size > max
    });
    end.map_or(text, |(end, _)| &text[..end])
}
