//! Parsing of a file and its submodules.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Fields, ImplItem, TraitItem, Type, UseTree, Visibility};

use super::{Import, Item, Module, Names};

/// Reads the crate at `root` into `modules`.
pub(super) fn file(root: &Path, modules: &mut BTreeMap<Names, Module>) -> Result<()> {
    let folder = root.parent().unwrap_or(root);
    let mut reader = Reader { folder, modules };
    reader.file(root, folder, Names::new())
}

struct Reader<'a> {
    folder: &'a Path,
    modules: &'a mut BTreeMap<Names, Module>,
}

impl Reader<'_> {
    /// Parses the file at `path`, whose submodules are in `below`.
    fn file(&mut self, path: &Path, below: &Path, names: Names) -> Result<()> {
        let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        let syntax = syn::parse_file(&text).with_context(|| format!("parsing {}", path.display()))?;
        let file = path.strip_prefix(self.folder).unwrap_or(path).to_owned();
        self.module(&file, below, names, &syntax.items)
    }

    fn module(&mut self, file: &Path, below: &Path, names: Names, items: &[syn::Item]) -> Result<()> {
        let mut module = Module {
            file: file.to_owned(),
            items: Vec::new(),
            imports: Vec::new(),
            mentions: BTreeSet::new(),
        };
        for item in items.iter().filter(|item| !is_for_tests(attributes(item))) {
            match item {
                syn::Item::Use(import) => {
                    let exported = !matches!(import.vis, Visibility::Inherited);
                    let public = matches!(import.vis, Visibility::Public(_));
                    let mut found = Vec::new();
                    flatten(&import.tree, &mut Names::new(), &mut found);
                    let import = |(path, name)| Import { path, name, exported, public };
                    module.imports.extend(found.into_iter().map(import));
                }
                syn::Item::Mod(inner) => {
                    let name = inner.ident.to_string();
                    let child: Names = names.iter().chain([&name]).cloned().collect();
                    let deeper = below.join(&name);
                    let public = matches!(inner.vis, Visibility::Public(_)) && !is_hidden(&inner.attrs);
                    module.items.push(Item { name: format!("mod {name}"), public, members: Vec::new() });
                    if let Some((_, items)) = &inner.content {
                        self.module(file, &deeper, child, items)?;
                    } else if let Some(path) = place(below, &name) {
                        self.file(&path, &deeper, child)?;
                    }
                }
                item => {
                    module.mentions.extend(mentions(item));
                    define(item, &mut module.items);
                }
            }
        }
        self.modules.insert(names, module);
        Ok(())
    }
}

/// Returns the file of the module `name` in the folder `below`.
fn place(below: &Path, name: &str) -> Option<PathBuf> {
    let places = [below.join(name).join("mod.rs"), below.join(format!("{name}.rs"))];
    places.into_iter().find(|path| path.is_file())
}

/// Returns each name that `tree` imports: its path, and its name here.
fn flatten(tree: &UseTree, path: &mut Names, found: &mut Vec<(Names, Option<String>)>) {
    match tree {
        UseTree::Path(inner) => {
            path.push(inner.ident.to_string());
            flatten(&inner.tree, path, found);
            path.pop();
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, path, found)),
        UseTree::Glob(_) => found.push((path.clone(), None)),
        UseTree::Name(name) if name.ident == "self" => found.push((path.clone(), path.last().cloned())),
        UseTree::Name(name) => {
            let name = name.ident.to_string();
            found.push((path.iter().chain([&name]).cloned().collect(), Some(name)));
        }
        UseTree::Rename(rename) => {
            let name = rename.ident.to_string();
            found.push((path.iter().chain([&name]).cloned().collect(), Some(rename.rename.to_string())));
        }
    }
}

