//! SRTP keys in descriptions: `a=crypto` (RFC 4568), with the suites of SRTP (RFC 4568, RFC 7714).

use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sdp_types::{Crypto, CryptoSuite, SrtpKeyParam, SrtpSessionParam};

/// The most lines of an m-line that are read.
const MAX_LINES: usize = 16;

/// A suite of SRTP, with its lengths of key and salt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Suite {
    /// `AES_CM_128_HMAC_SHA1_80`
    #[default]
    AesCm128HmacSha1_80,
    /// `AES_CM_128_HMAC_SHA1_32`
    AesCm128HmacSha1_32,
    /// `AEAD_AES_128_GCM`
    AeadAes128Gcm,
    /// `AEAD_AES_256_GCM`
    AeadAes256Gcm,
}

impl Suite {
    /// All suites.
    pub const ALL: [Suite; 4] = [
        Suite::AesCm128HmacSha1_80,
        Suite::AesCm128HmacSha1_32,
        Suite::AeadAes128Gcm,
        Suite::AeadAes256Gcm,
    ];

    /// Returns the name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Suite::AesCm128HmacSha1_80 => "AES_CM_128_HMAC_SHA1_80",
            Suite::AesCm128HmacSha1_32 => "AES_CM_128_HMAC_SHA1_32",
            Suite::AeadAes128Gcm => "AEAD_AES_128_GCM",
            Suite::AeadAes256Gcm => "AEAD_AES_256_GCM",
        }
    }

    /// Returns the suite with this name, ignoring case.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|suite| suite.as_str().eq_ignore_ascii_case(name))
    }

    /// Returns the length of the master key, in bytes.
    pub const fn key_len(self) -> usize {
        match self {
            Suite::AesCm128HmacSha1_80 | Suite::AesCm128HmacSha1_32 | Suite::AeadAes128Gcm => 16,
            Suite::AeadAes256Gcm => 32,
        }
    }

    /// Returns the length of the master salt, in bytes.
    pub const fn salt_len(self) -> usize {
        match self {
            Suite::AesCm128HmacSha1_80 | Suite::AesCm128HmacSha1_32 => 14,
            Suite::AeadAes128Gcm | Suite::AeadAes256Gcm => 12,
        }
    }

    /// Returns the length of both together, as in descriptions.
    pub const fn key_and_salt_len(self) -> usize {
        self.key_len() + self.salt_len()
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether a leg is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SrtpPolicy {
    /// No keys are offered. A far end that offers some gets SRTP nevertheless.
    #[default]
    None,
    /// Keys of this suite are offered. A far end that does not accept them gets plain RTP.
    Optional(Suite),
    /// Keys of this suite are offered, and a call without SRTP is refused.
    Mandatory(Suite),
}

impl SrtpPolicy {
    /// Returns the suite of the offered keys.
    pub const fn suite(self) -> Option<Suite> {
        match self {
            SrtpPolicy::None => None,
            SrtpPolicy::Optional(suite) | SrtpPolicy::Mandatory(suite) => Some(suite),
        }
    }

    /// Returns whether a call without SRTP is refused.
    pub const fn is_mandatory(self) -> bool {
        matches!(self, SrtpPolicy::Mandatory(_))
    }
}

/// The master key and salt of one direction.
#[derive(Clone, PartialEq, Eq)]
pub struct SdesKey {
    suite: Suite,
    key_and_salt: Vec<u8>,
}

impl SdesKey {
    /// Makes a key of this suite. Returns `None` if the length is wrong.
    pub fn new(suite: Suite, key_and_salt: &[u8]) -> Option<Self> {
        (key_and_salt.len() == suite.key_and_salt_len()).then(|| SdesKey {
            suite,
            key_and_salt: key_and_salt.to_vec(),
        })
    }

    /// Generates a key from bytes of `fill`, which has to be a generator fit for keys.
    pub fn generate(suite: Suite, fill: &mut dyn FnMut(&mut [u8])) -> Self {
        let mut key_and_salt = vec![0; suite.key_and_salt_len()];
        fill(&mut key_and_salt);
        SdesKey {
            suite,
            key_and_salt,
        }
    }

    /// Returns the suite.
    pub const fn suite(&self) -> Suite {
        self.suite
    }

    /// Returns the master key, followed by the master salt.
    pub fn key_and_salt(&self) -> &[u8] {
        &self.key_and_salt
    }

    /// Returns the value of `a=crypto`.
    pub(super) fn line(&self, tag: u32) -> String {
        let suite = self.suite.as_str();
        format!(
            "{tag} {suite} inline:{}",
            BASE64_STANDARD.encode(&self.key_and_salt)
        )
    }
}

/// Hides the key.
impl fmt::Debug for SdesKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SdesKey")
            .field("suite", &self.suite)
            .finish_non_exhaustive()
    }
}

