//! All changes of a file in one source text: each change is a branch that its number turns on.

use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::{Context as _, Result};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

use super::{Change, Genre};

/// What a crate gets at its end: which change is on. It is asked in every branch.
pub(super) const SWITCH: &str = r#"
#[doc(hidden)]
pub(crate) fn __change(number: u32) -> bool {
    static ON: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    let on = || std::env::var("ROVELOG_CHANGE").ok().and_then(|on| on.parse().ok()).unwrap_or(u32::MAX);
    *ON.get_or_init(on) == number
}
"#;

/// A place of a file that can be changed.
#[derive(Clone, Debug)]
struct Site {
    range: Range<usize>,
    what: What,
    /// Numbers of changes, and what stands there instead.
    changes: Vec<(usize, String)>,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    /// An operator between these two.
    Binary(Range<usize>, Range<usize>),
    /// An operator before this.
    Unary(Range<usize>),
    /// The block of a function.
    Body,
    /// A pattern of a `match`, with its guard.
    Arm(Range<usize>, Option<Range<usize>>),
    /// A field of a structure, its value, and where the others come from.
    Field(Range<usize>, Range<usize>),
}

/// Returns the text with all changes that can be made at run time, and the numbers of the others.
pub(super) fn with_changes(text: &str, changes: &[(usize, &Change)]) -> Result<(String, Vec<usize>)> {
    let file = syn::parse_file(text).context("a source that rustc reads")?;
    let mut finder = Finder { text, ..Finder::default() };
    finder.visit_file(&file);
    let lines: Vec<usize> =
        std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let offset = |place: &super::Place| {
        let line = lines[place.line - 1];
        text[line..].char_indices().nth(place.column - 1).map_or(text.len(), |(at, _)| line + at)
    };
    let (mut sites, mut left) = (BTreeMap::<(usize, usize), Site>::new(), Vec::new());
    for (number, change) in changes {
        let place = offset(&change.span.start)..offset(&change.span.end);
        match finder.site(&place, change.genre) {
            Some(site) => {
                let key = (site.range.start, usize::MAX - site.range.end);
                let site = sites.entry(key).or_insert(site);
                site.changes.push((*number, change.replacement.clone()));
            }
            None => left.push(*number),
        }
    }
    let sites: Vec<Site> = sites.into_values().collect();
    Ok((Text { text, sites: &sites }.part(0..text.len(), 0), left))
}

/// Finds the places of a file that can be changed while the program runs: not those of constants.
#[derive(Default)]
struct Finder<'t> {
    text: &'t str,
    /// Operators by their own range.
    operators: BTreeMap<usize, (Range<usize>, What)>,
    bodies: Vec<Range<usize>>,
    arms: Vec<(Range<usize>, What)>,
    fields: Vec<(Range<usize>, What)>,
}

impl Finder<'_> {
    fn site(&self, place: &Range<usize>, genre: Genre) -> Option<Site> {
        let within = |range: &Range<usize>| range.start <= place.start && place.end <= range.end;
        let (range, what) = match genre {
            Genre::BinaryOperator | Genre::UnaryOperator => self.operators.get(&place.start).cloned()?,
            Genre::FnValue => {
                let body = self.bodies.iter().filter(|range| within(range)).min_by_key(|range| range.len());
                (body?.clone(), What::Body)
            }
            Genre::MatchArm | Genre::MatchArmGuard => {
                let (arm, what) =
                    self.arms.iter().filter(|(arm, _)| within(arm)).min_by_key(|(arm, _)| arm.len())?;
                let What::Arm(pattern, guard) = what else { return None };
                debug_assert!(arm.start <= pattern.start);
                (pattern.start..guard.as_ref().unwrap_or(pattern).end, what.clone())
            }
            Genre::StructField => {
                self.fields.iter().find(|(field, _)| field.start == place.start).cloned()?
            }
        };
        Some(Site { range, what, changes: Vec::new() })
    }

    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) -> bool {
        // A return before the end would settle the type that is hidden.
        let hidden = self.text[signature.output.span().byte_range()].contains("impl ");
        if signature.constness.is_none() && !hidden {
            self.bodies.push(block.span().byte_range());
        }
        signature.constness.is_none()
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if self.function(&item.sig, &item.block) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if self.function(&item.sig, &item.block) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if item.default.as_ref().is_some_and(|block| self.function(&item.sig, block)) {
            visit::visit_trait_item_fn(self, item);
        }
    }

    fn visit_expr_binary(&mut self, item: &'ast syn::ExprBinary) {
        let sides = What::Binary(item.left.span().byte_range(), item.right.span().byte_range());
        // `if let ... && ...` is no expression of its own.
        let chain = [&*item.left, &*item.right].into_iter().any(has_let);
        if !chain {
            self.operators.insert(item.op.span().byte_range().start, (item.span().byte_range(), sides));
        }
        visit::visit_expr_binary(self, item);
    }

    fn visit_expr_unary(&mut self, item: &'ast syn::ExprUnary) {
        let operand = What::Unary(item.expr.span().byte_range());
        self.operators.insert(item.op.span().byte_range().start, (item.span().byte_range(), operand));
        visit::visit_expr_unary(self, item);
    }

    fn visit_arm(&mut self, item: &'ast syn::Arm) {
        let (pattern, guard) = match &item.pat {
            syn::Pat::Guard(both) => (&*both.pat, Some(both.guard.span().byte_range())),
            pattern => (pattern, None),
        };
        self.arms.push((item.span().byte_range(), What::Arm(pattern.span().byte_range(), guard)));
        visit::visit_arm(self, item);
    }

    fn visit_expr_struct(&mut self, item: &'ast syn::ExprStruct) {
        if let Some(rest) = &item.rest {
            let rest = rest.span().byte_range();
            self.fields.extend(item.fields.iter().map(|field| {
                let what = What::Field(field.expr.span().byte_range(), rest.clone());
                (field.span().byte_range(), what)
            }));
        }
        visit::visit_expr_struct(self, item);
    }
}

