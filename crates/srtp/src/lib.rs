//! SRTP and SRTCP: seal and open, replay windows, key derivation.
