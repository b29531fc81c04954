// A handle of the text room: its PeerConnection with data channels alone, and requests on them, each with its answer.
import { accepted, type Answer } from '../answer';
import { Call, type CallEvents } from '../call';
import { explainEnding } from '../ending';
import type { Jsep, Session } from '../session';
import type { TextEvent } from './api';

/** How long an answer may take, in milliseconds. */
const PATIENCE = 10_000;

export interface ChannelEvents {
  /** Something happened in a room. */
  event(event: TextEvent): void;
  /** The connection is gone, with the reason if there is one. */
  lost(reason: string): void;
}

interface Waiting {
  resolve(answer: Answer): void;
  reject(error: Error): void;
}

export class Channel {
  private readonly waiting = new Map<string, Waiting>();
  private call!: Call;
  private closed = false;
  private next = 0;
  private opened!: () => void;
  private failed!: (error: Error) => void;

  private constructor(private readonly events: ChannelEvents) {}

  /** Sets up a connection; resolved once messages can be sent. */
  static async open(session: Session, events: ChannelEvents): Promise<Channel> {
    const channel = new Channel(events);
    const open = new Promise<void>((resolve, reject) => {
      channel.opened = resolve;
      channel.failed = reject;
    });
    // It may fail before anybody waits for it.
    open.catch(() => {});
    const callEvents: CallEvents = {
      message: (data, jsep) => void channel.message(data, jsep),
      connected: (up, ending) => up || channel.lose(ending ? explainEnding(ending) : ''),
      restart: (call) => call.send({ request: 'restart' }),
      localTrack: () => {},
      remoteTrack: () => {},
      dataOpen: () => channel.opened(),
      data: (data) => channel.data(data),
      slowLink: () => {},
      ended: () => channel.lose(''),
    };
    channel.call = await Call.attach(session, 'janus.plugin.textroom', callEvents);
    try {
      await channel.call.send({ request: 'setup' });
      await open;
    } catch (error) {
      channel.close();
      throw error;
    }
    return channel;
  }

  /** Sends a request and gives its answer; an error of the plugin's is thrown. */
  request(name: string, members: Record<string, unknown>): Promise<Answer> {
    const transaction = String(++this.next);
    return new Promise<Answer>((resolve, reject) => {
      const end = (error: Error) => {
        if (this.waiting.delete(transaction)) reject(error);
      };
      const timer = setTimeout(() => end(new Error('The server did not answer.')), PATIENCE);
      this.waiting.set(transaction, {
        resolve: (answer) => (clearTimeout(timer), resolve(answer)),
        reject: (error) => (clearTimeout(timer), reject(error)),
      });
      this.call.text(JSON.stringify({ textroom: name, transaction, ...members })).catch((error: Error) => {
        clearTimeout(timer);
        end(error);
      });
    }).then(accepted);
  }

  /** Gives the handle up; who waits for an answer gets an error. */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.rejectAll('The connection was closed.');
    this.call.detach();
  }

  private async message(data: Answer, jsep?: Jsep): Promise<void> {
    try {
      accepted(data);
      if (jsep) await this.call.send({ request: 'ack' }, await this.call.receive(jsep));
    } catch (error) {
      this.failed(error instanceof Error ? error : new Error(String(error)));
    }
  }

  private data(data: unknown): void {
    const message = parsed(data);
    if (!message) return;
    const transaction = message['transaction'];
    if (typeof transaction !== 'string') return this.events.event(message as TextEvent);
    const waiting = this.waiting.get(transaction);
    this.waiting.delete(transaction);
    waiting?.resolve(message);
  }

  private lose(reason: string): void {
    if (this.closed) return;
    this.failed(new Error(reason || 'The connection failed.'));
    this.close();
    this.events.lost(reason);
  }

  private rejectAll(why: string): void {
    for (const { reject } of this.waiting.values()) reject(new Error(why));
    this.waiting.clear();
  }
}

function parsed(data: unknown): Answer | null {
  try {
    const message: unknown = JSON.parse(String(data));
    return typeof message === 'object' && message !== null ? (message as Answer) : null;
  } catch {
    return null;
  }
}
