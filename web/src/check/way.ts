// A PeerConnection with the echo test that may go one way only: by UDP, by TCP, or through a relay.
import type { Handle, Jsep, Session } from '../session';

export interface Way {
  /** Which candidates of the server are used. */
  carrier: 'udp' | 'tcp';
  /** The relay that is gone through; without one the server is reached directly. */
  relay?: RTCIceServer;
}

/** The server has no such way. */
export class NotOffered extends Error {}

/** How long a way may take, in ms. A handshake that loses its first packets needs some seconds. */
const PATIENCE = 12_000;
/** How long the browser may look for its own addresses, in ms. */
const GATHERING = 5_000;

/** A call with the echo test. */
export class Connection {
  private constructor(
    private readonly handle: Handle,
    readonly peer: RTCPeerConnection,
  ) {}

  /** Connects. Rejects with the reason if it cannot be done in time, or `signal` aborts it. */
  static async open(session: Session, way: Way, stream: MediaStream | null, signal: AbortSignal): Promise<Connection> {
    const peer = new RTCPeerConnection({
      iceServers: way.relay ? [way.relay] : [],
      iceTransportPolicy: way.relay ? 'relay' : 'all',
    });
    let handle: Handle | null = null;
    try {
      return await within(PATIENCE, signal, async () => {
        const answered = deferred<Jsep>();
        handle = await session.attach('janus.plugin.echotest', {
          onmessage: (data, jsep) => {
            const { error } = data as { error?: string };
            if (jsep) answered.resolve(jsep);
            else if (error) answered.reject(new Error(`the server says: ${error}`));
          },
        });
        if (signal.aborted) throw new Error('it was given up');
        for (const track of stream?.getTracks() ?? []) peer.addTrack(track, stream as MediaStream);
        peer.createDataChannel('JanusDataChannel');
        await peer.setLocalDescription();
        await gathered(peer, way);
        const { type = 'offer', sdp = '' } = peer.localDescription ?? {};
        // Through a relay everything is UDP at the server. By TCP, our own addresses would let the server find a way by UDP.
        const offer = way.carrier === 'tcp' ? only(sdp, 'tcp') : sdp;
        handle.send({ message: { audio: true, video: true } as never, jsep: { type, sdp: offer } as Jsep, error: (reason) => answered.reject(new Error(reason)) });
        const answer = await answered.promise;
        const theirs = only(answer.sdp ?? '', way.carrier);
        if (!/^a=candidate:/m.test(theirs)) throw new NotOffered(way.carrier === 'tcp' ? 'the server takes no media by TCP' : 'the server names no address for UDP');
        await peer.setRemoteDescription({ type: 'answer', sdp: theirs });
        await connected(peer);
        return new Connection(handle, peer);
      });
    } catch (error) {
      const text = error instanceof TimeUp ? await silence(peer, way) : null;
      peer.close();
      (handle as Handle | null)?.detach();
      throw text === null ? error : new Error(text);
    }
  }

  /** The addresses at both ends. */
  async ends(): Promise<string> {
    const stats = [...(await this.peer.getStats()).values()];
    const pair = stats.find((it) => it.type === 'candidate-pair' && it.nominated && it.state === 'succeeded');
    const remote = stats.find((it) => it.id === pair?.remoteCandidateId);
    return remote?.address ? `to ${remote.address} port ${remote.port}` : '';
  }

  close(): void {
    this.peer.close();
    this.handle.detach();
  }
}

class TimeUp extends Error {}

/** Why nothing came of it. */
async function silence(peer: RTCPeerConnection, { relay }: Way): Promise<string> {
  const stats = [...(await peer.getStats()).values()];
  const sum = (field: string) => stats.filter((it) => it.type === 'candidate-pair').reduce((all, it) => all + (Number(it[field]) || 0), 0);
  const seconds = PATIENCE / 1_000;
  if (relay && !/ typ relay /.test(peer.localDescription?.sdp ?? '')) return `the relay gave no address within ${seconds} s`;
  if (peer.iceConnectionState === 'connected' || peer.iceConnectionState === 'completed') return `the addresses work, but the handshake (DTLS) was not done within ${seconds} s`;
  const [sent, answered] = [sum('requestsSent'), sum('responsesReceived')];
  return answered > 0 ? `only ${answered} of ${sent} checks were answered within ${seconds} s` : `nothing came back within ${seconds} s`;
}

/** Waits for our own addresses. Through a relay one of its addresses is enough. */
function gathered(peer: RTCPeerConnection, { relay }: Way): Promise<void> {
  return new Promise((done) => {
    if (peer.iceGatheringState === 'complete') return done();
    setTimeout(done, relay ? PATIENCE : GATHERING);
    peer.addEventListener('icegatheringstatechange', () => peer.iceGatheringState === 'complete' && done());
    if (relay) peer.addEventListener('icecandidate', ({ candidate }) => candidate?.type === 'relay' && done());
  });
}

function connected(peer: RTCPeerConnection): Promise<void> {
  return new Promise((done, reject) => {
    const look = () => {
      if (peer.connectionState === 'connected') done();
      // The time limit has the better reason: what was sent, and what came.
      else if (peer.connectionState === 'closed') reject(new Error('the connection was closed'));
    };
    peer.addEventListener('connectionstatechange', look);
    look();
  });
}

/** The description with candidates of this carrier alone. */
function only(sdp: string, carrier: 'udp' | 'tcp'): string {
  const fits = (line: string) => {
    const found = /^a=candidate:\S+ \d+ (\w+) /.exec(line)?.[1]?.toLowerCase();
    return found === undefined || found === carrier;
  };
  return sdp.split(/(?<=\n)/).filter(fits).join('');
}

function within<T>(time: number, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new TimeUp()), time);
    signal.addEventListener('abort', () => reject(new Error('the server went away')));
    if (signal.aborted) reject(new Error('the server went away'));
    work().then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

function deferred<T>() {
  let resolve!: (value: T) => void;
  let reject!: (error: Error) => void;
  const promise = new Promise<T>((done, failed) => ([resolve, reject] = [done, failed]));
  // Nobody may wait for it any more.
  promise.catch(() => {});
  return { promise, resolve, reject };
}
