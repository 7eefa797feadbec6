//! Finds import cycles, that is, files of a crate that import each other, directly or through other
//! files.
//!
//! The check reads `use` declarations as text. It resolves each path to its longest prefix that is
//! a module with its own file. Paths to the crate root and to enclosing modules are ignored,
//! because these modules re-export items of their children. Full paths in expressions are also
//! ignored, because they are rare.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::Result;

use corpus_generator::files_below;

/// Path of a module in its crate, such as `["edit", "recover"]`.
type Module = Vec<String>;

/// For each module, the modules from which it imports items.
type Imports = BTreeMap<Module, BTreeSet<Module>>;

/// Returns the import cycles in a `src` folder. Each cycle is a list of modules, separated by
/// commas.
pub(super) fn check(src: &Path) -> Result<Vec<String>> {
    let mut texts = BTreeMap::new();
    for file in files_below(src)? {
        let is_rust = file.extension().is_some_and(|extension| extension == "rs");
        let is_test = file.with_extension("").iter().any(|part| part == "tests");
        if is_rust && !is_test {
            texts.insert(module_of(&file), fs::read_to_string(src.join(&file))?);
        }
    }
    Ok(cycles(&imports(&texts)))
}

/// Returns the module path of a file. For example, `edit/recover.rs` is the module `["edit",
/// "recover"]`, and `lib.rs` is `[]`.
fn module_of(file: &Path) -> Module {
    let mut parts: Module =
        file.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if parts.last().is_some_and(|last| matches!(last.as_str(), "lib" | "main" | "mod")) {
        parts.pop();
    }
    parts
}

fn imports(texts: &BTreeMap<Module, String>) -> Imports {
    let mut imports = Imports::new();
    for (module, text) in texts {
        for path in paths(text) {
            let mut target = absolute(module, &path);
            while !target.is_empty() && !texts.contains_key(&target) {
                target.pop();
            }
            if !module.starts_with(&target) {
                imports.entry(module.clone()).or_default().insert(target);
            }
        }
    }
    imports
}

/// Returns the paths in the private `use` declarations of a file. Re-exports (`pub use`) are not
/// included, because the code in the file does not need them.
fn paths(text: &str) -> Vec<String> {
    // Unit tests are at the end of a file. They may import any module.
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let mut lines = code.lines().map(str::trim);
    let mut paths = Vec::new();
    while let Some(line) = lines.next() {
        if let Some(start) = line.strip_prefix("use ") {
            let mut path = start.to_owned();
            while !path.ends_with(';')
                && let Some(line) = lines.next()
            {
                path += line;
            }
            path.retain(|c| !c.is_whitespace() && c != ';');
            paths.extend(expand(&path));
        }
    }
    paths
}

/// Expands the braces in a path. For example, `a::{b, c::d}` becomes `a::b` and `a::c::d`.
fn expand(path: &str) -> Vec<String> {
    let Some((prefix, list)) = path.split_once('{') else { return vec![path.to_owned()] };
    let list = list.strip_suffix('}').unwrap_or(list);
    let mut depth = 0;
    let items = list.split(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    items.filter(|item| !item.is_empty()).flat_map(|item| expand(&format!("{prefix}{item}"))).collect()
}

/// Returns a path relative to the crate root. Returns an empty path if the item belongs to another
/// crate.
fn absolute(module: &[String], path: &str) -> Module {
    let mut segments = path.split("::").peekable();
    let mut absolute = match segments.next_if(|first| matches!(*first, "crate" | "self")) {
        Some("crate") => Vec::new(),
        Some(_) => module.to_vec(),
        None if segments.peek() == Some(&"super") => module.to_vec(),
        None => return Vec::new(),
    };
    for segment in segments {
        match segment {
            "super" => _ = absolute.pop(),
            name => absolute.push(name.to_owned()),
        }
    }
    absolute
}

/// Returns the groups of modules in which each module imports from all others, directly or
/// indirectly.
fn cycles(imports: &Imports) -> Vec<String> {
    let reachable: BTreeMap<_, _> =
        imports.keys().map(|module| (module, reachable(imports, module))).collect();
    let reaches =
        |from: &Module, to: &Module| reachable.get(from).is_some_and(|modules| modules.contains(to));
    let mut groups: Vec<Vec<&Module>> = Vec::new();
    for module in imports.keys().filter(|module| reaches(module, module)) {
        match groups.iter_mut().find(|group| reaches(group[0], module) && reaches(module, group[0])) {
            Some(group) => group.push(module),
            None => groups.push(vec![module]),
        }
    }
    let shown = |group: Vec<&Module>| group.iter().map(|module| module.join("::")).collect::<Vec<_>>();
    groups.into_iter().map(|group| shown(group).join(", ")).collect()
}

fn reachable<'a>(imports: &'a Imports, from: &Module) -> BTreeSet<&'a Module> {
    let mut found = BTreeSet::new();
    let mut open: Vec<_> = imports.get(from).into_iter().flatten().collect();
    while let Some(module) = open.pop() {
        if found.insert(module) {
            open.extend(imports.get(module).into_iter().flatten());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_are_found_through_braces_and_super() {
        let texts = [
            ("lib.rs", "mod a; pub use a::A;"),
            ("a.rs", "use std::fmt;\nuse crate::{A, b::{B, C}};"),
            ("b/mod.rs", "use self::inner::D;\nmod inner;"),
            ("b/inner.rs", "use super::super::a::A;\n"),
            ("c.rs", "use crate::a::A;\n#[cfg(test)] mod tests { use crate::d::D; }"),
            ("d.rs", "// use crate::d;\nuse crate::c::C;"),
        ];
        let texts = texts.map(|(file, text)| (module_of(Path::new(file)), text.to_owned())).into();
        assert_eq!(cycles(&imports(&texts)), ["a, b, b::inner"]);
    }
}
