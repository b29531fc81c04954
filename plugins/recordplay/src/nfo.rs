//! The `.nfo` file of a recording: Janus's format, which is INI with one section.

use thiserror::Error;

/// The longest file that is read, in bytes.
pub const MAX_NFO: usize = 64 << 10;

/// The longest title and date that are read, in characters.
const MAX_TEXT: usize = 1_024;

/// The separator between the names of parts. No name contains it.
const BETWEEN: char = '/';
/// The length of a line of parts without the names, in bytes.
const PARTS_LINE: usize = 16;

/// A recording as its `.nfo` file describes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Nfo {
    /// Its number.
    pub id: u64,
    /// Its title.
    pub name: String,
    /// Its date, in a form for people.
    pub date: String,
    /// Whether only administrators see it in lists.
    pub is_private: bool,
    /// The names of its files, in the same folder.
    pub files: MediaFiles,
    /// The part of its files' addresses that cannot be guessed. Janus ignores this addition.
    pub key: Option<String>,
}

/// The files of a recording, by content. A container has several contents in one file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MediaFiles {
    /// The file with the audio.
    pub audio: Option<String>,
    /// The file with the video.
    pub video: Option<String>,
    /// The file with the messages of data channels.
    pub data: Option<String>,
    /// The files that continue a container. Janus ignores this addition.
    pub parts: Vec<String>,
}

/// The reason why a file describes no recording.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NfoError {
    /// It is longer than [`MAX_NFO`].
    #[error("longer than {MAX_NFO} bytes")]
    TooLong,
    /// It is not text.
    #[error("not UTF-8")]
    NotText,
    /// It has no section, or the section's name is not a number above 0.
    #[error("no section whose name is the number of a recording")]
    NoId,
    /// A member is missing.
    #[error("no {0}")]
    Missing(&'static str),
    /// A file's name leads to another folder.
    #[error("{0:?} is not the name of a file in this folder")]
    File(String),
}

impl Nfo {
    /// Reads a file. The first section counts. Without `private` a recording is private.
    pub fn parse(bytes: &[u8]) -> Result<Self, NfoError> {
        if bytes.len() > MAX_NFO {
            return Err(NfoError::TooLong);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| NfoError::NotText)?;
        let mut lines = text.lines().map(str::trim);
        let section = lines.find(|line| line.starts_with('['));
        let id = section.and_then(|line| line.strip_prefix('[')?.split_once(']'));
        let id = id.and_then(|(id, _)| id.trim().parse().ok());
        let mut nfo = Nfo {
            id: id.filter(|id| *id > 0).ok_or(NfoError::NoId)?,
            is_private: true,
            ..Nfo::default()
        };
        for line in lines.take_while(|line| !line.starts_with('[')) {
            nfo.read_line(line)?;
        }
        for (text, name) in [(&nfo.name, "name"), (&nfo.date, "date")] {
            if text.is_empty() {
                return Err(NfoError::Missing(name));
            }
        }
        if nfo.files.audio.is_none() && nfo.files.video.is_none() {
            return Err(NfoError::Missing("audio or video"));
        }
        Ok(nfo)
    }

    fn read_line(&mut self, line: &str) -> Result<(), NfoError> {
        let is_comment = line.starts_with([';', '#']);
        let Some((name, value)) = line.split_once('=').filter(|_| !is_comment) else {
            return Ok(());
        };
        let value = unescaped(value.trim());
        let file = || match value.as_str() {
            "" => Ok(None),
            name if is_file_name(name) => Ok(Some(name.to_owned())),
            _ => Err(NfoError::File(value.clone())),
        };
        match name.trim() {
            "name" => self.name = cut(&value),
            "date" => self.date = cut(&value),
            "private" => {
                let yes = ["true", "yes", "1"];
                self.is_private = yes.iter().any(|yes| value.eq_ignore_ascii_case(yes));
            }
            "audio" => self.files.audio = file()?,
            "video" => self.files.video = file()?,
            "data" => self.files.data = file()?,
            "parts" => {
                let names = value.split(BETWEEN).map(str::trim);
                for name in names.filter(|name| !name.is_empty()) {
                    if !is_file_name(name) {
                        return Err(NfoError::File(name.to_owned()));
                    }
                    self.files.parts.push(name.to_owned());
                }
            }
            "key" => self.key = is_key(&value).then_some(value),
            _ => {}
        }
        Ok(())
    }

