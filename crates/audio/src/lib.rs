//! DSP threads: audio rooms (`portunus-dsp`) that run by deadline, away from media workers.
//!
//! A participant's source is tapped, and each mix that somebody hears is an ingest, so that for the media plane a mix is a
//! source like any other.
#![forbid(unsafe_code)]
