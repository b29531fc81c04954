//! SDP fragments of `application/trickle-ice-sdpfrag` (RFC 8840 section 9): candidates with their
//! credentials, outside of a description.

use std::fmt;

use crate::negotiated::IceCredentials;

/// The most candidates of a fragment. More are refused.
const MAX_CANDIDATES: usize = 100;
/// The most bytes of a line.
const MAX_LINE: usize = 1_024;
/// The default m-line of a fragment. Only its attributes matter (RFC 8840 section 4.3).
const MEDIA: &str = "audio 9 UDP/TLS/RTP/SAVPF 0";

/// The content of a fragment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IceFragment {
    /// The credentials of the candidates' ICE session.
    pub ice: Option<IceCredentials>,
    /// The candidates in their order.
    pub candidates: Vec<FragmentCandidate>,
    /// Whether no more candidates will come (`a=end-of-candidates`).
    pub complete: bool,
    /// The value of the first m-line.
    pub media: Option<String>,
    /// The mid of the first m-line.
    pub mid: Option<String>,
}

/// A candidate of a fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FragmentCandidate {
    /// The mid of its m-line, if the fragment has it.
    pub mid: Option<String>,
    /// The index of its m-line in the fragment.
    pub index: usize,
    /// The text after `a=`: `candidate:…`.
    pub text: String,
}

/// The reason why a fragment was refused. Lines are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FragmentError {
    /// It has no lines.
    #[error("the fragment is empty")]
    Empty,
    /// A line does not have the form `x=value`.
    #[error("line {0} is not of the form x=value")]
    NotKeyValue(usize),
    /// A line is longer than 1,024 bytes.
    #[error("line {0} is longer than {MAX_LINE} bytes")]
    LongLine(usize),
    /// A line of a type that fragments do not contain.
    #[error("line {0} has no place in a fragment: there are a= and m= lines only")]
    ForeignLine(usize),
    /// Credentials with a wrong length or character (RFC 8839 section 5.4).
    #[error("line {0}: an ice-ufrag has 4 to 256 characters, an ice-pwd 22 to 256")]
    Credentials(usize),
    /// Only one of `ice-ufrag` and `ice-pwd`, or different ones.
    #[error("ice-ufrag and ice-pwd have to come together, and only once")]
    LoneCredential,
    /// More than 100 candidates.
    #[error("more than {MAX_CANDIDATES} candidates")]
    TooManyCandidates,
}

impl IceFragment {
    /// Reads a fragment. Unknown attributes are ignored, as in descriptions.
    pub fn parse(text: &str) -> Result<Self, FragmentError> {
        let mut reader = Reader::default();
        let lines = text.lines().enumerate();
        for (index, line) in lines.map(|(index, line)| (index.saturating_add(1), line.trim_end())) {
            if !line.is_empty() {
                reader.line(index, line)?;
            }
        }
        reader.finish()
    }
}

/// The state of reading.
#[derive(Debug, Default)]
struct Reader {
    fragment: IceFragment,
    ufrag: Option<String>,
    pwd: Option<String>,
    /// The number of m-lines so far.
    media: usize,
    /// The mid of the last one.
    mid: Option<String>,
    any: bool,
}

impl Reader {
    fn line(&mut self, number: usize, line: &str) -> Result<(), FragmentError> {
        if line.len() > MAX_LINE {
            return Err(FragmentError::LongLine(number));
        }
        let (key, value) = line
            .split_once('=')
            .ok_or(FragmentError::NotKeyValue(number))?;
        self.any = true;
        match key {
            "m" => self.media_line(value),
            "a" => self.attribute(number, value)?,
            _ if key.len() == 1 => return Err(FragmentError::ForeignLine(number)),
            _ => return Err(FragmentError::NotKeyValue(number)),
        }
        Ok(())
    }

    fn media_line(&mut self, value: &str) {
        self.media = self.media.saturating_add(1);
        self.mid = None;
        let written = value
            .bytes()
            .all(|byte| byte.is_ascii_graphic() || byte == b' ');
        if self.media == 1 && written {
            self.fragment.media = Some(value.to_owned());
        }
    }

