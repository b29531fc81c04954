//! JSEP offer/answer on top of an SDP library.
