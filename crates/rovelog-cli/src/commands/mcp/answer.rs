//! Shortens answers, because an agent pays for every byte that it reads.

use rmcp::model::ContentBlock;
use serde_json::Value;

/// Maximum size in bytes of a text in a JSON string. With [`MAX_NOTES`] and the rest of the message,
/// an answer stays below 16 kB.
pub(super) const MAX_CONTENT: usize = 14_500;

/// Maximum size of the notes in bytes.
const MAX_NOTES: usize = 1_000;

/// Maximum number of shortened values that the notes name.
const MAX_NAMED: usize = 10;

/// Error if an answer cannot be shortened any further.
pub(super) const TOO_LARGE: &str = "the answer is too large; select topics, fields or a time range";

/// Maximum number of characters of a text in a shortened document.
const MAX_TEXT: usize = 1_000;

/// Number of keys that an object keeps, even if arrays become shorter.
const MIN_KEYS: usize = 40;

/// Answer of a tool.
pub(super) struct Answer {
    /// Text or picture.
    pub(super) content: ContentBlock,
    /// Messages of the command, and what was left out of the text.
    pub(super) notes: Vec<String>,
}

impl Answer {
    fn text(text: impl Into<String>, notes: Vec<String>) -> Self {
        Self { content: ContentBlock::text(text), notes }
    }

    /// Returns the answer as content of the protocol.
    pub(super) fn into_content(self) -> Vec<ContentBlock> {
        let notes = (!self.notes.is_empty()).then(|| ContentBlock::text(notes(&self.notes)));
        std::iter::once(self.content).chain(notes).collect()
    }
}

/// Returns a document, which is the JSON `text`, as an answer. If it is too large, it is shortened,
/// and the notes name the shortened values.
///
/// # Errors
/// Returns an error if the text is not JSON, or if the document is still too large without any
/// elements of arrays.
pub(super) fn fit(text: String, mut notes: Vec<String>) -> Result<Answer, String> {
    let fits = |text: &str| start(text, MAX_CONTENT).len() == text.len();
    let document: Value = serde_json::from_str(&text).map_err(|error| match self::notes(&notes) {
        messages if messages.is_empty() => format!("the answer of the command is not JSON: {error}"),
        messages => messages,
    })?;
    if fits(&text) {
        return Ok(Answer::text(text, notes));
    }
    // The largest number of elements with which the document fits.
    let (mut max, mut too_many) = (0, text.len());
    while too_many - max > 1 {
        let middle = max.midpoint(too_many);
        let shorter = cut(&document, middle, "", &mut Vec::new()).to_string();
        if fits(&shorter) { max = middle } else { too_many = middle }
    }
    let mut left_out = Vec::new();
    let text = cut(&document, max, "", &mut left_out).to_string();
    if !fits(&text) {
        return Err(TOO_LARGE.to_owned());
    }
    let more = left_out.len().saturating_sub(MAX_NAMED);
    left_out.truncate(MAX_NAMED);
    if more > 0 {
        left_out.push(format!("{more} other values are shortened"));
    }
    notes.push(format!(
        "left out: {}; select topics, fields or a time range to see more",
        left_out.join(", ")
    ));
    Ok(Answer::text(text, notes))
}

/// Returns `value` with at most `max` elements per array, and at most `max` keys per object, but at
/// least [`MIN_KEYS`]. Adds a sentence to `left_out` for each value that was shortened. `path` is the
/// path of the value in the document.
fn cut(value: &Value, max: usize, path: &str, left_out: &mut Vec<String>) -> Value {
    let mut count = |kept: usize, all: usize| {
        if kept < all {
            let name = if path.is_empty() { "the document" } else { path };
            left_out.push(format!("{name} has {kept} of {all}"));
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

/// Returns the whole records of a CSV text as an answer.
pub(super) fn rows(text: &str, mut notes: Vec<String>) -> Answer {
    let mut shown = start(text, MAX_CONTENT);
    if shown.len() < text.len() {
        let mut reader =
            csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(shown.as_bytes());
        // Ends of the records. The last one is not complete.
        let (mut ends, mut record) = (Vec::new(), csv::ByteRecord::new());
        while matches!(reader.read_byte_record(&mut record), Ok(true)) {
            ends.push(reader.position().byte());
        }
        ends.pop();
        shown = &shown[..usize::try_from(ends.last().copied().unwrap_or(0)).unwrap_or(0)];
        notes.push(match ends.len().saturating_sub(1) {
            0 => "no row fits into an answer; select fewer fields".to_owned(),
            count => format!(
                "only the first {count} rows fit; for more, set start to the t_ns of the last row followed by ns, such \
                 as 3278847000ns, and skip the rows that you have; the tool problems tells whether rows are lost"
            ),
        });
    }
    Answer::text(shown, notes)
}

/// Returns a list of texts as an answer.
pub(super) fn list(
    name: &str,
    texts: impl Iterator<Item = String>,
    notes: Vec<String>,
) -> Result<Answer, String> {
    let mut fields = serde_json::Map::new();
    fields.insert(name.to_owned(), texts.collect::<Vec<_>>().into());
    fit(Value::Object(fields).to_string(), notes)
}

/// Returns the start of `text` that fits into an answer.
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
