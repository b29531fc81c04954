// The live figures of a PeerConnection, from its statistics, and the panel that shows them.
import { make } from './make';
import { KINDS, Plot, type PlotKind } from './plot';
import { everySeen, SECOND } from './seen';

/** One reading; a field is undefined while the browser has no value for it. */
export interface Figures {
  /** bit/s over the whole transport. */
  bitrateIn?: number;
  bitrateOut?: number;
  /** Share of packets lost since the last reading, 0 to 1. */
  lossIn?: number;
  lossOut?: number;
  /** Seconds. */
  roundTrip?: number;
  audioCodec?: string;
  videoCodec?: string;
  srtp?: string;
  dtls?: string;
  path?: string;
  sizeIn?: string;
  sizeOut?: string;
  fpsIn?: number;
  fpsOut?: number;
  framesDecoded?: number;
}

type Stat = Record<string, any>;

/** Takes readings of a PeerConnection; rates are between one reading of it and the next. */
class Sampler {
  private connection?: RTCPeerConnection;
  private previous?: { at: number; bytesIn: number; bytesOut: number; received: number; lost: number };

  async read(connection: RTCPeerConnection): Promise<Figures> {
    const stats = new Map((await connection.getStats()) as unknown as Iterable<[string, Stat]>);
    if (connection !== this.connection) this.previous = undefined;
    this.connection = connection;
    const all = [...stats.values()];
    const of = (type: string) => all.filter((stat) => stat['type'] === type);
    const transport = of('transport')[0];
    const inbound = of('inbound-rtp');
    const videoIn = inbound.find((stat) => stat['kind'] === 'video' && stat['framesDecoded'] !== undefined);
    const videoOut = largest(of('outbound-rtp').filter((stat) => stat['kind'] === 'video'));
    const pair = stats.get(transport?.['selectedCandidatePairId'] ?? '');
    const codecOf = (kind: string) => {
      const stream = inbound.find((stat) => stat['kind'] === kind) ?? of('outbound-rtp').find((stat) => stat['kind'] === kind);
      return stats.get(stream?.['codecId'] ?? '')?.['mimeType']?.split('/')[1] as string | undefined;
    };
    return {
      ...this.rates(transport, pair, inbound),
      lossOut: of('remote-inbound-rtp').reduce<number | undefined>(
        (worst, stat) => (stat['fractionLost'] === undefined ? worst : Math.max(worst ?? 0, stat['fractionLost'])),
        undefined,
      ),
      roundTrip: pair?.['currentRoundTripTime'],
      audioCodec: codecOf('audio'),
      videoCodec: codecOf('video'),
      srtp: transport?.['srtpCipher']?.replace(/^SRTP_/, ''),
      dtls: dtlsVersion(transport?.['tlsVersion']),
      path: pathOf(stats, pair),
      sizeIn: sizeOf(videoIn),
      sizeOut: sizeOf(videoOut),
      fpsIn: videoIn?.['framesPerSecond'],
      fpsOut: videoOut?.['framesPerSecond'],
      framesDecoded: videoIn?.['framesDecoded'],
    };
  }

  private rates(transport: Stat | undefined, pair: Stat | undefined, inbound: Stat[]): Pick<Figures, 'bitrateIn' | 'bitrateOut' | 'lossIn'> {
    if (!transport) return {};
    const sum = (field: string) => inbound.reduce((total, stat) => total + (stat[field] ?? 0), 0);
    const now = {
      at: transport['timestamp'] as number,
      // Firefox counts for the pair of candidates only.
      bytesIn: transport['bytesReceived'] ?? pair?.['bytesReceived'] ?? 0,
      bytesOut: transport['bytesSent'] ?? pair?.['bytesSent'] ?? 0,
      received: sum('packetsReceived'),
      lost: sum('packetsLost'),
    };
    const before = this.previous;
    this.previous = now;
    if (!before || now.at <= before.at) return {};
    const seconds = (now.at - before.at) / 1000;
    const received = now.received - before.received;
    // Late packets turn losses into receptions, so the difference can be negative.
    const lost = Math.max(0, now.lost - before.lost);
    return {
      bitrateIn: ((now.bytesIn - before.bytesIn) * 8) / seconds,
      bitrateOut: ((now.bytesOut - before.bytesOut) * 8) / seconds,
      lossIn: received + lost > 0 ? lost / (received + lost) : undefined,
    };
  }
}

/** The rows that have a plot of the last minute. */
const PLOTTED: [name: string, label: string, kind: PlotKind, value: (figures: Figures) => number | undefined][] = [
  ['bitrate-in', 'Receiving', 'bitrate', ({ bitrateIn }) => bitrateIn],
  ['bitrate-out', 'Sending', 'bitrate', ({ bitrateOut }) => bitrateOut],
  ['loss-in', 'Loss, receiving', 'loss', ({ lossIn }) => lossIn],
  ['loss-out', 'Loss, sending', 'loss', ({ lossOut }) => lossOut],
];

