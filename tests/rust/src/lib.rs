//! Tests that cross crates: simulated networks and whole servers.
