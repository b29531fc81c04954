// All that is received of a room, on one PeerConnection: what is wanted is subscribed to, one change at a time. Pictures
// and sounds can be left to the server, which then gives those of the most recent speakers.
import type { Jsep, Session } from '../session';
import { CODES, keyOf, Refused, VIDEO_ROOM, type Answer, type Feed, type FeedStream, type Id, type Received } from './api';
import type { Ending } from '../ending';
import { Closed, Exchange } from '../exchange';

export interface SubscriptionEvents {
  /** Others are received now; their tracks follow. */
  changed(): void;
  /** A stream arrives on this track now. */
  track(feed: Id, mid: string, track: MediaStreamTrack): void;
  /** Another layer of a stream arrives now. */
  layers(feed: Id, mid: string, event: Answer): void;
  /** A message of a publisher's. */
  said(feed: Id, text: unknown): void;
  connected(up: boolean, ending?: Ending): void;
  failed(error: unknown): void;
}

interface Wish {
  feed: Id;
  mid: string;
}

export class Subscription {
  private exchange: Exchange | null = null;
  private wishes = new Map<string, Wish>();
  /** The requested streams. */
  private readonly asked = new Map<string, Wish>();
  /** Requested streams that had ended. */
  private readonly refused = new Set<string>();
  private received = new Map<string, Received>();
  private changing = false;
  private changed = false;
  private closed = false;

  constructor(
    private readonly session: Session,
    private readonly join: { room: Id; pin?: string; private_id: number; last_n?: number },
    private readonly events: SubscriptionEvents,
  ) {}

  /** Whether the server chooses whom to see and hear. */
  get follows(): boolean {
    return this.join.last_n !== undefined;
  }

  get peerConnection(): RTCPeerConnection | null {
    return this.exchange?.call.peerConnection ?? null;
  }

  /** Says what is to be received from now on. */
  want(feeds: Iterable<Feed>): void {
    this.wishes = new Map();
    for (const feed of feeds) {
      for (const stream of feed.streams ?? []) {
        if (stream.disabled || (this.follows && stream.type !== 'data')) continue;
        this.wishes.set(keyOf(feed.id, stream.mid), { feed: feed.id, mid: stream.mid });
      }
    }
    void this.sync();
  }

  /** After a new list of streams, refused ones may be requested again. */
  announced(feed: Feed): void {
    for (const { mid } of feed.streams ?? []) this.refused.delete(keyOf(feed.id, mid));
  }

  /** Asks for a layer of a stream, or to pause it. */
  configure(feed: Id, feedMid: string, settings: Record<string, unknown>): void {
    const mid = this.midOf(feed, feedMid);
    if (mid === undefined || !this.exchange) return;
    this.exchange.request({ request: 'configure', streams: [{ mid, ...settings }] }).catch((error: unknown) => this.events.failed(error));
  }

  /** The m-line on which a stream arrives. */
  midOf(feed: Id, feedMid: string): string | undefined {
    return [...this.received.values()].find((one) => one.active && one.feed_id === feed && one.feed_mid === feedMid)?.mid;
  }

  /** Begins anew with another PeerConnection. */
  restart(): void {
    this.exchange?.close();
    this.exchange = null;
    this.asked.clear();
    this.received.clear();
    void this.sync();
  }

  close(): void {
    this.closed = true;
    this.exchange?.close();
    this.exchange = null;
  }

  private async sync(): Promise<void> {
    this.changed = true;
    if (this.changing) return;
    this.changing = true;
    while (this.changed && !this.closed) {
      this.changed = false;
      try {
        await this.change();
      } catch (error) {
        if (!(error instanceof Closed)) this.events.failed(error);
      }
    }
    this.changing = false;
  }

  private async change(): Promise<void> {
    const gone = [...this.asked].filter(([key]) => !this.wishes.has(key));
    const fresh = [...this.wishes].filter(([key]) => !this.asked.has(key) && !this.refused.has(key));
    for (const [key] of gone) this.asked.delete(key);
    const begins = this.follows && !this.exchange;
    if (gone.length === 0 && fresh.length === 0 && !begins) return;
    try {
      await this.update(fresh.map(([, wish]) => wish), gone.map(([, wish]) => wish));
      for (const [key, wish] of fresh) this.asked.set(key, wish);
    } catch (error) {
      if (!isGone(error)) throw error;
      // One that has just left spoils the whole request: each is asked for alone.
      for (const [key, wish] of fresh) {
        try {
          await this.update([wish], []);
          this.asked.set(key, wish);
        } catch (alone) {
          if (!isGone(alone)) throw alone;
          this.refused.add(key);
        }
      }
    }
  }

  private async update(subscribe: Wish[], unsubscribe: Wish[]): Promise<void> {
    if (!this.exchange) {
      if (subscribe.length === 0 && !this.follows) return;
      const exchange = await Exchange.attach(this.session, VIDEO_ROOM, {
        message: (data, jsep) => this.message(data, jsep),
        connected: (up, ending) => this.events.connected(up, ending),
        restart: () => exchange.request({ request: 'configure', restart: true }),
        data: (text, label) => this.events.said(label, text),
      });
      if (this.closed) return exchange.close();
      try {
        this.exchange = exchange;
        await exchange.request({
          request: 'join',
          ptype: 'subscriber',
          ...this.join,
          ...(subscribe.length > 0 && { streams: subscribe }),
        });
      } catch (error) {
        this.exchange = null;
        exchange.close();
        throw error;
      }
      return;
    }
    await this.exchange.request({
      request: 'update',
      ...(subscribe.length > 0 && { subscribe }),
      ...(unsubscribe.length > 0 && { unsubscribe }),
    });
  }

  private message(data: Answer, jsep?: Jsep): void {
    const streams = data['streams'] as Received[] | undefined;
    if (streams) this.received = new Map(streams.map((stream) => [stream.mid, stream]));
    const seats = data['seats'] as Received[] | undefined;
    if (seats) {
      for (const seat of seats) this.received.set(seat.mid, seat);
      this.showTracks();
    }
    if (jsep) this.answer(jsep).catch((error: unknown) => this.events.failed(error));
    const about = this.received.get(String(data['mid']));
    if (about?.feed_id !== undefined && about.feed_mid !== undefined) this.events.layers(about.feed_id, about.feed_mid, data);
  }

  private async answer(offer: Jsep): Promise<void> {
    const exchange = this.exchange;
    if (!exchange) return;
    const answer = await exchange.call.receive(offer);
    await exchange.request({ request: 'start' }, answer);
    this.showTracks();
  }

  /** Which track carries what may be different after each change. */
  private showTracks(): void {
    this.events.changed();
    const transceivers = this.peerConnection?.getTransceivers() ?? [];
    for (const { mid, active, feed_id: feed, feed_mid: feedMid } of this.received.values()) {
      const transceiver = transceivers.find((one) => one.mid === mid);
      if (active && transceiver && feed !== undefined && feedMid !== undefined) this.events.track(feed, feedMid, transceiver.receiver.track);
    }
  }
}

/** Whether what was asked for is not there any more. */
function isGone(error: unknown): boolean {
  return error instanceof Refused && (error.code === CODES.noFeed || error.code === CODES.nothingToOffer);
}

/** The streams of a kind that are sent. */
export function live(feed: Feed, type: FeedStream['type']): FeedStream[] {
  return (feed.streams ?? []).filter((stream) => stream.type === type && !stream.disabled);
}
