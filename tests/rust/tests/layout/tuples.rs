//! Parameters whose types contain tuples of three or more values.

use std::path::Path;

use syn::visit::{self, Visit};
use syn::{FnArg, ItemMod, Signature, TypeTuple};

use crate::modules::{Modules, is_test};
use crate::short;

/// Describes the parameters of the crate with this root that contain such tuples. Tests are left
/// out.
pub(crate) fn find(root: &Path) -> Vec<String> {
    let modules = Modules::read(root);
    let found = modules.files().into_iter().flat_map(|file| {
        let text = std::fs::read_to_string(file).unwrap();
        let mut functions = Functions::default();
        functions.visit_file(&syn::parse_file(&text).unwrap());
        let names = functions.with_tuples.into_iter();
        names.map(|name| format!("  {}: fn {name}\n", short(file)))
    });
    found.collect()
}

/// Collects the functions with such a parameter, once for each.
#[derive(Debug, Default)]
struct Functions {
    with_tuples: Vec<String>,
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_signature(&mut self, signature: &'ast Signature) {
        for input in &signature.inputs {
            let mut tuples = Tuples(0);
            if let FnArg::Typed(input) = input {
                tuples.visit_type(&input.ty);
            }
            let names = (0..tuples.0).map(|_| signature.ident.to_string());
            self.with_tuples.extend(names);
        }
    }
}

/// Counts tuples of three or more values in a type.
struct Tuples(usize);

impl<'ast> Visit<'ast> for Tuples {
    fn visit_type_tuple(&mut self, tuple: &'ast TypeTuple) {
        self.0 += usize::from(tuple.elems.len() >= 3);
        visit::visit_type_tuple(self, tuple);
    }
}
