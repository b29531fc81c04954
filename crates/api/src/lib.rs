//! The Janus API over HTTP, WebSocket and Unix socket; the web pages.
