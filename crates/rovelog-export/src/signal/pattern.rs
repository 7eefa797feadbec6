//! Patterns for the names of topics and fields.
//!
//! - `*` matches any text, including an empty text.
//! - `?` matches one character.
//! - `{a,b}` matches `a` or `b`.
//! - `[0..3]` matches the array elements 0 to 3.
//!
//! A pattern for a struct or an array also matches its members. For example, `pos` matches `pos.x`,
//! and `q` matches `q[0]`.

/// Maximum number of globs that one pattern may expand to. Without a limit, a pattern such as
/// `{a,b}{a,b}{a,b}...` could exhaust the memory.
const MAX_CHOICES: usize = 10_000;

/// A pattern for names of topics and fields.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    /// The globs that the pattern expands to. The only special characters of a glob are `*` and
    /// `?`.
    pub(super) choices: Vec<String>,
}

impl Pattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// Returns a message if a bracket is not closed, or if the pattern expands to too many choices.
    pub fn new(text: &str) -> Result<Self, String> {
        let mut choices = Vec::new();
        expand(text.trim(), &mut choices)?;
        Ok(Self { text: text.to_owned(), choices })
    }

    /// Returns the text of the pattern.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether the pattern matches `field`, or matches a struct or array that contains
    /// `field`.
    pub fn matches(&self, field: &str) -> bool {
        self.choices.iter().any(|choice| around(choice, field))
    }
}

/// Splits a list at its commas. Commas within brackets are ignored, so `q,{a,b}.x,atan2(y,x)` has
/// three parts.
pub fn split_list(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    text.split(move |c| {
        match c {
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
    .map(str::trim)
    .filter(|part| !part.is_empty())
}

/// Expands `{a,b}` and `[0..3]` recursively, and appends the resulting globs to `choices`. For
/// example, `{a,b}[0..1]` becomes `a[0]`, `a[1]`, `b[0]`, `b[1]`.
fn expand(text: &str, choices: &mut Vec<String>) -> Result<(), String> {
    if let Some(open) = text.find('{') {
        let close = closing(text, open).ok_or_else(|| format!("{text}: a {{ has no closing }}"))?;
        let mut names = split_list(&text[open + 1..close]).peekable();
        if names.peek().is_none() {
            return Err(format!("{text}: {{}} contains no names"));
        }
        return names
            .try_for_each(|name| expand(&[&text[..open], name, &text[close + 1..]].concat(), choices));
    }
    // Brackets without a range, such as `q[1]`, are part of the name and stay unchanged.
    let range = text.match_indices('[').find_map(|(open, _)| {
        let (inside, rest) = text[open + 1..].split_once(']')?;
        let (first, last) = inside.split_once("..")?;
        Some((open, first.parse::<usize>().ok()?, last.parse::<usize>().ok()?, rest))
    });
    if let Some((open, first, last, rest)) = range {
        if last < first || last - first >= MAX_CHOICES {
            return Err(format!(
                "{text}: a range of elements is written as [0..3], with the smaller number first"
            ));
        }
        for i in first..=last {
            expand(&format!("{}[{i}]{rest}", &text[..open]), choices)?;
        }
        return Ok(());
    }
    if choices.len() >= MAX_CHOICES {
        return Err(format!("a pattern can stand for at most {MAX_CHOICES} names"));
    }
    choices.push(text.to_owned());
    Ok(())
}

/// Returns the offset of the closing brace that belongs to the opening brace at the offset `open`.
fn closing(text: &str, open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices().skip_while(|(at, _)| *at < open) {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => return Some(at),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Returns whether a glob matches `name` or one of its parents. The parents of `a.b[0]` are `a.b`
/// and `a`.
pub(super) fn around(choice: &str, name: &str) -> bool {
    is_match(choice, name)
        || name.match_indices(['.', '[']).any(|(end, _)| end > 0 && is_match(choice, &name[..end]))
}

/// Returns whether a glob matches the whole text `name`.
///
/// After a mismatch, the last `*` is extended by one byte, and matching resumes after it. Earlier
/// stars are never extended again, so the worst case is quadratic, not exponential.
///
/// For example, `*ab` is matched against `aab`. The star first matches nothing, then `a` matches
/// the first byte, but `b` does not match the second. The star is therefore extended to the first
/// `a`, and `ab` matches the rest.
pub(super) fn is_match(choice: &str, name: &str) -> bool {
    let (pattern, name) = (choice.as_bytes(), name.as_bytes());
    let (mut p, mut n) = (0, 0);
    // Offset of the last `*` in the pattern, and the offset in `name` at which the text for this
    // star ends.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(b'?') => {
                p += 1;
                n += 1;
                // `?` matches a character, which may consist of several UTF-8 bytes.
                while name.get(n).is_some_and(|byte| byte & 0xC0 == 0x80) {
                    n += 1;
                }
            }
            Some(byte) if *byte == name[n] => {
                p += 1;
                n += 1;
            }
            _ => {
                let Some((at, taken)) = star else { return false };
                star = Some((at, taken + 1));
                (p, n) = (at + 1, taken + 1);
            }
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names_and_their_members() {
        let found = |pattern: &str| {
            let pattern = Pattern::new(pattern).unwrap();
            let names = ["pos.x", "pos.y", "q[0]", "q[1]", "q[2]", "qq"];
            names.into_iter().filter(|name| pattern.matches(name)).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(found("pos"), "pos.x pos.y");
        assert_eq!(found("q"), "q[0] q[1] q[2]");
        assert_eq!(found("q[1..2]"), "q[1] q[2]");
        assert_eq!(found("{qq,pos.y}"), "pos.y qq");
        assert_eq!(found("?q"), "qq");
        assert_eq!(found("*.y"), "pos.y");
        assert_eq!(found("*"), "pos.x pos.y q[0] q[1] q[2] qq");
        assert_eq!((found("x"), found("po")), (String::new(), String::new()));
        assert!(Pattern::new("{}").is_err() && Pattern::new("a.{ , }").is_err());
        assert!(Pattern::new("{a,b").is_err() && Pattern::new("q[3..1]").is_err());
        assert!(Pattern::new("q[0..999999999]").is_err());
        let list: Vec<_> = split_list("q, {a,b}.x,atan2(y,x),").collect();
        assert_eq!(list, ["q", "{a,b}.x", "atan2(y,x)"]);
    }

    #[test]
    fn many_stars_are_matched_fast() {
        let name = "a".repeat(200);
        assert!(!is_match(&"a*".repeat(60).replace("a*a*a*", "a*b*"), &name));
        assert!(is_match("*é?", "xéü"));
    }
}
