//! Hashes, and the digests made of them.

use std::fmt::Write as _;

use md5::Md5;
use sha2::{Digest, Sha256, Sha512_256};

/// The hash of a challenge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// MD5, which all peers know.
    Md5,
    /// RFC 7616.
    Sha256,
    /// RFC 7616.
    Sha512_256,
}

impl Algorithm {
    /// Returns the name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Md5 => "MD5",
            Self::Sha256 => "SHA-256",
            Self::Sha512_256 => "SHA-512-256",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        [Self::Md5, Self::Sha256, Self::Sha512_256]
            .into_iter()
            .find(|one| name.eq_ignore_ascii_case(one.as_str()))
    }

    /// Returns the hash of all `parts`, joined by colons, in hexadecimal.
    pub(super) fn hash(self, parts: &[&[u8]]) -> String {
        match self {
            Self::Md5 => hex(&joined::<Md5>(parts)),
            Self::Sha256 => hex(&joined::<Sha256>(parts)),
            Self::Sha512_256 => hex(&joined::<Sha512_256>(parts)),
        }
    }

    /// Returns H(A1), which a server may keep instead of the password.
    #[must_use]
    pub fn ha1(self, user: &str, realm: &str, password: &str) -> String {
        self.hash(&[user.as_bytes(), realm.as_bytes(), password.as_bytes()])
    }
}

fn joined<H: Digest>(parts: &[&[u8]]) -> Vec<u8> {
    let mut hasher = H::new();
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            hasher.update(b":");
        }
        hasher.update(part);
    }
    hasher.finalize().to_vec()
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(
        String::with_capacity(bytes.len().saturating_mul(2)),
        |mut text, byte| {
            // Writing to a String does not fail.
            let _ = write!(text, "{byte:02x}");
            text
        },
    )
}

/// Returns the first octets of a hash over `key` and `parts`, which have fixed lengths.
pub(super) fn keyed(key: &[u8; 32], parts: &[&[u8]]) -> String {
    let mut hasher = Sha256::new();
    hasher.update(key);
    for part in parts {
        hasher.update(part);
    }
    let inner = hasher.finalize();
    let outer = Sha256::new()
        .chain_update(key)
        .chain_update(inner)
        .finalize();
    hex(outer.get(..16).unwrap_or(&outer))
}

/// Whether both texts are the same. The duration does not depend on where they differ.
pub(super) fn same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .fold(0, |differ, (a, b)| differ | (a ^ b))
            == 0
}

/// The input of a response, besides H(A1).
#[derive(Debug, Clone, Copy)]
pub(super) struct Input<'a> {
    pub algorithm: Algorithm,
    pub nonce: &'a str,
    /// `nc` (as on the wire), `cnonce` and `qop`, unless there is no `qop`.
    pub counted: Option<(&'a str, &'a str, super::Qop)>,
    pub method: &'a str,
    pub uri: &'a str,
    pub body: &'a [u8],
}

/// Computes the response (RFC 7616 section 3.4.1).
pub(super) fn response(ha1: &str, input: Input<'_>) -> String {
    let Input {
        algorithm,
        nonce,
        counted,
        method,
        uri,
        body,
    } = input;
    let ha2 = match counted {
        Some((_, _, super::Qop::AuthInt)) => {
            let body = algorithm.hash(&[body]);
            algorithm.hash(&[method.as_bytes(), uri.as_bytes(), body.as_bytes()])
        }
        _ => algorithm.hash(&[method.as_bytes(), uri.as_bytes()]),
    };
    match counted {
        Some((nc, cnonce, qop)) => algorithm.hash(&[
            ha1.as_bytes(),
            nonce.as_bytes(),
            nc.as_bytes(),
            cnonce.as_bytes(),
            qop.as_str().as_bytes(),
            ha2.as_bytes(),
        ]),
        None => algorithm.hash(&[ha1.as_bytes(), nonce.as_bytes(), ha2.as_bytes()]),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Qop;
    use super::*;

    #[test]
    fn the_examples_of_rfc_7616() {
        let answer = |algorithm: Algorithm| {
            let input = Input {
                algorithm,
                nonce: "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v",
                counted: Some((
                    "00000001",
                    "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ",
                    Qop::Auth,
                )),
                method: "GET",
                uri: "/dir/index.html",
                body: b"",
            };
            response(
                &algorithm.ha1("Mufasa", "http-auth@example.org", "Circle of Life"),
                input,
            )
        };
        assert_eq!(answer(Algorithm::Md5), "8ca523f5e9506fed4657c9700eebdbec");
        assert_eq!(
            answer(Algorithm::Sha256),
            "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"
        );
        // What section 3.9.2 prints is wrong (erratum 4897). These are of its input, by OpenSSL.
        let algorithm = Algorithm::Sha512_256;
        assert_eq!(
            algorithm.hash(&["Jäsøn Doe".as_bytes(), b"api@example.org"]),
            "793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b"
        );
        let input = Input {
            algorithm,
            nonce: "5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK",
            counted: Some(("00000001", "NTg6RKcb9boFIAS3KrFK9BGeh+niz/sm", Qop::Auth)),
            method: "GET",
            uri: "/doe.json",
            body: b"",
        };
        let ha1 = algorithm.ha1("Jäsøn Doe", "api@example.org", "Secret, or not?");
        assert_eq!(
            response(&ha1, input),
            "7a4e1192babbba02e91182d2895bfdbf7adafc6e48d4e517ca301974843d840c"
        );
    }

    #[test]
    fn the_examples_of_rfc_2617_and_before() {
        let input = Input {
            algorithm: Algorithm::Md5,
            nonce: "dcd98b7102dd2f0e8b11d0f600bfb0c093",
            counted: Some(("00000001", "0a4f113b", Qop::Auth)),
            method: "GET",
            uri: "/dir/index.html",
            body: b"v=0",
        };
        let ha1 = Algorithm::Md5.ha1("Mufasa", "testrealm@host.com", "Circle Of Life");
        assert_eq!(response(&ha1, input), "6629fae49393a05397450978507c4ef1");
        let with_body = Input {
            counted: Some(("00000001", "0a4f113b", Qop::AuthInt)),
            method: "POST",
            ..input
        };
        assert_eq!(
            response(&ha1, with_body),
            "2c34a816923cdbb491ee02c0522596a8"
        );
        let old = Algorithm::Md5.ha1("Mufasa", "testrealm@host.com", "CircleOfLife");
        assert_eq!(
            response(
                &old,
                Input {
                    counted: None,
                    ..input
                }
            ),
            "1949323746fe6a43ef61f9606e7febea"
        );
    }

    #[test]
    fn texts_are_compared_whole() {
        assert!(same("abc", "abc") && !same("abc", "abd") && !same("abc", "abcd") && same("", ""));
    }
}
