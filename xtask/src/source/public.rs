//! The public items of a crate.

use std::collections::BTreeSet;

use super::{Crate, DEPTH, Item, Module, Names, Target};

/// Returns the paths of all public items as documentation lists them, without hidden ones. Fields
/// and variants are after a dot. Re-exported items of other crates count by their names.
pub(crate) fn public_items(krate: &Crate) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    krate.collect(&Names::new(), &Names::new(), &mut found, DEPTH);
    found
}

impl Crate {
    /// Adds the items of the module `at`, which users know as `shown`.
    fn collect(&self, at: &Names, shown: &Names, found: &mut BTreeSet<String>, depth: usize) {
        let (Some(module), Some(depth)) = (self.modules.get(at), depth.checked_sub(1)) else { return };
        for item in module.items.iter().filter(|item| item.public) {
            match item.name.strip_prefix("mod ") {
                Some(name) => {
                    let [at, shown] = [at, shown].map(|names| join(names, name));
                    found.insert(shown.join("::"));
                    self.collect(&at, &shown, found, depth);
                }
                None => self.add(item, shown, &item.name, found),
            }
        }
        for import in module.imports.iter().filter(|import| import.public) {
            match (self.resolve(at, &import.path, DEPTH), &import.name) {
                (Some(Target::Item(_, item)), Some(name)) => self.add(item, shown, name, found),
                (Some(Target::Module(inner)), Some(name)) => {
                    let shown = join(shown, name);
                    found.insert(shown.join("::"));
                    self.collect(inner, &shown, found, depth);
                }
                (Some(Target::Module(inner)), None) => self.collect(inner, shown, found, depth),
                (None, Some(name)) => _ = found.insert(join(shown, name).join("::")),
                (None | Some(Target::Item(..)), None) => {}
            }
        }
    }

    /// Adds `item`, shown as `name`, with its members.
    fn add(&self, item: &Item, shown: &Names, name: &str, found: &mut BTreeSet<String>) {
        let path = join(shown, name);
        found.insert(path.join("::"));
        let implementations = format!("impl {}", item.name);
        let elsewhere = self.modules.values().flat_map(|module: &Module| &module.items);
        let elsewhere = elsewhere.filter(|other| other.name == implementations);
        for member in std::iter::once(item).chain(elsewhere).flat_map(|item| &item.members) {
            let path = path.join("::");
            found.insert(if member.starts_with('.') { path + member } else { path + "::" + member });
        }
    }
}

fn join(names: &Names, name: &str) -> Names {
    names.iter().map(String::as_str).chain([name]).map(str::to_owned).collect()
}
