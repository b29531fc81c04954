//! Video Call plugin: one-to-one calls between registered names.
