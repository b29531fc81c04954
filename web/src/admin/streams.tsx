// The tables of a PeerConnection: its streams, and the pairs of candidates that were tried.
import { render, type ComponentChildren } from 'preact';
import { element } from '../page';
import { bitrate, bytes, count, time } from '../units';
import { Noted, showTable, type Column } from './table';
import type { Candidate, Layers, Medium, Pair, Stream, Traffic, WebRtc } from './wire';

const STREAMS: Column[] = [
  { name: 'Stream' },
  { name: 'Way' },
  { name: 'Now', figures: true },
  { name: 'Packets', figures: true },
  { name: 'Bytes', figures: true },
  { name: 'Lost', figures: true },
  { name: 'NACKs', figures: true },
  { name: 'Again', figures: true },
  { name: 'Jitter', figures: true },
  { name: 'Keyframe', figures: true },
];

const PAIRS: Column[] = [
  { name: 'Server' },
  { name: 'Client' },
  { name: 'State' },
  { name: 'Round trip', figures: true },
  { name: 'Checks sent', figures: true },
  { name: 'answered', figures: true },
  { name: 'received', figures: true },
];

export function showStreams(webrtc: WebRtc | undefined): void {
  const media = Object.values(webrtc?.media ?? {}).sort((a, b) => a.mindex - b.mindex);
  const rows = media.flatMap(rowsOf);
  showTable(element('streams'), STREAMS, rows);
  element('no-streams').hidden = rows.length > 0;
}

export function showPairs(webrtc: WebRtc | undefined): void {
  const pairs = webrtc?.pairs ?? [];
  showTable(element('pairs'), PAIRS, pairs.map(pairRow));
  element('no-pairs').hidden = pairs.length > 0;
  list('local-candidates', webrtc?.ice['local-candidates']);
  list('remote-candidates', webrtc?.ice['remote-candidates']);
}

/** One row for each encoding that comes, and one for what is sent. */
function rowsOf(medium: Medium): ComponentChildren[][] {
  const { stats, direction, type, received = [], sent, layers } = medium;
  if (type === 'data') return [data(medium, 'from the client', stats?.in), data(medium, 'to the client', stats?.out)];
  const rows: ComponentChildren[][] = [];
  received.forEach((stream, index) => {
    if (!direction?.recv && stream.packets === 0) return;
    const encoding = received.length > 1 ? `encoding ${index}${stream.rid ? ` (${stream.rid})` : ''}` : undefined;
    rows.push(figures(medium, stream, ['from the client', encoding]));
  });
  if (sent && (direction?.send || sent.packets > 0)) {
    rows.push(figures(medium, sent, ['to the client', layers && layersInWords(layers)]));
  }
  return rows;
}

function figures(medium: Medium, stream: Stream, [way, which]: [string, string | undefined]): ComponentChildren[] {
  const { keyframe_age: age, keyframe_requests: asked } = stream;
  return [
    <Named medium={medium} />,
    <Noted text={way} more={[which, stream.ssrc !== undefined && `SSRC ${stream.ssrc}`]} />,
    bitrate(stream.bytes_lastsec * 8),
    count(stream.packets),
    bytes(stream.bytes),
    count(stream.lost),
    count(stream.nacks),
    count(stream.retransmissions),
    time(stream.jitter),
    medium.type === 'video' && <Noted text={age === undefined ? '–' : `${time(age)} ago`} more={[`asked ${count(asked)}×`]} />,
  ];
}

function data(medium: Medium, way: string, traffic: Traffic | undefined): ComponentChildren[] {
  return [<Named medium={medium} />, way, '', count(traffic?.packets ?? 0), bytes(traffic?.bytes ?? 0), '', '', '', '', ''];
}

const NAMES = { audio: 'Sound', video: 'Video', data: 'Data' };

function Named({ medium: { type, mid, codecs } }: { medium: Medium }) {
  return <Noted text={`${NAMES[type]} ${mid}`} more={[codecs?.codec]} />;
}

/** Which layers are sent, and why these. */
function layersInWords(layers: Layers): string {
  const parts = [
    layers.substream !== null && `encoding ${layers.substream}`,
    layers.spatial !== null && `spatial ${layers.spatial}`,
    layers.temporal !== null && `temporal ${layers.temporal}`,
  ].filter(Boolean);
  return `${parts.join(', ') || 'nothing'}: ${WHY[layers.reason] ?? layers.reason}`;
}

/** The reasons of docs/bandwidth.md. */
const WHY: Record<string, string> = {
  audio: 'always sent',
  'not-wanted': 'the client does not want it now',
  unmeasured: 'it has just begun',
  best: 'all that there is',
  'client-bound': 'the client wants no more',
  bandwidth: 'more would not fit',
  least: 'there is nothing less',
  holding: 'more would fit, soon',
  'emptying-queue': 'a queue is emptied',
  paused: 'it does not fit, and may pause',
  priority: 'others come first',
  silent: 'more is due, but does not come',
  keyframe: 'others are due, and wait for a keyframe',
};

function pairRow(pair: Pair): string[] {
  return [
    candidate(pair.local),
    candidate(pair.remote),
    pair.nominated ? `${pair.state}, in use` : pair.state,
    pair.round_trip === undefined ? '–' : time(pair.round_trip),
    count(pair.checks_sent),
    count(pair.checks_answered),
    count(pair.checks_received),
  ];
}

function candidate({ address, port, type, transport }: Candidate): string {
  const host = address.includes(':') ? `[${address}]` : address;
  return `${host}:${port} ${type}, ${transport}`;
}

function list(id: string, candidates: string[] = []): void {
  render(<>{(candidates.length > 0 ? candidates : ['none']).map((candidate) => <li>{candidate}</li>)}</>, element(id));
}