    /// Returns the text of the file, in a form that Janus can read.
    pub fn to_text(&self) -> String {
        let private = if self.is_private { "true" } else { "false" };
        let mut text = format!(
            "[{}]\r\nname = {}\r\nprivate = {private}\r\ndate = {}\r\n",
            self.id,
            escaped(&self.name),
            escaped(&self.date),
        );
        for (medium, file) in self.files.named() {
            text.push_str(&format!("{medium} = {}\r\n", escaped(file)));
        }
        if let Some(key) = &self.key {
            text.push_str(&format!("key = {key}\r\n"));
        }
        let mut parts = String::new();
        for part in &self.files.parts {
            let part = escaped(part);
            // The file must not become too long to be read.
            if text.len() + parts.len() + part.len() + PARTS_LINE > MAX_NFO {
                break;
            }
            if !parts.is_empty() {
                parts.push(BETWEEN);
            }
            parts.push_str(&part);
        }
        if !parts.is_empty() {
            text.push_str(&format!("parts = {parts}\r\n"));
        }
        text
    }
}

impl MediaFiles {
    /// Returns the names that fulfil a condition.
    #[must_use]
    pub fn only(mut self, is_so: impl Fn(&str) -> bool) -> Self {
        self.parts.retain(|name| is_so(name));
        let only = |file: Option<String>| file.filter(|name| is_so(name));
        Self {
            parts: self.parts,
            audio: only(self.audio),
            video: only(self.video),
            data: only(self.data),
        }
    }

    /// Returns all names.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        let parts = self.parts.iter().map(String::as_str);
        self.named().map(|(_, name)| name).chain(parts)
    }

    /// Returns all names except parts, each with the word for its content.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [
            ("audio", &self.audio),
            ("video", &self.video),
            ("data", &self.data),
        ];
        all.into_iter()
            .filter_map(|(medium, file)| Some((medium, file.as_deref()?)))
    }
}

/// Whether a name is that of a file in the same folder that is not hidden.
pub fn is_file_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 255
        && !name.starts_with('.')
        && !name.contains(['/', '\\'])
        && !name.chars().any(char::is_control)
}

/// Whether a key can be part of an address.
pub fn is_key(key: &str) -> bool {
    key.len() == 32 && key.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Escapes a value for a line. Janus treats `;` and `#` as the start of a comment unless a
/// backslash precedes.
fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            ';' | '#' => text.extend(['\\', c]),
            c if c.is_control() => text.push(' '),
            c => text.push(c),
        }
    }
    text
}

fn unescaped(value: &str) -> String {
    value.replace("\\;", ";").replace("\\#", "#")
}

