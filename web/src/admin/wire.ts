// The answers of the Admin API, as far as the pages read them: docs/admin.md has all of them. Times are in seconds, rates in bit/s,
// losses are shares from 0 to 1.
import type { Id } from './api';

/** `info` */
export interface ServerInfo {
  'portunus-version': string;
  'server-name'?: string;
  'accepting-new-sessions'?: boolean;
  plugins?: Record<string, { name: string }>;
}

/** `overview` */
export interface Overview {
  counts: { sessions: number; handles: number; peer_connections: number };
  uptime: number;
  /** Sessions that fit the search. */
  total: number;
  sessions: SessionRow[];
  trouble: Counter[];
  handlers: EventHandler[];
}

/** `history`: the last hour, a value a minute, the newest last. */
export interface Hour {
  sessions: number[];
  peer_connections: number[];
  bits_in: number[];
  bits_out: number[];
  core_share: number[];
  lag_max: number[];
}

/** One of `metrics`. */
export interface Metric {
  name: string;
  /** Such as `use="tls"`. */
  labels?: string;
  value: number;
}

export interface SessionRow {
  session_id: Id;
  transport: string;
  address?: string;
  age: number;
  idle: number;
  handles: HandleRow[];
}

export interface HandleRow {
  handle_id: Id;
  plugin: string;
  opaque_id?: string;
  connection?: string;
  bitrate_in?: number;
  bitrate_out?: number;
  loss_in?: number;
  loss_out?: number;
  round_trip?: number;
}

export interface Counter {
  name: string;
  help: string;
  value: number;
}

export interface EventHandler {
  package: string;
  /** False once it has ended by a fault of its own. */
  running: boolean;
  waiting: number;
  /** Events that it did not take in time. */
  dropped: number;
  counters: Counter[];
}

/** One of `workers_info`. */
export interface Worker {
  worker: number;
  peers: number;
  lag_median: number;
  lag_max: number;
  silent: number;
  core_share: number;
  packets_in: number;
  packets_out: number;
  bits_in: number;
  bits_out: number;
}

/** An event, as event handlers get it (docs/events.md). */
export interface ServerEvent {
  type: number;
  subtype?: number;
  /** Microseconds since 1970. */
  timestamp: number;
  session_id?: Id;
  handle_id?: Id;
  opaque_id?: string;
  event: unknown;
}

/** `handle_info` */
export interface HandleInfo {
  session_id: Id;
  handle_id: Id;
  session_transport?: string;
  opaque_id?: string;
  plugin: string;
  plugin_specific?: unknown;
  /** Microseconds, as all times here that are not in additions of ours. */
  created: number;
  current_time: number;
  session_last_activity?: number;
  sdps?: { profile?: string; local?: string; remote?: string };
  'dump-to-pcap'?: boolean;
  'pcap-file'?: string;
  diagnosis?: Cause[];
  webrtc?: WebRtc;
}

export interface Cause {
  cause: string;
  text: string;
}

export interface WebRtc {
  ice: {
    state: string;
    'local-candidates'?: string[];
    'remote-candidates'?: string[];
    'selected-pair'?: string;
  };
  dtls: { 'dtls-state'?: string; 'dtls-role'?: string; 'srtp-profile'?: string; retransmissions?: number };
  bandwidth?: Bandwidth;
  pairs?: Pair[];
  series?: Series;
  media?: Record<string, Medium>;
}

/** The capacity of the link to the client. */
export interface Bandwidth {
  estimate: number;
  budget: number;
  set_by: string;
  queue: number;
  loss: number;
  round_trip: number;
}

export interface Candidate {
  address: string;
  port: number;
  type: string;
  transport: string;
}

export interface Pair {
  local: Candidate;
  remote: Candidate;
  state: string;
  nominated: boolean;
  round_trip?: number;
  checks_sent: number;
  checks_answered: number;
  checks_received: number;
}

/** The last minute, a list for each figure with a value a second, the oldest first; null: unknown in that second. */
export type Series = { age: number[] } & Partial<
  Record<
    'bitrate_in' | 'bitrate_out' | 'loss_in' | 'loss_out' | 'round_trip' | 'estimate' | 'substream' | 'spatial' | 'temporal',
    (number | null)[]
  >
>;

export interface Medium {
  type: 'audio' | 'video' | 'data';
  mindex: number;
  mid: string;
  direction?: { send: boolean; recv: boolean };
  codecs?: { codec?: string };
  /** Of data. */
  stats?: { in?: Traffic; out?: Traffic };
  layers?: Layers;
  /** The lowest encoding first. */
  received?: Stream[];
  sent?: Stream;
}

export interface Traffic {
  packets: number;
  bytes: number;
}

export interface Stream extends Traffic {
  rid?: string;
  ssrc?: number;
  bytes_lastsec: number;
  lost: number;
  jitter: number;
  nacks: number;
  retransmissions: number;
  keyframe_requests: number;
  keyframe_age?: number;
  last_packet_age?: number;
  round_trip?: number;
}

export interface Layers {
  substream: number | null;
  spatial: number | null;
  temporal: number | null;
  bitrate: number;
  reason: string;
}

/** `cluster_status` */
export interface ClusterStatus {
  /** This node. */
  node: string;
  cluster: string;
  bus_connected: boolean;
  confirmed: boolean;
  nodes: ClusterNode[];
  links: NodeLink[];
  homes: Home[];
  home_count: number;
  /** Sentences. */
  disagreements: string[];
}

export interface ClusterNode {
  node: string;
  state: string;
  region: string;
  load: { worker: number; mbps_out: number };
  /** In milliseconds. */
  age_ms: number;
}

export interface NodeLink {
  node: string;
  /** `up`, `suspect`, `connecting` or `down`. */
  state: string;
  /** The node that carries the frames of the link, if there is no direct connection. */
  through?: string;
  round_trip_us?: number;
  /** What the media link carries. */
  media?: MediaLink;
}

export interface MediaLink {
  round_trip_us?: number;
  lost: number;
  mbps_out: number;
  mbps_in: number;
  streams_out: number;
  streams_in: number;
  /** Whether media crosses the link in both directions. */
  works: boolean;
  /** Streams that are sent to the node for third ones. */
  carried_streams: number;
  /** Through which nodes sources of the node come, and how many. */
  through: Record<string, number>;
}

/** Where a room or stream lives. */
export interface Home {
  what: string;
  node?: string;
  members: string[];
  items: number;
}