fn has_let(expression: &syn::Expr) -> bool {
    match expression {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(both) => has_let(&both.left) || has_let(&both.right),
        _ => false,
    }
}

struct Text<'a> {
    text: &'a str,
    /// By where they start; those around others come first.
    sites: &'a [Site],
}

impl Text<'_> {
    /// Returns a part of the text with the changes in it, of the sites from `first` on.
    fn part(&self, range: Range<usize>, first: usize) -> String {
        let (mut out, mut at) = (String::new(), range.start);
        for (number, site) in self.sites.iter().enumerate().skip(first) {
            if site.range.start < at || site.range.end > range.end {
                continue;
            }
            out.push_str(&self.text[at..site.range.start]);
            out.push_str(&self.site(site, number));
            at = site.range.end;
        }
        out.push_str(&self.text[at..range.end]);
        out
    }

    fn site(&self, site: &Site, number: usize) -> String {
        let raw = |range: &Range<usize>| &self.text[range.clone()];
        let inner = |range: &Range<usize>| self.part(range.clone(), number + 1);
        let branch = |number: usize, code: &str| {
            format!("if crate::__change({number}) {{ /*<{number}*/ {code} /*{number}>*/ }}")
        };
        let either = |branches: Vec<String>, otherwise: String| {
            format!("({} else {{ {otherwise} }})", branches.join(" else "))
        };
        match &site.what {
            What::Binary(left, right) => {
                let other = |(number, operator): &(usize, String)| {
                    branch(*number, &format!("{} {operator} {}", raw(left), raw(right)))
                };
                either(site.changes.iter().map(other).collect(), inner(&site.range))
            }
            What::Unary(operand) => {
                let other = |(number, _): &(usize, String)| branch(*number, raw(operand));
                either(site.changes.iter().map(other).collect(), inner(&site.range))
            }
            What::Body => {
                let other = |(number, value): &(usize, String)| {
                    let value = if value == "()" { "" } else { value };
                    branch(*number, &format!("return {value};"))
                };
                let branches: Vec<String> = site.changes.iter().map(other).collect();
                format!("{{ {} {}", branches.join(" "), &inner(&site.range)[1..])
            }
            What::Arm(pattern, guard) => {
                let mut condition = guard.as_ref().map(inner);
                // A deleted arm comes last: it holds whatever the guard says.
                let deleted = |change: &&(usize, String)| change.1.is_empty();
                for (number, value) in site.changes.iter().filter(|change| !deleted(change)) {
                    let guard = condition.unwrap_or_default();
                    condition = Some(match value.as_str() {
                        "true" => format!("(crate::__change({number}) || ({guard}))"),
                        _ => format!("(!crate::__change({number}) && ({guard}))"),
                    });
                }
                for (number, _) in site.changes.iter().filter(deleted) {
                    let guard = condition.map_or_else(String::new, |guard| format!(" && ({guard})"));
                    condition = Some(format!("!crate::__change({number}){guard}"));
                }
                let number = site.changes[0].0;
                let condition = condition.unwrap_or_default();
                format!("{} if /*<{number}*/ {condition} /*{number}>*/", raw(pattern))
            }
            What::Field(value, rest) => {
                let field = &self.text[site.range.start..value.start];
                let name = field.trim_end().trim_end_matches(':').trim_end();
                let name = if name.is_empty() { raw(value) } else { name };
                let other =
                    |(number, _): &(usize, String)| branch(*number, &format!("({}).{name}", raw(rest)));
                format!("{name}: {}", either(site.changes.iter().map(other).collect(), inner(value)))
            }
        }
    }
}