    fn attribute(&mut self, number: usize, attribute: &str) -> Result<(), FragmentError> {
        let (name, value) = attribute.split_once(':').unwrap_or((attribute, ""));
        match name {
            "ice-ufrag" => set_once(&mut self.ufrag, credential(value, 4, number)?),
            "ice-pwd" => set_once(&mut self.pwd, credential(value, 22, number)?),
            "mid" => {
                let mid = value.trim();
                let token = !mid.is_empty() && mid.bytes().all(|byte| byte.is_ascii_graphic());
                self.mid = token.then(|| mid.to_owned());
                if self.media <= 1 {
                    self.fragment.mid.clone_from(&self.mid);
                }
                Ok(())
            }
            "candidate" => {
                if self.fragment.candidates.len() >= MAX_CANDIDATES {
                    return Err(FragmentError::TooManyCandidates);
                }
                self.fragment.candidates.push(FragmentCandidate {
                    mid: self.mid.clone(),
                    index: self.media.saturating_sub(1),
                    text: attribute.to_owned(),
                });
                Ok(())
            }
            "end-of-candidates" => {
                self.fragment.complete = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn finish(self) -> Result<IceFragment, FragmentError> {
        let Reader {
            mut fragment,
            ufrag,
            pwd,
            any,
            ..
        } = self;
        if !any {
            return Err(FragmentError::Empty);
        }
        fragment.ice = match (ufrag, pwd) {
            (Some(ufrag), Some(pwd)) => Some(IceCredentials { ufrag, pwd }),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => return Err(FragmentError::LoneCredential),
        };
        Ok(fragment)
    }
}

/// Sets a credential. With BUNDLE, all m-lines have the same ones, and some clients repeat them.
fn set_once(known: &mut Option<String>, value: &str) -> Result<(), FragmentError> {
    match known {
        Some(known) if known != value => Err(FragmentError::LoneCredential),
        Some(_) => Ok(()),
        None => {
            *known = Some(value.to_owned());
            Ok(())
        }
    }
}

fn credential(value: &str, min: usize, line: usize) -> Result<&str, FragmentError> {
    let value = value.trim();
    let fits = (min..=256).contains(&value.len()) && value.bytes().all(|b| b.is_ascii_graphic());
    fits.then_some(value)
        .ok_or(FragmentError::Credentials(line))
}

/// Writes it with one m-line.
impl fmt::Display for IceFragment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a=ice-options:trickle ice2\r\n")?;
        let mid = self.mid.as_deref().unwrap_or("0");
        write!(f, "a=group:BUNDLE {mid}\r\n")?;
        write!(f, "m={}\r\n", self.media.as_deref().unwrap_or(MEDIA))?;
        write!(f, "a=mid:{mid}\r\n")?;
        if let Some(ice) = &self.ice {
            write!(f, "a=ice-ufrag:{}\r\na=ice-pwd:{}\r\n", ice.ufrag, ice.pwd)?;
        }
        for candidate in &self.candidates {
            write!(f, "a={}\r\n", candidate.text)?;
        }
        if self.complete {
            f.write_str("a=end-of-candidates\r\n")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use super::*;

    /// Chromium's candidates in a client's fragment (RFC 9725 section 4.3.2).
    const TRICKLED: &str = "a=group:BUNDLE 0 1\r\n\
        m=audio 9 UDP/TLS/RTP/SAVPF 111\r\n\
        a=mid:0\r\n\
        a=ice-ufrag:EsAw\r\n\
        a=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1\r\n\
        a=candidate:1387637174 1 udp 2122260223 192.0.2.1 61764 typ host generation 0\r\n\
        a=candidate:3471623853 1 udp 2122194687 198.51.100.2 61765 typ host generation 0\r\n\
        a=end-of-candidates\r\n";

    #[test]
    fn a_fragment_has_credentials_and_candidates() {
        let fragment = IceFragment::parse(TRICKLED).unwrap();
        assert_eq!(fragment.ice.unwrap().ufrag, "EsAw");
        assert_eq!(fragment.candidates.len(), 2);
        let first = &fragment.candidates[0];
        assert_eq!((first.mid.as_deref(), first.index), (Some("0"), 0));
        assert!(first.text.starts_with("candidate:1387637174 1 udp"));
        assert!(fragment.complete);
        assert_eq!(
            fragment.media.as_deref(),
            Some("audio 9 UDP/TLS/RTP/SAVPF 111")
        );
    }

    #[test]
    fn what_is_written_can_be_read() {
        let fragment = IceFragment::parse(TRICKLED).unwrap();
        assert_eq!(IceFragment::parse(&fragment.to_string()), Ok(fragment));
        let empty = IceFragment::default().to_string();
        assert_eq!(IceFragment::parse(&empty).unwrap().ice, None);
    }

    #[test]
    fn bare_line_feeds_and_session_level_credentials_are_taken() {
        let text = "a=ice-ufrag:abcd\na=ice-pwd:0123456789012345678901\n\nm=video 9 X 0\na=mid:v\na=candidate:1 1 udp 1 192.0.2.1 9 typ host";
        let fragment = IceFragment::parse(text).unwrap();
        assert!(fragment.ice.is_some());
        assert_eq!(fragment.candidates[0].mid.as_deref(), Some("v"));
        let repeated = format!("{TRICKLED}m=video 9 X 0\na=mid:1\na=ice-ufrag:EsAw\n");
        assert_eq!(IceFragment::parse(&repeated).unwrap().mid.unwrap(), "0");
    }

    #[test]
    fn nonsense_is_refused_with_its_line() {
        use FragmentError as E;
        let many = "a=candidate:1\n".repeat(101);
        let long = format!("a={}", "x".repeat(1_100));
        for (text, error) in [
            ("", E::Empty),
            ("\r\n \r\n", E::Empty),
            ("hello", E::NotKeyValue(1)),
            ("a=mid:0\n{}=1", E::NotKeyValue(2)),
            ("v=0\r\n", E::ForeignLine(1)),
            ("a=ice-ufrag:abc", E::Credentials(1)),
            ("a=mid:0\na=ice-pwd:short", E::Credentials(2)),
            ("a=ice-ufrag:abcd", E::LoneCredential),
            ("a=ice-ufrag:abcd\na=ice-ufrag:abce", E::LoneCredential),
            (many.as_str(), E::TooManyCandidates),
            (long.as_str(), E::LongLine(1)),
        ] {
            assert_eq!(IceFragment::parse(text), Err(error), "{text:.40}");
        }
    }
}
