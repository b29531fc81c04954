//! The modules of a crate, and the names of other modules in each file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Item, ItemMod, ItemUse, UseTree, Visibility};

use crate::tuples;

/// A crate's modules, by their paths from its root.
#[derive(Debug, Default)]
pub(crate) struct Modules {
    modules: BTreeMap<Vec<String>, Module>,
    /// The functions whose parameters contain tuples of three or more values, with their files.
    pub(crate) with_tuples: Vec<(PathBuf, String)>,
}

/// A module, in a file of its own or within one.
#[derive(Debug, Default)]
struct Module {
    file: PathBuf,
    /// Its definitions, except modules.
    defined: BTreeSet<String>,
    /// Its imports by `use`: local names with their paths.
    imported: BTreeMap<String, Vec<String>>,
    /// The modules imported by globs.
    globs: Vec<Vec<String>>,
    /// The paths in its code.
    named: Vec<Vec<String>>,
}

impl Modules {
    /// Reads the crate with this root file, without tests.
    pub(crate) fn read(root: &Path) -> Self {
        let mut this = Modules::default();
        let folder = root.parent().unwrap().to_owned();
        this.read_file(root, &folder, Vec::new());
        this
    }

    /// Reads the module of a file, and those that it declares, which are in `folder`.
    fn read_file(&mut self, file: &Path, folder: &Path, path: Vec<String>) {
        let text = std::fs::read_to_string(file).unwrap();
        let parsed = syn::parse_file(&text).unwrap();
        let found = tuples::find(&parsed).into_iter();
        let found = found.map(|function| (file.to_owned(), function));
        self.with_tuples.extend(found);
        self.read_items(&parsed.items, file, folder, path);
    }

    fn read_items(&mut self, items: &[Item], file: &Path, folder: &Path, path: Vec<String>) {
        let mut module = Module {
            file: file.to_owned(),
            ..Module::default()
        };
        for item in items {
            match item {
                Item::Mod(inner) if tuples::is_test(&inner.attrs) => {}
                Item::Mod(inner) => self.read_module(inner, file, folder, &path),
                item => module.take(item),
            }
        }
        self.modules.insert(path, module);
    }

    fn read_module(&mut self, inner: &ItemMod, file: &Path, folder: &Path, parent: &[String]) {
        let name = inner.ident.to_string();
        let path = [parent, std::slice::from_ref(&name)].concat();
        let within = folder.join(&name);
        match &inner.content {
            Some((_, items)) => self.read_items(items, file, &within, path),
            None => {
                let beside = folder.join(format!("{name}.rs"));
                let own = within.join("mod.rs");
                let file = if own.exists() { own } else { beside };
                self.read_file(&file, &within, path);
            }
        }
    }

    /// Returns the files that each file's code depends on. A re-export by `pub use` counts for its
    /// users, not for the file itself.
    pub(crate) fn imports(&self) -> BTreeMap<&Path, BTreeSet<&Path>> {
        let mut imports: BTreeMap<&Path, BTreeSet<&Path>> = BTreeMap::new();
        for (path, module) in &self.modules {
            let to = imports.entry(&module.file).or_default();
            let named = module.named.iter();
            let found = named.filter_map(|name| self.defining(path, name, 0));
            to.extend(found.filter(|file| *file != module.file));
        }
        imports
    }

    /// Returns the path of the module in `file`.
    pub(crate) fn place(&self, file: &Path) -> &[String] {
        let mut modules = self.modules.iter();
        let found = modules.find(|(_, module)| module.file == file);
        found.map(|(path, _)| path).unwrap()
    }

    /// Returns the file that defines `name` for the module at `path`, if this crate does.
    fn defining(&self, path: &[String], name: &[String], depth: u8) -> Option<&Path> {
        if depth > 8 {
            return None;
        }
        let (first, rest) = name.split_first()?;
        let parent = path.split_last().map(|(_, parent)| parent);
        match first.as_str() {
            "crate" => self.within(&[], rest, depth),
            "self" => self.within(path, rest, depth),
            "super" => match rest.first().map(String::as_str) {
                Some("super") => self.defining(parent?, rest, depth),
                _ => self.within(parent?, rest, depth),
            },
            _ => self.within(path, name, depth),
        }
    }

