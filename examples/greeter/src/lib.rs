//! An example plugin in a crate of its own.
