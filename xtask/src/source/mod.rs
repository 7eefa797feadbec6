//! Our Rust sources as a compiler sees them: modules, the names in them, and the files that each
//! file uses.

mod circles;
mod parse;
mod public;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Result;

pub(crate) use circles::circles;
pub(crate) use public::public_items;

/// A path of names: `["crate", "wire", "Header"]` without the first.
pub(crate) type Names = Vec<String>;

/// One crate, without its tests.
pub(crate) struct Crate {
    /// Modules by path; the root has the empty path.
    modules: BTreeMap<Names, Module>,
}

/// A module, in a file of its own or inside another.
pub(crate) struct Module {
    /// Relative to the folder of the crate's sources.
    file: PathBuf,
    /// Definitions, with their public members.
    items: Vec<Item>,
    imports: Vec<Import>,
    /// Paths that its code names outside of imports.
    mentions: BTreeSet<Names>,
}

/// A definition.
struct Item {
    name: String,
    public: bool,
    /// Public methods, associated constants, fields and variants; those of traits too.
    members: Vec<String>,
}

/// One name that a `use` imports.
struct Import {
    /// Path as it is written, from `crate`, `self`, `super` or a name in scope.
    path: Names,
    /// Imported name; `None` for `*`.
    name: Option<String>,
    /// True if it is exported: visible outside of its module.
    exported: bool,
    public: bool,
}

/// Target of a path.
enum Target<'a> {
    Module(&'a Names),
    Item(&'a Names, &'a Item),
}

/// Maximum length of a chain of re-exports.
const DEPTH: usize = 16;

impl Crate {
    /// Reads the crate with the root file `root`.
    ///
    /// # Errors
    ///
    /// Returns an error if a file of it cannot be read or parsed.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let mut modules = BTreeMap::new();
        parse::file(root, &mut modules)?;
        Ok(Self { modules })
    }

    /// Returns the target of `path` in the module `from`; `None` if it is not in this crate.
    fn resolve<'a>(&'a self, from: &Names, path: &[String], depth: usize) -> Option<Target<'a>> {
        let (first, rest) = path.split_first()?;
        let (mut at, mut rest) = match first.as_str() {
            "crate" => (Names::new(), rest),
            "self" => (from.clone(), rest),
            "super" => (from[..from.len().checked_sub(1)?].to_vec(), rest),
            _ => (from.clone(), path),
        };
        while let Some(("super", tail)) = rest.split_first().map(|(name, tail)| (name.as_str(), tail)) {
            at.pop()?;
            rest = tail;
        }
        self.descend(&at, rest, depth)
    }

    fn descend<'a>(&'a self, from: &Names, path: &[String], depth: usize) -> Option<Target<'a>> {
        let (key, module) = self.modules.get_key_value(from)?;
        let Some((name, rest)) = path.split_first() else { return Some(Target::Module(key)) };
        let depth = depth.checked_sub(1)?;
        let named = module.imports.iter().filter(|import| import.name.as_deref() == Some(name));
        let child: Names = from.iter().chain([name]).cloned().collect();
        if self.modules.contains_key(&child) {
            // A function may have the name of the module that it comes from.
            let function = named.clone().find(|import| rest.is_empty() && import.public);
            let function = function.and_then(|import| self.resolve(from, &import.path, depth));
            return function.or_else(|| self.descend(&child, rest, depth));
        }
        // A type is followed by its methods and variants, which are in the same place.
        if let Some(item) = module.items.iter().find(|item| item.name == *name) {
            return Some(Target::Item(key, item));
        }
        let globs = module.imports.iter().filter(|import| import.name.is_none());
        let through = named.map(|import| [&import.path, rest].concat());
        let through = through.chain(globs.map(|import| [&import.path, path].concat()));
        // An import of its own name, such as `use self::x`, would recurse.
        through.into_iter().find_map(|path| self.resolve(from, &path, depth))
    }

    /// Returns the files that each file takes names from. A file that only re-exports names takes
    /// none.
    fn uses(&self) -> BTreeMap<&Path, BTreeSet<&Path>> {
        let mut uses: BTreeMap<&Path, BTreeSet<&Path>> = BTreeMap::new();
        for (names, module) in &self.modules {
            let imports = module.imports.iter().filter(|import| !import.exported).map(|import| &import.path);
            for path in imports.chain(&module.mentions) {
                let target = match self.resolve(names, path, DEPTH) {
                    Some(Target::Item(names, _)) => names,
                    // The mention of a name inside the module follows.
                    Some(Target::Module(_)) | None => continue,
                };
                let file = &self.modules[target].file;
                if *file != module.file {
                    uses.entry(&module.file).or_default().insert(file);
                }
            }
        }
        uses
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn circles_and_public_items_are_found_through_re_exports() {
        let folder = std::env::temp_dir().join(format!("rovelog-source-{}", std::process::id()));
        fs::create_dir_all(folder.join("deep")).unwrap();
        for (name, text) in [
            ("lib.rs", "mod a; mod b; mod c; pub mod deep; pub use a::A; #[doc(hidden)] pub fn hidden() {}"),
            (
                "a.rs",
                "use crate::b::B; pub struct A { pub x: u8, y: u8 } impl A { pub fn new() {} fn z() {} }",
            ),
            // By the name that the root exports, in tokens of a macro.
            ("b.rs", "pub struct B; fn f() { assert!(crate::A::new() == ()); }"),
            ("c.rs", "use super::b::B; #[cfg(test)] mod tests { use crate::deep::D; }"),
            ("deep/mod.rs", "mod inner; pub use self::inner::{D, E as F};"),
            ("deep/inner.rs", "use crate::c; pub enum D { One } pub trait E { fn go(&self); }"),
        ] {
            fs::write(folder.join(name), text).unwrap();
        }
        let krate = Crate::read(&folder.join("lib.rs")).unwrap();
        assert_eq!(circles(&krate), [[Path::new("a.rs"), Path::new("b.rs")]]);
        let items = ["A", "A.x", "A::new", "deep", "deep::D", "deep::D.One", "deep::F", "deep::F::go"];
        assert_eq!(public_items(&krate), items.map(str::to_owned).into());
        fs::remove_dir_all(folder).unwrap();
    }
}
