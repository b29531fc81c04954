//! Translation of a folder of Janus to a configuration of Portunus.

mod blocks;
mod brokers;
mod convert;
mod core;
mod draft;
mod folder;
mod handlers;
mod plugins;
mod remark;
mod rules;
mod settle;
mod translator;
mod transports;

use std::collections::BTreeSet;

pub use draft::Draft;
pub use folder::{Folder, FolderError};
pub use remark::{Remark, Weight};
pub use settle::{Mistake, Unsettled};

use rules::Rule;
use translator::Translator;

/// Drafts a configuration from a folder of Janus. It may contain our defaults, and mistakes: see
/// [`Draft::settle`].
pub fn import(folder: &Folder) -> Draft {
    let mut translator = Translator::new(folder);
    core::translate(&mut translator);
    transports::translate(&mut translator);
    brokers::translate(&mut translator);
    handlers::translate(&mut translator);
    plugins::translate(&mut translator);
    translator.finish()
}

/// Returns the keys of Portunus in the tables of this crate, each with its section or its list of
/// sections.
pub fn named_keys() -> BTreeSet<(&'static str, &'static str)> {
    let tables = [
        core::tables(),
        transports::tables(),
        brokers::tables(),
        handlers::tables(),
    ];
    let rules = tables.into_iter().flatten().chain(plugins::tables());
    rules
        .flatten()
        .filter_map(Rule::target)
        .chain(plugins::keys_of_blocks())
        .collect()
}

#[cfg(test)]
mod tests;
