//! Parser for expressions.
//!
//! Names of signals may contain `/`, so the text alone does not show whether `a/b` is one name or a
//! quotient. The parser therefore looks up names in the log while it parses. It tries the longest
//! name first: if the log has a signal `a/b`, that signal is used, otherwise `a` is divided by `b`.

use super::expression::{Binary, Node, OPERATORS, SERIES};
use super::function::{Arity, FUNCTIONS};
use super::unit::Unit;

/// Maximum nesting depth of an expression. The parser and the evaluation are recursive, so a deeper
/// expression could overflow the stack.
const DEPTH: usize = 64;

/// Resolves the names in an expression.
pub(super) trait Scope {
    /// Returns one node for a field, or one node for each member of an array or struct.
    ///
    /// # Errors
    /// Returns an error if no field has this name, or if the name is ambiguous.
    fn fields(&mut self, name: &str) -> Result<Vec<Node>, String>;

    /// Returns the value of a named state of a field, such as 5 for `Return`.
    fn state(&self, field: usize, name: &str) -> Option<i64>;
}

/// State of the parser.
pub(super) struct Parser<'a, 's> {
    text: &'a str,
    /// Offset of the next character in `text`.
    at: usize,
    /// Number of nested calls of [`Parser::expression`].
    depth: usize,
    /// Number of functions parsed so far whose result depends on earlier rows.
    series: usize,
    scope: &'s mut dyn Scope,
}

/// Precedence of the operator `not`. It is lower than that of comparisons, so `not a < b` means
/// `not (a < b)`.
const NOT: u8 = 3;
/// Precedence of a minus sign before a value. It is lower than that of powers, so `-x^2` means
/// `-(x^2)`.
const SIGN: u8 = 7;

/// Parses an expression. Returns the syntax tree, and the number of functions whose result depends
/// on earlier rows.
///
/// # Errors
/// Returns a message with the expression and the problem.
pub(super) fn parse(text: &str, scope: &mut dyn Scope) -> Result<(Node, usize), String> {
    let mut parser = Parser { text, at: 0, depth: 0, series: 0, scope };
    let node = parser.expression(0)?;
    match parser.rest() {
        "" => Ok((node, parser.series)),
        rest if text[..text.len() - rest.len()].ends_with(|c: char| c.is_ascii_digit()) => Err(format!(
            "{text}: an operator is missing before {rest}; in(SIGNAL, UNIT) converts a signal to another unit"
        )),
        rest => Err(format!("{text}: an operator is missing before {rest}")),
    }
}

/// Returns whether a character may occur in the name of a signal.
fn is_name(c: char) -> bool {
    c.is_alphanumeric() || "_./[]~:#".contains(c)
}

/// Returns whether a text starts with the operator `sign`. If the operator is a word, the word must
/// end there, so `order` does not start with the operator `or`.
fn starts_with(text: &str, sign: &str) -> bool {
    let is_whole = |after: &str| !sign.ends_with(char::is_alphabetic) || !after.starts_with(is_name);
    text.strip_prefix(sign).is_some_and(is_whole)
}

impl Parser<'_, '_> {
    /// Returns the text that has not been parsed yet, without leading spaces.
    fn rest(&self) -> &str {
        self.text[self.at..].trim_start()
    }

    /// Skips leading spaces and then `len` bytes.
    fn skip(&mut self, len: usize) {
        self.at = self.text.len() - self.rest().len() + len;
    }

    /// Skips `sign` if it comes next in the text. Returns whether it was skipped.
    fn take(&mut self, sign: &str) -> bool {
        let found = starts_with(self.rest(), sign);
        if found {
            self.skip(sign.len());
        }
        found
    }

