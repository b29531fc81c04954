// A video room: who publishes, and who watches whom, each by a WebRtcTransport of mediasoup.
import { answer, offer, parse } from './sdp.mjs';

const CODECS = [
  { kind: 'audio', mimeType: 'audio/opus', clockRate: 48000, channels: 2 },
  { kind: 'video', mimeType: 'video/VP8', clockRate: 90000 },
];
/** The header extensions that both sides use. */
const EXTENSIONS = ['urn:ietf:params:rtp-hdrext:sdes:mid'];
/** Retransmissions are sent in place, as the Janus API's clients of hammer take them. */
const withoutRtx = (capabilities) => ({
  codecs: capabilities.codecs.filter(({ mimeType }) => !mimeType.endsWith('/rtx')),
  headerExtensions: capabilities.headerExtensions.filter(({ uri }) => EXTENSIONS.includes(uri)),
});

let feeds = 0;

export class Room {
  static async create(worker, server, id) {
    return new Room(await worker.createRouter({ mediaCodecs: CODECS }), server, id);
  }

  constructor(router, server, id) {
    Object.assign(this, { router, server, id, publishers: new Map() });
  }

  /** A new publisher, who does not send yet. */
  join() {
    feeds += 1;
    const publisher = { id: feeds, producers: [], transport: undefined };
    this.publishers.set(publisher.id, publisher);
    return publisher;
  }

  async transport() {
    return this.router.createWebRtcTransport({ webRtcServer: this.server, enableUdp: true });
  }

  /** Takes an offer. Returns the answer. */
  async publish(publisher, sdp) {
    const { dtls, media } = parse(sdp);
    publisher.transport = await this.transport();
    await publisher.transport.connect({ dtlsParameters: dtls });
    const accepted = [];
    for (const line of media.filter(({ kind, sends }) => sends && kind !== 'application')) {
      const parameters = this.sent(line);
      publisher.producers.push(await publisher.transport.produce({ kind: line.kind, rtpParameters: parameters }));
      accepted.push({ kind: line.kind, mid: line.mid, parameters });
    }
    return answer(accepted, publisher.transport);
  }

  /** The parameters of an m-line that sends, with its first codec of ours. */
  sent({ kind, mid, formats, extensions, ssrc, types }) {
    const codec = CODECS.find((one) => one.kind === kind);
    const name = codec.mimeType.split('/')[1].toLowerCase();
    const format = types.map((type) => formats.find((one) => one.type === type)).find((one) => one?.name.toLowerCase() === name);
    if (!format) throw new Error(`no ${name} in the m-line ${mid}`);
    const feedback = kind === 'video' ? [{ type: 'nack' }, { type: 'nack', parameter: 'pli' }] : [];
    return {
      mid,
      codecs: [{
        mimeType: codec.mimeType, payloadType: format.type, clockRate: codec.clockRate, channels: codec.channels,
        parameters: {}, rtcpFeedback: feedback,
      }],
      headerExtensions: extensions.filter(({ uri }) => EXTENSIONS.includes(uri)),
      encodings: [ssrc === undefined ? {} : { ssrc }],
      rtcp: { cname: `feed-${mid}`, reducedSize: true },
    };
  }

  /** Starts to watch these feeds by one transport. Returns the offer. */
  async watch(subscriber, ids) {
    subscriber.transport = await this.transport();
    const producers = ids.flatMap((id) => this.publishers.get(id)?.producers ?? []);
    if (producers.length === 0) throw new Error('no such feed');
    const rtpCapabilities = withoutRtx(this.router.rtpCapabilities);
    subscriber.consumers = await Promise.all(
      producers.map(({ id }) => subscriber.transport.consume({ producerId: id, rtpCapabilities, paused: false })),
    );
    return offer(subscriber.consumers, subscriber.transport);
  }

  /** Takes the answer of somebody who watches. */
  async start(subscriber, sdp) {
    await subscriber.transport.connect({ dtlsParameters: parse(sdp).dtls });
  }

  leave(publisher) {
    publisher.transport?.close();
    this.publishers.delete(publisher.id);
  }

  close() {
    this.router.close();
  }
}
