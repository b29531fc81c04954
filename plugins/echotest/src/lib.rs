//! Echo Test plugin: media and data sent by the client come back.
