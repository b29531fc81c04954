//! RTP, RTCP, header extensions and codec payload descriptors: borrowed views and writers.
