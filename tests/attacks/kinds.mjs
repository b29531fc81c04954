// The attacks, and the server's counters that name each.

/** Counters of datagrams that media refuse, by kind. */
const refused = (...kinds) => kinds.map((kind) => `portunus_media_refused_datagrams_total{kind="${kind}"}`);
const REQUESTS = 'portunus_refused_requests_total';
const MEMORY = 'portunus_client_memory_refused_total{of="address"}';

/**
 * @typedef {object} Kind
 * @property {string} name as `attacker` calls it
 * @property {string} what
 * @property {string[]} counters one of them has to grow; empty: all that is sent may be taken
 * @property {boolean} [isUnverified] what comes back by UDP goes to addresses that nobody has verified: it may not be more than was sent
 * @property {boolean} [isCall] an attacker with a call: it has to go on, whatever it does or somebody does to it
 */

/** @type {Kind[]} */
export const KINDS = [
  { name: 'stun', what: 'checks with wrong user fragments and passwords, cut off, damaged', counters: refused('unknown_peer', 'refused_stun', 'malformed_stun'), isUnverified: true },
  { name: 'checks', what: 'valid checks of one PeerConnection from 256 ports of 16 addresses', counters: refused('refused_stun'), isUnverified: true },
  { name: 'client-hello', what: 'ClientHello from addresses that ICE has not verified', counters: refused('unknown_peer'), isUnverified: true },
  { name: 'forged-hello', what: "callers in whose name a ClientHello comes before their own", counters: refused('unknown_peer'), isUnverified: true, isCall: true },
  { name: 'srtp', what: "a caller's packets repeated, damaged, and from elsewhere", counters: refused('srtp_replayed', 'srtp_unauthenticated'), isUnverified: true, isCall: true },
  { name: 'rtcp', what: 'PLI, FIR, NACK, REMB, BYE and rubbish by a caller', counters: [], isCall: true },
  { name: 'http', what: 'connections that are silent, slow, too long, or ask without end', counters: [REQUESTS, MEMORY] },
  { name: 'websocket', what: 'silent ones, pings, messages of 2 MiB', counters: [REQUESTS, MEMORY] },
  // The system's buffers take what so many ask in this time; crates/api/tests/transports has clients that are given up.
  { name: 'slow-readers', what: 'requests by HTTP and WebSocket whose answers nobody reads', counters: [] },
  { name: 'sip', what: 'INVITE, OPTIONS, REGISTER and others by UDP and TCP, half of a request', counters: ['portunus_sip_unknown_requests_total', 'portunus_sip_limited_requests_total'], isUnverified: true },
  { name: 'turn', what: 'Allocate without credentials, with wrong ones, with valid ones', counters: ['portunus_turn_refused_total{kind="nonce"}', 'portunus_turn_unanswered_total'], isUnverified: true },
  { name: 'sessions', what: 'sessions that are made and left alone', counters: [] },
  { name: 'peers', what: 'PeerConnections that offer and never check', counters: [] },
];
