//! The pattern language of names: `*` is any text, `?` any character, `{a,b}` one of several,
//! `[0..3]` the elements 0 to 3. A pattern matches a name, and everything inside it.

/// Maximum number of names that one pattern with lists means.
const MOST: usize = 10_000;

/// A pattern for names of topics and fields.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    /// One pattern for each choice of the lists, with `*` and `?` only.
    choices: Vec<String>,
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// Returns what is wrong with it: a bracket that is not closed, too many choices.
    pub fn new(text: &str) -> Result<Self, String> {
        let mut choices = Vec::new();
        expand(text.trim(), &mut choices)?;
        Ok(Self { text: text.to_owned(), choices })
    }

    /// Returns the pattern as it was read.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether it is the name of `field` or of something around it.
    pub fn matches(&self, field: &str) -> bool {
        self.choices.iter().any(|choice| around(choice, field))
    }

    pub(super) fn choices(&self) -> &[String] {
        &self.choices
    }
}

/// Splits a list at the commas that are in no bracket: `q,{a,b}.x,atan2(y,x)`.
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

/// Adds a pattern without lists for each choice of its lists.
fn expand(text: &str, choices: &mut Vec<String>) -> Result<(), String> {
    if let Some(open) = text.find('{') {
        let close = closing(text, open).ok_or_else(|| format!("{text}: a {{ is not closed"))?;
        for choice in split_list(&text[open + 1..close]) {
            expand(&[&text[..open], choice, &text[close + 1..]].concat(), choices)?;
        }
        return Ok(());
    }
    let range = text.match_indices('[').find_map(|(open, _)| {
        let (inside, rest) = text[open + 1..].split_once(']')?;
        let (first, last) = inside.split_once("..")?;
        Some((open, first.parse::<usize>().ok()?, last.parse::<usize>().ok()?, rest))
    });
    if let Some((open, first, last, rest)) = range {
        if last < first || last - first >= MOST {
            return Err(format!("{text}: elements are given as [0..3], the first one first"));
        }
        for i in first..=last {
            expand(&format!("{}[{i}]{rest}", &text[..open]), choices)?;
        }
        return Ok(());
    }
    if choices.len() >= MOST {
        return Err(format!("a pattern means at most {MOST} names"));
    }
    choices.push(text.to_owned());
    Ok(())
}

/// Returns where the bracket at `open` is closed.
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

/// Returns whether a choice matches `name` or something around it, up to a `.` or `[`.
pub(super) fn around(choice: &str, name: &str) -> bool {
    is_match(choice, name)
        || name.match_indices(['.', '[']).any(|(end, _)| end > 0 && is_match(choice, &name[..end]))
}

/// Returns whether a choice is the whole of `name`.
pub(super) fn is_match(choice: &str, name: &str) -> bool {
    let (pattern, name) = (choice.as_bytes(), name.as_bytes());
    let (mut p, mut n) = (0, 0);
    // Where the last `*` is, and what it has taken so far.
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
                // One character may be several bytes.
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
    fn patterns_match_names_and_what_is_inside() {
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
        assert!(Pattern::new("{a,b").is_err() && Pattern::new("q[3..1]").is_err());
        assert!(Pattern::new("q[0..999999999]").is_err());
        let list: Vec<_> = split_list("q, {a,b}.x,atan2(y,x),").collect();
        assert_eq!(list, ["q", "{a,b}.x", "atan2(y,x)"]);
    }

    #[test]
    fn many_stars_take_no_time() {
        let name = "a".repeat(200);
        assert!(!is_match(&"a*".repeat(60).replace("a*a*a*", "a*b*"), &name));
        assert!(is_match("*é?", "xéü"));
    }
}