/// The reason why a line cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the names say it")]
#[non_exhaustive]
pub enum CryptoRefusal {
    #[error("a line that cannot be read")]
    Unreadable,
    #[error("tag {tag}: the suite {suite} is unknown")]
    Suite { tag: u32, suite: String },
    #[error("tag {0}: the key is not base64 of the suite's length")]
    Key(u32),
    #[error("tag {0}: more than one key")]
    Keys(u32),
    #[error("tag {0}: a key with an identifier (MKI)")]
    Mki(u32),
    #[error("tag {tag}: the session parameter {parameter} is not supported")]
    Parameter { tag: u32, parameter: String },
    #[error("tag {0}: not the key that was offered")]
    NotOffered(u32),
}

/// A usable line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CryptoLine {
    pub(super) tag: u32,
    pub(super) key: SdesKey,
}

/// Returns the first usable line of an m-line for which `fits` is true, and why others cannot be
/// used.
pub(super) fn choose<'a>(
    lines: impl Iterator<Item = &'a str>,
    fits: impl Fn(&CryptoLine) -> bool,
) -> (Option<CryptoLine>, Vec<CryptoRefusal>) {
    let mut refusals = Vec::new();
    for line in lines.take(MAX_LINES) {
        match read(line) {
            Ok(line) if fits(&line) => return (Some(line), refusals),
            Ok(line) => refusals.push(CryptoRefusal::NotOffered(line.tag)),
            Err(refusal) => refusals.push(refusal),
        }
    }
    (None, refusals)
}

/// Reads the value of `a=crypto`. The lifetime of a key is ignored: a call has fewer packets than
/// any sensible value.
fn read(line: &str) -> Result<CryptoLine, CryptoRefusal> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let crypto: Crypto = words
        .join(" ")
        .parse()
        .map_err(|_| CryptoRefusal::Unreadable)?;
    let tag = crypto.tag;
    let name = crypto.crypto_suite.as_str();
    let suite = Suite::from_name(name).ok_or_else(|| CryptoRefusal::Suite {
        tag,
        suite: name.to_owned(),
    })?;
    if let Some(parameter) = crypto.session_params.iter().find(|it| !is_harmless(it)) {
        let shown = Crypto {
            tag,
            crypto_suite: CryptoSuite::new(name),
            key_params: Vec::new(),
            session_params: vec![parameter.clone()],
        };
        let shown = shown.to_string();
        let parameter = shown.split(' ').nth(2).unwrap_or_default().to_owned();
        // A key for error correction is a key too.
        let parameter = match parameter.split_once('=') {
            Some(("FEC_KEY", _)) => "FEC_KEY".to_owned(),
            _ => parameter,
        };
        return Err(CryptoRefusal::Parameter { tag, parameter });
    }
    let [
        SrtpKeyParam {
            key_and_salt,
            mki_and_length,
            ..
        },
    ] = crypto.key_params.as_slice()
    else {
        return Err(CryptoRefusal::Keys(tag));
    };
    if mki_and_length.is_some() {
        return Err(CryptoRefusal::Mki(tag));
    }
    let bytes = BASE64_STANDARD.decode(key_and_salt.trim()).ok();
    let key = bytes.and_then(|bytes| SdesKey::new(suite, &bytes));
    let key = key.ok_or(CryptoRefusal::Key(tag))?;
    Ok(CryptoLine { tag, key })
}

