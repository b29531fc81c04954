//! A connection of whatever kind.

use tokio::io::{AsyncRead, AsyncWrite};

/// Bytes both ways.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}