/// Removes control characters from a title or date, because a file cannot contain them.
fn cut(text: &str) -> String {
    let shown = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let text: String = shown.take(MAX_TEXT).collect();
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

    use proptest::prelude::*;

    use super::*;

    const OF_JANUS: &str = "[1234]\r\nname = my title\r\nprivate = false\r\ndate = 2026-01-31 10:00:00\r\n\
        audio = rec-1234-audio.mjr\r\nvideo = rec-1234-video.mjr\r\ndata = rec-1234-data.mjr\r\n";

    #[test]
    fn a_file_of_janus_is_read_and_written() {
        let nfo = Nfo::parse(OF_JANUS.as_bytes()).unwrap();
        assert_eq!((nfo.id, nfo.is_private), (1234, false));
        assert_eq!(nfo.files.video.as_deref(), Some("rec-1234-video.mjr"));
        assert_eq!(nfo.to_text(), OF_JANUS);
    }

    #[test]
    fn the_first_section_counts_and_what_is_missing_is_told() {
        let parse = |text: &str| Nfo::parse(text.as_bytes());
        let two = "; made by hand\n[7] \nname=a;b\n# private = false\ndate = d\naudio=a.mjr\n[8]\nname = other\n";
        let nfo = parse(two).unwrap();
        assert_eq!((nfo.id, nfo.name.as_str()), (7, "a;b"));
        assert!(nfo.is_private);
        assert_eq!(parse("name = x\n"), Err(NfoError::NoId));
        for id in ["0", "-1", "room", "", "99999999999999999999999"] {
            assert_eq!(parse(&format!("[{id}]\nname = x\n")), Err(NfoError::NoId));
        }
        assert_eq!(
            parse("[1]\ndate = d\naudio = a\n"),
            Err(NfoError::Missing("name"))
        );
        assert_eq!(
            parse("[1]\nname = n\naudio = a\n"),
            Err(NfoError::Missing("date"))
        );
        let data = parse("[1]\nname = n\ndate = d\ndata = d.mjr\n");
        assert_eq!(data, Err(NfoError::Missing("audio or video")));
        assert_eq!(Nfo::parse(&[b'['; MAX_NFO + 1]), Err(NfoError::TooLong));
        assert_eq!(Nfo::parse(&[0xff]), Err(NfoError::NotText));
    }

    #[test]
    fn a_date_that_nobody_can_read_is_none() {
        let parse = |date: &str| {
            let text = format!("[7]\nname = n\ndate = {date}\nvideo = v\n");
            Nfo::parse(text.as_bytes()).map(|nfo| nfo.date)
        };
        assert_eq!(parse("\u{1}\0"), Err(NfoError::Missing("date")));
        assert_eq!(parse("\u{1}a\0b\u{2}"), Ok("a b".to_owned()));
    }

    #[test]
    fn parts_are_written_as_they_were_read() {
        let text = "[7]\nname = n\ndate = d\nvideo = v\nparts = b / c\nparts=d /e ?/\n";
        let nfo = Nfo::parse(text.as_bytes()).unwrap();
        assert_eq!(nfo.files.parts, ["b", "c", "d", "e ?"]);
        assert_eq!(Nfo::parse(nfo.to_text().as_bytes()), Ok(nfo));
    }

    #[test]
    fn names_do_not_lead_out_of_the_folder() {
        for name in [
            "../a.mjr",
            "/etc/passwd",
            "a/b.mjr",
            ".hidden",
            "..",
            "a\\b",
            "a\tb",
        ] {
            let text = format!("[1]\nname = n\ndate = d\naudio = {name}\n");
            let wrong = Nfo::parse(text.as_bytes());
            assert_eq!(wrong, Err(NfoError::File(name.to_owned())));
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            id in 1..u64::MAX,
            name in "[^\\p{Cc}\\p{Z}\\\\]([^\\p{Cc}\\\\]{0,40}[^\\p{Cc}\\p{Z}\\\\])?",
            is_private: bool,
            audio in "[a-z0-9;#-]{1,20}",
            parts in proptest::collection::vec("[a-z0-9;#-]{1,20}", 0..5),
        ) {
            let nfo = Nfo {
                id,
                name,
                date: "2026-01-31 10:00:00".to_owned(),
                is_private,
                files: MediaFiles { audio: Some(audio), parts, ..MediaFiles::default() },
                key: Some("0123456789abcdef0123456789ABCDEF".to_owned()),
            };
            prop_assert_eq!(Nfo::parse(nfo.to_text().as_bytes()), Ok(nfo));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Nfo::parse(&bytes);
        }
    }
}