/// Returns whether a parameter does not change packets (RFC 4568 section 6.3): a window size hint,
/// a key derivation rate of 2^0 packets, and parameters that may be ignored.
fn is_harmless(parameter: &SrtpSessionParam) -> bool {
    match parameter {
        SrtpSessionParam::Wsh(_) => true,
        SrtpSessionParam::Extension(name) => name.starts_with('-'),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    fn line(suite: Suite) -> String {
        SdesKey::generate(suite, &mut |bytes| bytes.fill(7)).line(3)
    }

    #[test]
    fn what_is_written_can_be_read() {
        for suite in Suite::ALL {
            let read = read(&line(suite)).unwrap();
            assert_eq!((read.tag, read.key.suite()), (3, suite));
            assert_eq!(read.key.key_and_salt(), vec![7; suite.key_and_salt_len()]);
            assert_eq!(Suite::from_name(&suite.to_string()), Some(suite));
        }
        let lengths = Suite::ALL.map(Suite::key_and_salt_len);
        assert_eq!(lengths, [30, 30, 28, 44]);
    }

    #[test]
    fn lifetimes_and_hints_are_taken() {
        let usual = line(Suite::AesCm128HmacSha1_80);
        for more in [
            "|2^20",
            "|2^31",
            "|1000",
            " WSH=128",
            " -X=1",
            "|2^48 WSH=64",
        ] {
            assert!(read(&format!("{usual}{more}")).is_ok(), "{more}");
        }
        assert!(read(&usual.replace(' ', "  ")).is_ok());
        assert!(read(&usual.to_lowercase()).is_ok());
    }

    #[test]
    fn what_would_change_packets_is_refused_with_the_reason() {
        let usual = line(Suite::AesCm128HmacSha1_80);
        let key = usual.rsplit(' ').next().unwrap().to_owned();
        let reason = |line: &str| read(line).unwrap_err().to_string();
        for (text, expected) in [
            (
                format!("{usual}|2^20|1:4"),
                "tag 3: a key with an identifier (MKI)",
            ),
            (
                format!("{usual}|1:1"),
                "tag 3: a key with an identifier (MKI)",
            ),
            (format!("{usual};{key}"), "tag 3: more than one key"),
            (
                format!("{usual} KDR=1"),
                "tag 3: the session parameter KDR=1 is not supported",
            ),
            (
                format!("{usual} UNENCRYPTED_SRTCP"),
                "tag 3: the session parameter UNENCRYPTED_SRTCP is not supported",
            ),
            (
                format!("{usual} UNAUTHENTICATED_SRTP"),
                "tag 3: the session parameter UNAUTHENTICATED_SRTP is not supported",
            ),
            (
                format!("{usual} FEC_KEY={key}"),
                "tag 3: the session parameter FEC_KEY is not supported",
            ),
            (
                format!("{usual} X=1"),
                "tag 3: the session parameter X=1 is not supported",
            ),
            (
                format!("1 F8_128_HMAC_SHA1_80 {key}"),
                "tag 1: the suite F8_128_HMAC_SHA1_80 is unknown",
            ),
            (
                format!("1 AEAD_AES_256_GCM {key}"),
                "tag 1: the key is not base64 of the suite's length",
            ),
            (
                "1 AES_CM_128_HMAC_SHA1_80 inline:%%%".to_owned(),
                "tag 1: the key is not base64 of the suite's length",
            ),
            (
                "x AES_CM_128_HMAC_SHA1_80".to_owned(),
                "a line that cannot be read",
            ),
            (format!("{usual}|0"), "a line that cannot be read"),
            (String::new(), "a line that cannot be read"),
        ] {
            assert_eq!(reason(&text), expected, "{text}");
        }
    }

    #[test]
    fn the_first_usable_line_is_taken_and_keys_are_not_shown() {
        let lines = ["1 F8 inline:AAAA", &line(Suite::AeadAes128Gcm), "nonsense"];
        let (chosen, refusals) = choose(lines.into_iter(), |_| true);
        assert_eq!(chosen.as_ref().unwrap().tag, 3);
        assert_eq!(refusals.len(), 1);
        let shown = format!("{chosen:?}");
        assert!(!shown.contains("7, 7"), "{shown}");
        let (none, refusals) = choose(lines.into_iter(), |line| line.tag == 9);
        assert_eq!((none, refusals.len()), (None, 3));
    }
}
