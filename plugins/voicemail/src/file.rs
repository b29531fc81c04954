//! The names of messages.

use std::fmt;

/// The start of names.
const PREFIX: &str = "janus-voicemail-";
/// The end of names.
const EXTENSION: &str = ".opus";

/// The id of a message. It is random, so that nobody can guess the name of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MessageId(pub(crate) u64);

impl MessageId {
    /// Returns a random id of 52 bits, which a JavaScript number can hold.
    pub(crate) fn random() -> Self {
        MessageId(rand::random_range(1 << 52..1 << 53))
    }

    /// Returns the name of its file without the extension.
    pub(crate) fn stem(self) -> String {
        format!("{PREFIX}{self}")
    }

    /// Returns the name of its file.
    pub(crate) fn file_name(self) -> String {
        format!("{PREFIX}{self}{EXTENSION}")
    }

    /// Returns its address. Like Janus, it adds a slash even if `base` ends with one.
    pub(crate) fn address(self, base: &str) -> String {
        format!("{base}/{}", self.file_name())
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Whether a file may have this name. Other files of the folder are not served.
pub(crate) fn is_name(name: &str) -> bool {
    let id = name.strip_prefix(PREFIX);
    let id = id.and_then(|rest| rest.strip_suffix(EXTENSION));
    id.is_some_and(|id| {
        !id.is_empty() && id.len() <= 20 && id.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_janus() {
        let id = MessageId(77);
        assert_eq!(id.file_name(), "janus-voicemail-77.opus");
        let address = "/voicemail//janus-voicemail-77.opus";
        assert_eq!(id.address("/voicemail/"), address);
        let random = MessageId::random();
        assert!(is_name(&random.file_name()));
        assert!(random.0 < 1 << 53);
    }

    #[test]
    fn other_files_are_not_given_away() {
        for name in [
            "",
            "janus-voicemail-.opus",
            "janus-voicemail-77.mjr",
            "janus-voicemail-77.opus/",
            "janus-voicemail-../x.opus",
            "../janus-voicemail-77.opus",
            "janus-voicemail-7%2e.opus",
            "janus-voicemail-777777777777777777777.opus",
        ] {
            assert!(!is_name(name), "{name}");
        }
    }
}
