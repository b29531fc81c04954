//! Workers, sockets and the media graph.
