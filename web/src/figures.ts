// The live figures of a PeerConnection, from its statistics, and the panel that shows them.

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

/** Takes readings of one PeerConnection; rates are between one reading and the next. */
export class Sampler {
  private previous?: { at: number; bytesIn: number; bytesOut: number; received: number; lost: number };

  read(report: Iterable<[string, Stat]>): Figures {
    const stats = new Map(report);
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
      ...this.rates(transport, inbound),
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

  private rates(transport: Stat | undefined, inbound: Stat[]): Pick<Figures, 'bitrateIn' | 'bitrateOut' | 'lossIn'> {
    if (!transport) return {};
    const sum = (field: string) => inbound.reduce((total, stat) => total + (stat[field] ?? 0), 0);
    const now = {
      at: transport['timestamp'] as number,
      bytesIn: transport['bytesReceived'] ?? 0,
      bytesOut: transport['bytesSent'] ?? 0,
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

const ROWS: [name: string, label: string, show: (figures: Figures) => string | undefined][] = [
  ['bitrate-in', 'Receiving', ({ bitrateIn }) => bitrate(bitrateIn)],
  ['bitrate-out', 'Sending', ({ bitrateOut }) => bitrate(bitrateOut)],
  ['loss-in', 'Loss, receiving', ({ lossIn }) => percent(lossIn)],
  ['loss-out', 'Loss, sending', ({ lossOut }) => percent(lossOut)],
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

/** Shows figures as a list in `root`, and the layer, which only the plugin knows. */
export class FiguresPanel {
  private readonly rows: typeof ROWS;
  private readonly values = new Map<string, HTMLElement>();
  private timer?: ReturnType<typeof setInterval>;

  constructor(root: HTMLElement, { receiveOnly = false, manyStreams = false } = {}) {
    const left = [...(receiveOnly ? SENDING : []), ...(manyStreams ? OF_ONE_STREAM : [])];
    this.rows = ROWS.filter(([name]) => !left.includes(name));
    const layer = manyStreams ? [] : [['layer', 'Layer received'] as const];
    for (const [name, label] of [...this.rows, ...layer]) {
      const row = document.createElement('div');
      const term = document.createElement('dt');
      const value = document.createElement('dd');
      term.textContent = label;
      value.dataset['testid'] = `figure-${name}`;
      row.append(term, value);
      root.append(row);
      this.values.set(name, value);
    }
    this.clear();
  }

  /** Reads the statistics now and every second until `stop`. */
  start(peerConnection: () => RTCPeerConnection | null): void {
    this.stop();
    const sampler = new Sampler();
    const tick = async () => {
      const report = await peerConnection()?.getStats();
      if (!report || this.timer === undefined) return;
      const figures = sampler.read(report as unknown as Iterable<[string, Stat]>);
      for (const [name, , show] of this.rows) this.set(name, show(figures));
    };
    this.timer = setInterval(() => void tick(), 1000);
    void tick();
  }

  layer(text: string): void {
    this.set('layer', text);
  }

  stop(): void {
    clearInterval(this.timer);
    this.timer = undefined;
    this.clear();
  }

  private clear(): void {
    for (const name of this.values.keys()) this.set(name, undefined);
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

function bitrate(bits: number | undefined): string | undefined {
  if (bits === undefined) return undefined;
  return bits >= 1e6 ? `${(bits / 1e6).toFixed(2)} Mbit/s` : `${Math.round(bits / 1e3)} kbit/s`;
}

function percent(share: number | undefined): string | undefined {
  return share === undefined ? undefined : `${(share * 100).toFixed(1)} %`;
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
