//! Parameters whose types contain tuples of three or more values.

use syn::visit::{self, Visit};
use syn::{Attribute, FnArg, ItemMod, Signature, TypeTuple};

/// Returns the functions of a file with such parameters, once for each tuple. Tests are left out.
pub(crate) fn find(file: &syn::File) -> Vec<String> {
    let mut functions = Functions::default();
    functions.visit_file(file);
    functions.with_tuples
}

/// Collects the functions with such a parameter.
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

/// Returns whether an item is for tests: `#[cfg(test)]` or `#[cfg(all(test, …))]`.
pub(crate) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let list = attribute.meta.require_list();
        let condition = list.map(|list| list.tokens.to_string()).unwrap_or_default();
        let condition = condition
            .trim_start_matches("all")
            .trim_start_matches([' ', '(']);
        attribute.path().is_ident("cfg")
            && condition.split([',', ')']).next().map(str::trim) == Some("test")
    })
}