    /// Like `defining`, for a name that starts in the module at `path`.
    fn within(&self, path: &[String], name: &[String], depth: u8) -> Option<&Path> {
        let module = self.modules.get(path)?;
        let Some((first, rest)) = name.split_first() else {
            return Some(&module.file);
        };
        let inner = [path, std::slice::from_ref(first)].concat();
        if self.modules.contains_key(&inner) {
            return self.within(&inner, rest, depth);
        }
        if module.defined.contains(first) {
            return Some(&module.file);
        }
        if let Some(imported) = module.imported.get(first) {
            let all = [imported, rest].concat();
            // `use portunus_x as x` is no name of this crate.
            let is_other = imported.first() == Some(first) && imported.len() == 1;
            return if is_other {
                None
            } else {
                self.defining(path, &all, depth + 1)
            };
        }
        module.globs.iter().find_map(|glob| {
            let all = [glob, name].concat();
            self.defining(path, &all, depth + 1)
        })
    }
}

impl Module {
    fn take(&mut self, item: &Item) {
        if let Item::Use(item) = item {
            return self.take_use(item);
        }
        let name = match item {
            Item::Const(item) => Some(&item.ident),
            Item::Enum(item) => Some(&item.ident),
            Item::Fn(item) => Some(&item.sig.ident),
            Item::Macro(item) => item.ident.as_ref(),
            Item::Static(item) => Some(&item.ident),
            Item::Struct(item) => Some(&item.ident),
            Item::Trait(item) => Some(&item.ident),
            Item::Type(item) => Some(&item.ident),
            Item::Union(item) => Some(&item.ident),
            _ => None,
        };
        self.defined.extend(name.map(ToString::to_string));
        let mut names = Names(&mut self.named);
        names.visit_item(item);
    }

    fn take_use(&mut self, item: &ItemUse) {
        let mut leaves = Vec::new();
        flatten(&item.tree, Vec::new(), &mut leaves);
        for (name, path) in leaves {
            match name {
                Some(name) => {
                    if matches!(item.vis, Visibility::Inherited) {
                        self.named.push(path.clone());
                    }
                    self.imported.insert(name, path);
                }
                None => self.globs.push(path),
            }
        }
    }
}

/// Returns the leaves of a `use`: the local name, which a glob lacks, and the path.
fn flatten(tree: &UseTree, before: Vec<String>, leaves: &mut Vec<(Option<String>, Vec<String>)>) {
    let and = |name: &syn::Ident| {
        let mut path = before.clone();
        // `use a::{self}` means `a`.
        if name != "self" || path.is_empty() {
            path.push(name.to_string());
        }
        path
    };
    match tree {
        UseTree::Path(path) => flatten(&path.tree, and(&path.ident), leaves),
        UseTree::Name(name) => {
            let path = and(&name.ident);
            leaves.push((path.last().cloned(), path));
        }
        UseTree::Rename(rename) => {
            leaves.push((Some(rename.rename.to_string()), and(&rename.ident)));
        }
        UseTree::Glob(_) => leaves.push((None, before)),
        UseTree::Group(group) => {
            for tree in &group.items {
                flatten(tree, before.clone(), leaves);
            }
        }
    }
}

/// Collects the paths in code.
struct Names<'a>(&'a mut Vec<Vec<String>>);

impl<'ast> Visit<'ast> for Names<'_> {
    fn visit_item_mod(&mut self, _: &'ast ItemMod) {}

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let mut leaves = Vec::new();
        flatten(&item.tree, Vec::new(), &mut leaves);
        self.0.extend(leaves.into_iter().map(|(_, path)| path));
    }

    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments = path.segments.iter();
        self.0
            .push(segments.map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        visit::visit_macro(self, item);
        self.take_tokens(item.tokens.clone());
    }
}

impl Names<'_> {
    /// Takes the paths in a macro's text: names with `::` between them.
    fn take_tokens(&mut self, tokens: TokenStream) {
        let mut path = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons < 2 {
                        self.end(&mut path);
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    self.end(&mut path);
                    self.take_tokens(group.stream());
                    colons = 0;
                }
                _ => {
                    self.end(&mut path);
                    colons = 0;
                }
            }
        }
        self.end(&mut path);
    }

    fn end(&mut self, path: &mut Vec<String>) {
        if !path.is_empty() {
            self.0.push(std::mem::take(path));
        }
    }
}
