//! Credentials for a TURN server.

/// Long-term credentials (RFC 8489 section 9.2).
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The user name. A REST API for TURN servers may have issued it for a limited time.
    pub username: String,
    /// The password.
    pub password: String,
}

/// Hides the password.
impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Login");
        shown
            .field("username", &self.username)
            .finish_non_exhaustive()
    }
}
