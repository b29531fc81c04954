//! Who is let in and with which rights: the API secret, stored tokens, signed tokens, JSON Web
//! Tokens, and trust in this machine.
#![forbid(unsafe_code)]

mod comparison;
mod credentials;
mod fault;
mod jwt;
mod metrics;
mod rights;
mod scope;
mod signed;
mod stored;
#[cfg(feature = "testing")]
pub mod testing;
mod tokens;

pub use comparison::equal_in_constant_time;
pub use credentials::Credentials;
pub use fault::TokenFault;
pub use jwt::{JwtConfig, JwtError, JwtVerifier, KeyError, KeyFileError};
pub use rights::{Right, Rights, Untrusted};
pub use scope::{OutOfScope, TokenScope};
pub use stored::{MAX_STORED, OpenedPlugins, Stored, StoredToken, StoredTokens, TooManyTokens};
pub use tokens::{MAX_TOKEN, ShownToken, TokenTotals, Tokens, TokensConfig, watch_keys};
