// The tables of a PeerConnection: its streams, and the pairs of candidates that were tried.
import { make } from '../make';
import { element } from '../page';
import { bitrate, bytes, count, time } from '../units';
import { showTable, type Column } from './table';
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
function rowsOf(medium: Medium): (string | Node)[][] {
  const { stats, direction, type, received = [], sent, layers } = medium;
  if (type === 'data') return [data(medium, 'from the client', stats?.in), data(medium, 'to the client', stats?.out)];
  const rows: (string | Node)[][] = [];
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

function figures(medium: Medium, stream: Stream, [way, which]: [string, string | undefined]): (string | Node)[] {
  const cell = make('span', { text: way });
  for (const text of [which, stream.ssrc && `SSRC ${stream.ssrc}`]) {
    if (text) cell.append(make('small', { className: 'soft', text }));
  }
  return [
    named(medium),
    cell,
    bitrate(stream.bytes_lastsec * 8),
    count(stream.packets),
    bytes(stream.bytes),
    count(stream.lost),
    count(stream.nacks),
    count(stream.retransmissions),
    time(stream.jitter),
    medium.type === 'video' ? keyframes(stream) : '',
  ];
}

function keyframes({ keyframe_age: age, keyframe_requests: asked }: Stream): HTMLElement {
  const cell = make('span', { text: age === undefined ? '–' : `${time(age)} ago` });
  cell.append(make('small', { className: 'soft', text: `asked ${count(asked)}×` }));
  return cell;
}

function data(medium: Medium, way: string, traffic: Traffic | undefined): (string | Node)[] {
  return [named(medium), way, '', count(traffic?.packets ?? 0), bytes(traffic?.bytes ?? 0), '', '', '', '', ''];
}

function named(medium: Medium): HTMLElement {
  const names = { audio: 'Sound', video: 'Video', data: 'Data' };
  const name = make('span', { text: `${names[medium.type]} ${medium.mid}` });
  if (medium.codecs?.codec) name.append(make('small', { className: 'soft', text: medium.codecs.codec }));
  return name;
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

function list(id: string, candidates: string[] | undefined): void {
  const items = (candidates ?? []).map((candidate) => make('li', { text: candidate }));
  if (items.length === 0) items.push(make('li', { text: 'none' }));
  element(id).replaceChildren(...items);
}
