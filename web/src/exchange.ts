// A handle of a plugin with rooms. Its requests go one after the other, each with its answer.
import { accepted, type Answer } from './answer';
import { Call, type CallEvents } from './call';
import type { Ending } from './ending';
import type { Jsep, Session } from './session';

/** A plugin's name, and the difference between its answers and its events. */
export interface Plugin {
  name: string;
  /** Whether a message answers a request; the others tell what happens in the room. */
  isAnswer(data: Answer): boolean;
}

export interface ExchangeEvents {
  /** Every message of the plugin, answers too. */
  message(data: Answer, jsep?: Jsep): void;
  /** The connection came up, or went down for a reason. */
  connected(up: boolean, ending?: Ending): void;
  /** Restarts ICE. */
  restart?(exchange: Exchange): Promise<unknown>;
  data?(text: unknown, label: string): void;
  /** A track of the server's arrives. */
  track?(track: MediaStreamTrack): void;
}

/** The plugin's answer. */
interface Answered {
  data: Answer;
  jsep?: Jsep;
}

/** The handle was closed while something was asked. */
export class Closed extends Error {
  constructor() {
    super('The handle was closed');
  }
}

export class Exchange {
  private waiting: { resolve(answer: Answered): void; reject(error: Error): void } | null = null;
  private closed = false;
  private last: Promise<unknown> = Promise.resolve();

  private constructor(readonly call: Call, private readonly session: Session) {}

  static async attach(session: Session, plugin: Plugin, events: ExchangeEvents): Promise<Exchange> {
    let exchange: Exchange | null = null;
    const callEvents: CallEvents = {
      message: (data, jsep) => {
        if (plugin.isAnswer(data)) exchange?.answered(data, jsep);
        events.message(data, jsep);
      },
      connected: (up, ending) => events.connected(up, ending),
      restart: async () => void (exchange && (await events.restart?.(exchange))),
      localTrack: () => {},
      remoteTrack: (track, on) => on && events.track?.(track),
      dataOpen: () => {},
      data: (data, label) => events.data?.(data, label),
      slowLink: () => {},
      ended: () => {},
    };
    exchange = new Exchange(await Call.attach(session, plugin.name, callEvents), session);
    return exchange;
  }

  /** Sends a request and gives its answer; an error of the plugin's is thrown. */
  request(body: Record<string, unknown>, jsep?: Jsep): Promise<Answered> {
    const result = this.last.then(() => this.exchange(body, jsep));
    this.last = result.catch(() => {});
    return result;
  }

  /** Sends a request that is answered at once. */
  async ask(body: Record<string, unknown>): Promise<Answer> {
    return accepted(await this.call.ask(body));
  }

  /** Offers what the PeerConnection has, with a request; takes in the answer. */
  async offer(body: Record<string, unknown>, jsep: Jsep): Promise<Answer> {
    const answer = await this.request(body, jsep);
    if (answer.jsep) await this.call.accept(answer.jsep);
    return answer.data;
  }

  /** Gives the handle up; who waits for an answer gets an error. */
  close(): void {
    this.closed = true;
    this.waiting?.reject(new Closed());
    this.waiting = null;
    this.call.detach();
  }

  private async exchange(body: Record<string, unknown>, jsep?: Jsep): Promise<Answered> {
    if (this.closed) throw new Closed();
    // An answer that is under way when the connection is lost may not come.
    const answer = this.session.answered(
      () =>
        new Promise<Answered>((resolve, reject) => {
          this.waiting = { resolve, reject };
        }),
    );
    const [, { data, jsep: answered }] = await Promise.all([this.call.send(body, jsep), answer]);
    return { data: accepted(data), jsep: answered };
  }

  private answered(data: Answer, jsep?: Jsep): void {
    this.waiting?.resolve({ data, jsep });
    this.waiting = null;
  }
}