/// Adds the definitions of `item`; the members of an `impl` go to its type if that is in the same
/// module.
fn define(item: &syn::Item, items: &mut Vec<Item>) {
    let is_public = |vis: &Visibility| matches!(vis, Visibility::Public(_));
    let fields = |fields: &Fields| {
        let named = fields.iter().filter(|field| is_public(&field.vis));
        named.filter_map(|field| Some(format!(".{}", field.ident.as_ref()?))).collect::<Vec<_>>()
    };
    let (name, public, members) = match item {
        syn::Item::Struct(item) => (item.ident.to_string(), is_public(&item.vis), fields(&item.fields)),
        syn::Item::Enum(item) => (
            item.ident.to_string(),
            is_public(&item.vis),
            item.variants.iter().map(|variant| format!(".{}", variant.ident)).collect(),
        ),
        syn::Item::Trait(item) => {
            let names = item.items.iter().filter_map(|item| match item {
                TraitItem::Fn(method) if !is_hidden(&method.attrs) => Some(method.sig.ident.to_string()),
                TraitItem::Const(constant) => Some(constant.ident.to_string()),
                _ => None,
            });
            (item.ident.to_string(), is_public(&item.vis), names.collect())
        }
        syn::Item::Fn(item) => (item.sig.ident.to_string(), is_public(&item.vis), Vec::new()),
        syn::Item::Const(item) => (item.ident.to_string(), is_public(&item.vis), Vec::new()),
        syn::Item::Static(item) => (item.ident.to_string(), is_public(&item.vis), Vec::new()),
        syn::Item::Type(item) => (item.ident.to_string(), is_public(&item.vis), Vec::new()),
        syn::Item::Macro(item) => {
            let Some(name) = &item.ident else { return };
            let exported = item.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export"));
            (name.to_string(), exported && !is_hidden(&item.attrs), Vec::new())
        }
        syn::Item::Impl(item) => {
            let Type::Path(ty) = &*item.self_ty else { return };
            let names = item.items.iter().filter_map(|item| match item {
                ImplItem::Fn(method) if is_public(&method.vis) && !is_hidden(&method.attrs) => {
                    Some(method.sig.ident.to_string())
                }
                ImplItem::Const(constant) if is_public(&constant.vis) => Some(constant.ident.to_string()),
                _ => None,
            });
            let ty = ty.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
            // Found again by the name of its type, which may be in another module.
            (format!("impl {ty}"), false, names.collect())
        }
        _ => return,
    };
    let public = public && !is_hidden(attributes(item));
    items.push(Item { name, public, members });
}

/// Returns the paths that `item` names, also those in arguments of macros.
fn mentions(item: &syn::Item) -> BTreeSet<Names> {
    let mut paths = Paths(BTreeSet::new());
    paths.visit_item(item);
    paths.0
}

struct Paths(BTreeSet<Names>);

impl<'ast> Visit<'ast> for Paths {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.0.insert(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_item_use(&mut self, import: &'ast syn::ItemUse) {
        let mut found = Vec::new();
        flatten(&import.tree, &mut Names::new(), &mut found);
        self.0.extend(found.into_iter().map(|(path, _)| path));
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.tokens(call.tokens.clone());
        visit::visit_macro(self, call);
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        if let ImplItem::Fn(method) = item
            && is_for_tests(&method.attrs)
        {
            return;
        }
        visit::visit_impl_item(self, item);
    }
}

impl Paths {
    /// Collects names joined by `::` in the tokens of a macro.
    fn tokens(&mut self, tokens: TokenStream) {
        let (mut path, mut colons) = (Names::new(), 0);
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.flush(&mut path);
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                other => {
                    self.flush(&mut path);
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.tokens(group.stream());
                    }
                }
            }
        }
        self.flush(&mut path);
    }

    fn flush(&mut self, path: &mut Names) {
        if !path.is_empty() {
            self.0.insert(std::mem::take(path));
        }
    }
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
    })
}

fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("doc")
            && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("hidden"))
    })
}

fn attributes(item: &syn::Item) -> &[Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
