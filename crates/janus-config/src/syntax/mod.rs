//! The two formats of Janus's files as one tree of settings, with places and comments.

mod cfg;
mod comments;
mod error;
mod lexer;
mod parser;
mod source;
mod tree;

pub use cfg::parse_cfg;
pub use error::{Location, Problem, SyntaxError};
pub use parser::{MAX_DEPTH, parse_jcfg};
pub use source::{MAX_BYTES, MAX_INCLUDES, Sources};
pub(crate) use source::{read, text_of, unreadable};
pub use tree::{Group, Setting, Value};

#[cfg(test)]
mod tests;
