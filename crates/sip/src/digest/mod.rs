//! Digest authentication (RFC 3261 section 22, RFC 7616, RFC 8760).
//!
//! A [`Client`] answers challenges with [`Credentials`]. A [`Verifier`] makes challenges and checks answers. MD5, SHA-256
//! and SHA-512-256; `qop` of `auth`, `auth-int` or none. The `-sess` algorithms are not spoken.

mod challenge;
mod client;
mod hash;
mod verifier;

pub use challenge::{Challenge, Kind, Qop};
pub use client::{Client, Credentials, DigestError, respond};
pub use hash::Algorithm;
pub use verifier::{Rules, Verdict, Verifier};
