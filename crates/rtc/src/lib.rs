//! One PeerConnection, sans-IO: ICE, DTLS, SRTP, SCTP.
