// Whether media comes on a PeerConnection, and how long it takes: what a player has to say of it.

export interface Flow {
  /** No packet has come since the connection was made. */
  waiting: boolean;
  /** Seconds since the last packet; undefined while none has come. */
  silent?: number;
  /** Seconds that sound and pictures wait in this browser, and half a round trip. */
  latency?: number;
}

type Stat = Record<string, any>;

/** Reads it again and again from one PeerConnection. */
export class FlowMeter {
  private packets = 0;
  private last: number | undefined;
  private before = { delay: 0, emitted: 0 };
  private latency: number | undefined;

  async read(connection: RTCPeerConnection): Promise<Flow> {
    const stats = [...((await connection.getStats()) as unknown as Map<string, Stat>).values()];
    const inbound = stats.filter(({ type }) => type === 'inbound-rtp');
    const sum = (field: string): number => inbound.reduce((all, stat) => all + ((stat[field] as number | undefined) ?? 0), 0);
    // Words of a data stream are media, too.
    const messages = stats.filter(({ type }) => type === 'data-channel').reduce((all, stat) => all + (stat['messagesReceived'] ?? 0), 0);
    const now = performance.now();
    const packets = sum('packetsReceived') + messages;
    if (packets > this.packets) this.last = now;
    this.packets = packets;
    const [delay, emitted] = [sum('jitterBufferDelay'), sum('jitterBufferEmittedCount')];
    const waited = emitted > this.before.emitted ? (delay - this.before.delay) / (emitted - this.before.emitted) : undefined;
    this.before = { delay, emitted };
    const pair = stats.find(({ type, nominated, state }) => type === 'candidate-pair' && nominated && state === 'succeeded');
    if (waited !== undefined) this.latency = waited + (pair?.['currentRoundTripTime'] ?? 0) / 2;
    return { waiting: this.last === undefined, silent: this.last === undefined ? undefined : (now - this.last) / 1000, latency: this.latency };
  }
}
