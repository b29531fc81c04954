//! Configurations of Janus: reads a folder of libconfig files (`.jcfg`) and INI files (`.cfg`),
//! and drafts one TOML file of Portunus with the same meaning.
//!
//! ```
//! use portunus_janus_config::{Sources, parse_jcfg};
//!
//! let text = "room-1234: { description = \"Demo\" \" room\"; bitrate = 0x1F400; }  # The demo";
//! let file = parse_jcfg("videoroom.jcfg".as_ref(), text, &mut Sources::none()).unwrap();
//! let room = &file.settings()[0];
//! assert_eq!((room.name.as_str(), room.at.line), ("room-1234", 1));
//! assert_eq!(room.group().unwrap().text("description").as_deref(), Some("Demo room"));
//!
//! let text = "room-1234: {\n  bitrate = ;\n}\n";
//! let error = parse_jcfg("videoroom.jcfg".as_ref(), text, &mut Sources::none()).unwrap_err();
//! assert_eq!(error.to_string(), "videoroom.jcfg:2:13: expected a value (text needs quotes), found ;");
//! ```
#![forbid(unsafe_code)]

mod import;
mod syntax;

pub use import::{
    Draft, Folder, FolderError, Mistake, Remark, Unsettled, Weight, import, named_keys,
};
pub use syntax::{
    Group, Location, MAX_BYTES, MAX_DEPTH, MAX_INCLUDES, Problem, Setting, Sources, SyntaxError,
    Value, parse_cfg, parse_jcfg,
};
