// The TURN server that this server runs, if it does: browsers whose networks let no UDP through are relayed by it.
import type { Access } from './access';

/** Seconds until another attempt after one that failed. */
const RETRY = 10;
/** How long an answer may take, in ms: no call waits for longer. */
const PATIENCE = 5_000;

interface Answer {
  data?: { ice_servers?: RTCIceServer[]; ttl?: number };
}

/** The ICE servers of a session. Their credentials expire, so that they are asked for again in time. */
export class IceServers {
  /** janus.js reads it for each PeerConnection. */
  readonly list: RTCIceServer[] = [];
  private timer: number | undefined;
  private stopped = false;

  /** Asks for them at `url`, which is the session's, and keeps them up to date until `stop` is called. */
  async follow(url: string, shown: Access): Promise<void> {
    const seconds = await this.ask(url, shown).then(
      (ttl) => ttl && ttl / 2,
      () => RETRY,
    );
    // Without a TURN server there is nothing that expires.
    if (!seconds || this.stopped) return;
    this.timer = window.setTimeout(() => void this.follow(url, shown), seconds * 1000);
  }

  stop(): void {
    this.stopped = true;
    window.clearTimeout(this.timer);
  }

  /** For how many seconds they are valid. */
  private async ask(url: string, shown: Access): Promise<number | undefined> {
    const request = { janus: 'ice_servers', transaction: crypto.getRandomValues(new Uint32Array(1)).join(), ...shown };
    const signal = AbortSignal.timeout(PATIENCE);
    const response = await fetch(url, { method: 'POST', body: JSON.stringify(request), cache: 'no-store', signal });
    const { data } = (await response.json()) as Answer;
    if (!data) throw new Error('The server does not tell its ICE servers');
    this.list.splice(0, this.list.length, ...(data.ice_servers ?? []));
    return data.ttl;
  }
}