    /// Parses an operand and the operators after it whose precedence is at least `binding`
    /// (precedence climbing).
    ///
    /// For example, in `1 + 2 * 3`, the right side of `+` is parsed with a precedence above that of
    /// `+`, so the right side is `2 * 3`. In `1 * 2 + 3`, the right side of `*` ends before `+`,
    /// because `+` has a lower precedence.
    fn expression(&mut self, binding: u8) -> Result<Node, String> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(format!("{}: the expression has more than {DEPTH} nested brackets", self.text));
        }
        let mut left = self.operand()?;
        // `a < b < c` would compare a truth value with `c`, which is never intended. A comparison
        // in brackets is a plain operand, so `(a < b) == (c < d)` is allowed.
        let mut is_comparison = false;
        while let Some((sign, binary, binds)) = self.operator().filter(|(_, _, binds)| *binds >= binding) {
            self.skip(sign.len());
            let state = match (&left, binary) {
                (Node::Field(field), Binary::Equal | Binary::NotEqual) => self.state(*field),
                _ => None,
            };
            // Powers are right-associative, so `2^3^2` is `2^9`. The exponent of a power may have a
            // sign, as in `2^-1`.
            let next = if binary == Binary::Pow { SIGN } else { binds + 1 };
            let right = match state {
                Some(state) => state,
                None => self.expression(next)?,
            };
            if binary.is_comparison() && is_comparison {
                return Err(format!("{}: join two comparisons with `and`", self.text));
            }
            is_comparison = binary.is_comparison();
            left = Node::Binary(binary, Box::new([left, right]));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn operator(&self) -> Option<(&'static str, Binary, u8)> {
        OPERATORS.iter().copied().find(|(sign, ..)| starts_with(self.rest(), sign))
    }

    /// Parses the name of a state on the right side of `==` or `!=`. Such a name may contain
    /// spaces, so the longest text that names a state of the field is used.
    fn state(&mut self, field: usize) -> Option<Node> {
        let rest = self.rest();
        let ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]).filter(|at| *at > 0);
        let ends = ends.filter(|end| !rest[*end..].starts_with(|c: char| c.is_alphanumeric() || c == '_'));
        let found = ends.filter_map(|end| {
            let name = rest[..end].trim_matches(['"', '\'']);
            Some((end, self.scope.state(field, name)?))
        });
        let (end, state) = found.last()?;
        self.skip(end);
        Some(Node::Number(state as f64))
    }

    /// Parses an operand: brackets, a unary operator, a number, a function call or a signal.
    fn operand(&mut self) -> Result<Node, String> {
        if self.take("(") {
            let node = self.expression(0)?;
            self.close()?;
            return Ok(node);
        }
        if self.take("-") {
            return Ok(Node::Negative(Box::new(self.expression(SIGN)?)));
        }
        if self.take("+") {
            return self.expression(SIGN);
        }
        // A text that starts with `!=` is not a negation, but a comparison whose left operand is
        // missing.
        if self.take("not") || (!self.rest().starts_with("!=") && self.take("!")) {
            return Ok(Node::Not(Box::new(self.expression(NOT)?)));
        }
        let rest = self.rest();
        if rest.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return self.number();
        }
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        if rest[word..].starts_with('(') && word > 0 {
            let name = rest[..word].to_owned();
            self.skip(word + 1);
            return self.call(&name);
        }
        let mut fields = self.fields()?;
        match (fields.pop(), fields.is_empty()) {
            (Some(node), true) => Ok(node),
            _ => Err(format!(
                "{}: the signal has {} values; name one of them, such as [0], or use norm, min or max",
                self.text,
                fields.len() + 1
            )),
        }
    }

    fn close(&mut self) -> Result<(), String> {
        if self.take(")") { Ok(()) } else { Err(format!("{}: a closing bracket ) is missing", self.text)) }
    }

    fn number(&mut self) -> Result<Node, String> {
        let rest = self.rest();
        let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let mut end = digits(rest);
        // An `e` after a number starts an exponent only if digits follow. Otherwise, it starts the
        // next word.
        if rest[end..].starts_with(['e', 'E']) {
            let sign = usize::from(rest[end + 1..].starts_with(['+', '-']));
            let exponent = digits(&rest[end + 1 + sign..]);
            end += if exponent > 0 { 1 + sign + exponent } else { 0 };
        }
        let number =
            rest[..end].parse().map_err(|_| format!("{}: {} is not a number", self.text, &rest[..end]));
        self.skip(end);
        Ok(Node::Number(number?))
    }

    /// Parses the arguments of the function `name`, and its closing bracket.
    fn call(&mut self, name: &str) -> Result<Node, String> {
        if name == "in" {
            return self.conversion();
        }
        let mut arguments = Vec::new();
        while !self.rest().starts_with(')') {
            arguments.append(&mut self.argument()?);
            if !self.take(",") {
                break;
            }
        }
        self.close()?;
        // Each use of a function that depends on earlier rows has its own state, so it gets the
        // next index.
        if let Some((_, series)) = SERIES.iter().find(|(known, _)| *known == name) {
            let [node] = <[Node; 1]>::try_from(arguments)
                .map_err(|_| format!("{}: {name} takes exactly one value", self.text))?;
            self.series += 1;
            return Ok(Node::Series(*series, Box::new(node), self.series - 1));
        }
        let Some(function) = FUNCTIONS.iter().find(|function| function.name == name) else {
            let names =
                FUNCTIONS.iter().map(|function| function.name).chain(SERIES.iter().map(|(name, _)| *name));
            let names: Vec<_> = names.collect();
            return Err(format!(
                "{}: the function {name} is unknown; the functions are {} and in",
                self.text,
                names.join(", ")
            ));
        };
        let fits = match function.arity {
            Arity::Exactly(count) => arguments.len() == count,
            Arity::Any => !arguments.is_empty(),
            Arity::Quaternion => arguments.len() == 4,
        };
        let what = match function.arity {
            Arity::Exactly(1) => "one value",
            Arity::Exactly(_) => "two values",
            Arity::Any => "values",
            Arity::Quaternion => "a quaternion: an array of four values, or x, y, z and w",
        };
        if fits {
            return Ok(Node::Call(function, arguments));
        }
        Err(format!("{}: {name} takes {what}, not {}", self.text, arguments.len()))
    }

    /// Parses the arguments of the function `in`. The second argument is a unit such as `km/h`,
    /// which is not an expression.
    fn conversion(&mut self) -> Result<Node, String> {
        let node = self.expression(0)?;
        let arguments = self.rest().strip_prefix(',').and_then(|rest| rest.split_once(')'));
        let Some((unit, _)) = arguments else {
            return Err(format!("{}: in needs a signal and a unit, such as in(speed, km/h)", self.text));
        };
        let (written, len) = (unit.trim().to_owned(), unit.len() + 2);
        let unit = Unit::parse(unit).ok_or_else(|| format!("{}: the unit {unit} is unknown", self.text))?;
        self.skip(len);
        Ok(Node::In(Box::new(node), unit, written))
    }

    /// Parses an argument of a function. It is an expression, or the name of an array or struct,
    /// which stands for all of its members.
    fn argument(&mut self) -> Result<Vec<Node>, String> {
        let end = self.rest().find([',', ')']).unwrap_or(0);
        let name = self.rest()[..end].trim();
        if !name.is_empty() && name.chars().all(is_name) && !name.starts_with(|c: char| c.is_ascii_digit()) {
            let name = name.to_owned();
            if let Ok(fields) = self.scope.fields(&name) {
                self.skip(end);
                return Ok(fields);
            }
        }
        Ok(vec![self.expression(0)?])
    }

    /// Parses the name of a signal. A `/` may be part of the name or a division, so the longest
    /// name that exists is used. For example, `a/b/c` is looked up first, then `a/b`, then `a`. A
    /// name in backticks is always used as a whole.
    fn fields(&mut self) -> Result<Vec<Node>, String> {
        let rest = self.rest();
        if let Some(quoted) = rest.strip_prefix('`') {
            let Some((name, _)) = quoted.split_once('`') else {
                return Err(format!("{}: a closing ` is missing", self.text));
            };
            let name = name.to_owned();
            self.skip(name.len() + 2);
            return self.scope.fields(&name);
        }
        let end = rest.find(|c: char| !is_name(c)).unwrap_or(rest.len());
        let mut name = rest[..end].to_owned();
        if name == "pi" {
            self.skip(2);
            return Ok(vec![Node::Number(std::f64::consts::PI)]);
        }
        if name.is_empty() {
            let what = if rest.is_empty() { "the end" } else { rest };
            return Err(format!("{}: a signal or a number is missing before {what}", self.text));
        }
        // If no name exists, the error describes the longest name, which the user most likely
        // meant.
        let mut first = None;
        loop {
            match self.scope.fields(&name) {
                Ok(fields) => {
                    self.skip(name.len());
                    return Ok(fields);
                }
                Err(error) => first.get_or_insert(error),
            };
            match name.rfind('/') {
                Some(slash) if slash > 0 => name.truncate(slash),
                _ => return Err(first.unwrap_or_default()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;

    use super::super::expression::{Memory, Rows};
    use super::*;

    /// A log with the fields `a` in V, `b` in A, `a/c`, and `q` with four values.
    struct Toy;

    impl Scope for Toy {
        fn fields(&mut self, name: &str) -> Result<Vec<Node>, String> {
            match name {
                "a" => Ok(vec![Node::Field(0)]),
                "b" => Ok(vec![Node::Field(1)]),
                "x/c" => Ok(vec![Node::Field(2)]),
                "q" => Ok((3..7).map(Node::Field).collect()),
                _ => Err(format!("no signal {name}")),
            }
        }

        fn state(&self, field: usize, name: &str) -> Option<i64> {
            (field == 0 && name.eq_ignore_ascii_case("Return to launch")).then_some(5)
        }
    }

    fn value(text: &str) -> f64 {
        let (node, series) = parse(text, &mut Toy).unwrap_or_else(|error| panic!("{error}"));
        let half = 0.5_f64.sqrt();
        let fields = [5.0, 2.0, 7.0, half, 0.0, 0.0, half].map(|value| vec![value]);
        let rows = Rows { times: &Int64Array::from(vec![0]), fields: &fields, units: &[None; 7] };
        rows.values(&node, &mut vec![Memory::default(); series])[0]
    }

    #[test]
    fn operators_bind_as_in_python() {
        for (text, expected) in [
            ("1 + 2 * 3", 7.0),
            ("(1 + 2) * 3", 9.0),
            ("-2 ^ 2", -4.0),
            ("2 ^ -1", 0.5),
            ("2 ^ 3 ^ 2", 512.0),
            ("8 / 4 / 2", 1.0),
            ("8 - 4 - 2", 2.0),
            ("a*b", 10.0),
            ("a/b", 2.5),
            ("x/c", 7.0),
            ("x/c/b", 3.5),
            ("1e-3 * a", 0.005),
            ("a < 6 and not b > 3", 1.0),
            ("a < 6 && b > 3 || a == 5", 1.0),
            ("a == Return to launch and b > 1", 1.0),
            ("a != return to launch", 0.0),
            ("not(a < 6)or(b > 3)", 0.0),
            ("(a < 6)and(not(b > 3))", 1.0),
            ("(a < 1) == (b < 1)", 1.0),
            ("(a < 6) != (b < 1)", 1.0),
            ("norm(3, 4)", 5.0),
            ("norm(q)", 1.0),
            ("max(a, b, 6)", 6.0),
            ("deg(yaw(q))", 90.0),
            ("atan2(a - 5, b) + pi - pi", 0.0),
        ] {
            assert!((value(text) - expected).abs() < 1e-12, "{text} is {}", value(text));
        }
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text: &str| parse(text, &mut Toy).unwrap_err();
        assert_eq!(error("a +"), "a +: a signal or a number is missing before the end");
        assert_eq!(error("(a"), "(a: a closing bracket ) is missing");
        assert_eq!(error("a b"), "a b: an operator is missing before b");
        assert_eq!(error("a + d/e"), "no signal d/e");
        assert_eq!(error("1 < a < 3"), "1 < a < 3: join two comparisons with `and`");
        assert_eq!(error("(1 < a) < 3 < b"), "(1 < a) < 3 < b: join two comparisons with `and`");
        assert_eq!(error("nota < 3"), "no signal nota");
        assert_eq!(error("a andb"), "a andb: an operator is missing before andb");
        assert!(error("q + 1").contains("the signal has 4 values"), "{}", error("q + 1"));
        assert!(error("roll(a)").contains("roll takes a quaternion"));
        assert!(error("sine(a)").contains("the function sine is unknown; the functions are abs, sqrt, sin"));
        assert!(error(&"(".repeat(1000)).contains("more than 64 nested brackets"));
        assert!(error(&"-".repeat(1000)).contains("more than 64 nested brackets"));
    }

    #[test]
    fn compared_side_has_a_field() {
        for (text, field) in [
            ("a < 50", 0),
            ("50 < a", 0),
            ("not (3 < b)", 1),
            ("1 + 2 < b and a > 1", 1),
            ("1 < 2 and b > 1", 1),
            ("a < b", 0),
        ] {
            let (node, _) = parse(text, &mut Toy).unwrap();
            assert_eq!(*node.compared(), Node::Field(field), "{text}");
        }
    }

    #[test]
    fn units_are_checked() {
        let units = [Unit::parse("V"), Unit::parse("mA"), None, None, None, None, None];
        let unit = |text: &str| {
            let (node, _) = parse(text, &mut Toy).unwrap();
            node.unit(&units)
        };
        assert_eq!(unit("a*b").unwrap().as_deref(), Some("mW"));
        assert_eq!(unit("integral(a*in(b, A))").unwrap().as_deref(), Some("J"));
        assert_eq!(unit("sqrt(a^2)").unwrap().as_deref(), Some("V"));
        assert_eq!(unit("derivative(2*a)").unwrap().as_deref(), Some("V/s"));
        assert_eq!(unit("a + 1").unwrap().as_deref(), Some("V"));
        assert_eq!(unit("a + x/c").unwrap().as_deref(), Some("V"));
        assert_eq!(unit("x/c * a").unwrap(), None);
        assert_eq!(unit("in(x/c, km/h)").unwrap().as_deref(), Some("km/h"));
        assert_eq!(unit("in(x/c,  km/min2 )").unwrap().as_deref(), Some("km/min²"));
        assert_eq!(unit("in(x/c, deg)").unwrap().as_deref(), Some("°"));
        assert_eq!(unit("2 * in(x/c, km/h)").unwrap(), None);
        let error = unit("a + b").unwrap_err();
        assert_eq!(error, "the units of V + mA differ; convert one of them with in(SIGNAL, UNIT)");
        assert!(unit("a < b").is_err() && unit("a < 3.4").is_ok());
        assert!(unit("sin(a)").is_err() && unit("in(a, m)").is_err());
    }
}