const WRITTEN: [name: string, label: string, show: (figures: Figures) => string | undefined][] = [
  ['round-trip', 'Round trip', ({ roundTrip }) => (roundTrip === undefined ? undefined : `${(roundTrip * 1000).toFixed(1)} ms`)],
  ['video-codec', 'Video codec', ({ videoCodec }) => videoCodec],
  ['audio-codec', 'Audio codec', ({ audioCodec }) => audioCodec],
  ['size-in', 'Picture received', ({ sizeIn, fpsIn }) => picture(sizeIn, fpsIn)],
  ['size-out', 'Picture sent', ({ sizeOut, fpsOut }) => picture(sizeOut, fpsOut)],
  ['frames', 'Frames decoded', ({ framesDecoded }) => framesDecoded?.toString()],
  ['srtp', 'SRTP profile', ({ srtp }) => srtp],
  ['dtls', 'DTLS', ({ dtls }) => dtls],
  ['path', 'Path', ({ path }) => path],
];

/** The rows that say nothing where nothing is sent. */
const SENDING = ['bitrate-out', 'loss-out', 'size-out'];

/** The rows that speak of one stream, where there are many. */
const OF_ONE_STREAM = ['video-codec', 'audio-codec', 'size-in', 'size-out', 'frames', 'layer'];

/** The written rows that are always in sight. */
const IN_FRONT = ['round-trip', 'size-in', 'size-out'];

/** Shows figures as a list in `root`, and the layer, which only the plugin knows. */
export class FiguresPanel {
  private readonly plotted: typeof PLOTTED;
  private readonly written: typeof WRITTEN;
  private readonly values = new Map<string, HTMLElement>();
  private readonly plots = new Map<string, Plot>();
  private sampler?: Sampler;
  private end?: () => void;

  /** `more` takes what few people need to know. */
  constructor(private readonly root: HTMLElement, { receiveOnly = false, manyStreams = false, more = root } = {}) {
    const left = [...(receiveOnly ? SENDING : []), ...(manyStreams ? OF_ONE_STREAM : [])];
    this.plotted = PLOTTED.filter(([name]) => !left.includes(name));
    this.written = WRITTEN.filter(([name]) => !left.includes(name));
    for (const [name, label, kind] of this.plotted) {
      const plot = new Plot(kind, label, `plot-${name}`);
      const cell = make('dd', { className: 'plotted' });
      cell.append(plot.root);
      this.row(name, label).append(cell);
      this.plots.set(name, plot);
    }
    for (const [name, label] of this.written) this.row(name, label, IN_FRONT.includes(name) ? root : more);
    if (!manyStreams) this.row('layer', 'Layer received', more);
    this.clear();
  }

  /** Reads the statistics now and every second that the page is seen, until `stop`. */
  start(peerConnection: () => RTCPeerConnection | null): void {
    this.stop();
    this.end = everySeen(SECOND, () => {
      const sampler = (this.sampler = new Sampler());
      return () => void this.read(sampler, peerConnection());
    });
  }

  layer(text: string): void {
    this.set('layer', text);
  }

  stop(): void {
    this.end?.();
    this.sampler = undefined;
    this.clear();
  }

  private row(name: string, label: string, root = this.root): HTMLElement {
    const row = make('div');
    const value = make('dd', { testid: `figure-${name}` });
    row.append(make('dt', { text: label }), value);
    root.append(row);
    this.values.set(name, value);
    return row;
  }

  private async read(sampler: Sampler, connection: RTCPeerConnection | null): Promise<void> {
    if (!connection) return;
    const figures = await sampler.read(connection);
    // It was stopped while the browser answered.
    if (sampler !== this.sampler) return;
    for (const [name, , kind, of] of this.plotted) {
      const value = of(figures);
      this.plots.get(name)?.add(value);
      this.set(name, value === undefined ? undefined : KINDS[kind].write(value));
    }
    for (const [name, , show] of this.written) this.set(name, show(figures));
  }

  private clear(): void {
    for (const name of this.values.keys()) this.set(name, undefined);
    for (const plot of this.plots.values()) plot.clear();
  }

  private set(name: string, text: string | undefined): void {
    const element = this.values.get(name);
    if (element) element.textContent = text ?? '–';
  }
}

function largest(streams: Stat[]): Stat | undefined {
  return streams.reduce<Stat | undefined>(
    (best, stat) => ((stat['frameWidth'] ?? 0) > (best?.['frameWidth'] ?? -1) ? stat : best),
    undefined,
  );
}

function sizeOf(stat: Stat | undefined): string | undefined {
  return stat?.['frameWidth'] ? `${stat['frameWidth']}×${stat['frameHeight']}` : undefined;
}

function picture(size: string | undefined, fps: number | undefined): string | undefined {
  return size && fps !== undefined ? `${size}, ${Math.round(fps)}/s` : size;
}

/** The version as the record layer writes it, in hexadecimal. */
function dtlsVersion(tls: string | undefined): string | undefined {
  const names: Record<string, string> = { FEFD: '1.2', FEFC: '1.3' };
  return tls === undefined ? undefined : (names[tls.toUpperCase()] ?? tls);
}

function pathOf(stats: Map<string, Stat>, pair: Stat | undefined): string | undefined {
  const local = stats.get(pair?.['localCandidateId'] ?? '');
  const remote = stats.get(pair?.['remoteCandidateId'] ?? '');
  if (!local || !remote) return undefined;
  return `${local['candidateType']} to ${remote['candidateType']}, ${local['protocol']}`;
}
