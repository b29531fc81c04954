// The own participation in a room: media to send, and news of the others.
import type { SendOptions } from '../call';
import type { Jsep, Session, Track } from '../session';
import type { Ending } from '../ending';
import { VIDEO_ROOM, type Answer, type Doing, type Feed, type Id } from './api';
import { Exchange } from '../exchange';

export interface RoomEvents {
  /** These publish, with all that they publish. */
  feeds(feeds: Feed[]): void;
  /** Somebody is there who does not publish yet. */
  joining(feed: Feed): void;
  renamed(id: Id, display: string): void;
  /** Somebody does something else now. */
  does(id: Id, doing: Doing): void;
  unpublished(id: Id): void;
  left(id: Id, kicked: boolean): void;
  moderated(id: Id, mid: string, muted: boolean): void;
  /** The current speaker, in rooms that detect speech. */
  dominant(id: Id): void;
  /** The own participation has ended without having been asked to. */
  ended(why: 'kicked' | 'destroyed'): void;
  /** The own connection came up, or went down for a reason. */
  connected(up: boolean, ending?: Ending): void;
}

export interface JoinOptions {
  room: Id;
  display: string;
  pin?: string;
  metadata?: Doing;
}

/** How long others may take to subscribe to a new connection, in milliseconds: what is said before is lost to them. */
const SETTLING = 1500;

export class Participant {
  id: Id = 0;
  /** Proves to the room whose subscriptions are whose. */
  privateId = 0;
  description = '';
  private readonly descriptions = new Map<string, string>();
  private last: Promise<unknown> = Promise.resolve();
  private cameUp = () => {};
  private failed = (_: Error) => {};
  private wordsReady: Promise<void> | null = null;

  private constructor(private readonly exchange: Exchange, readonly room: Id) {}

  static async join(session: Session, { room, display, pin, metadata }: JoinOptions, events: RoomEvents): Promise<Participant> {
    let participant: Participant | null = null;
    const exchange = await Exchange.attach(session, VIDEO_ROOM, {
      message: (data) => tell(data, events),
      connected: (up, ending) => {
        if (up) participant?.cameUp();
        else participant?.wentDown();
        events.connected(up, ending);
      },
      restart: async ({ call }) => exchange.offer({ request: 'configure' }, await call.restartOffer()),
    });
    participant = new Participant(exchange, room);
    try {
      const { data } = await exchange.request({ request: 'join', ptype: 'publisher', room, display, ...(pin && { pin }), ...(metadata && { metadata }) });
      participant.id = data['id'] as Id;
      participant.privateId = data['private_id'] as number;
      participant.description = String(data['description'] ?? room);
    } catch (error) {
      exchange.close();
      throw error;
    }
    return participant;
  }

  get peerConnection(): RTCPeerConnection | null {
    return this.exchange.call.peerConnection;
  }

  /** Sends the stream's tracks; `codec` is forced where it is not empty. */
  async publish(stream: MediaStream, options: SendOptions, codec: string, bitrate: number): Promise<void> {
    const audio: Track[] = stream.getAudioTracks().map((capture) => ({ type: 'audio', capture, recv: false }));
    const video: Track[] = stream.getVideoTracks().map((capture) => ({
      type: 'video',
      capture,
      recv: false,
      simulcast: options.simulcast,
      svc: options.svc || undefined,
    }));
    await this.negotiate([...audio, ...video], {
      ...(bitrate > 0 && { bitrate }),
      ...(codec && video.length > 0 && { videocodec: codec }),
    }, { svc: options.svc });
  }

  /** Sends one more picture, which others see under this description. */
  async add(track: MediaStreamTrack, description: string): Promise<void> {
    await this.negotiate([{ type: 'video', capture: track, recv: false, add: true }], {}, { described: { track, text: description } });
  }

  /** Ceases to send a track. */
  async remove(track: MediaStreamTrack): Promise<void> {
    const mid = this.midOf(track);
    if (!mid) return;
    this.descriptions.delete(mid);
    await this.negotiate([{ type: track.kind as 'video', capture: false, mid, remove: true, recv: false }], {});
  }

  /** Sends another track in the place of one. */
  async replace(old: MediaStreamTrack, track: MediaStreamTrack): Promise<void> {
    const mid = this.midOf(old);
    if (mid) await this.exchange.call.replace([{ type: track.kind as 'video', capture: track, mid, recv: false }]);
  }

  /** Whether the server relays a track. */
  async send(track: MediaStreamTrack, on: boolean): Promise<void> {
    const mid = this.midOf(track);
    if (mid) await this.configure({ streams: [{ mid, send: on }] });
  }

  async configure(settings: Record<string, unknown>): Promise<void> {
    await this.exchange.request({ request: 'configure', ...settings });
  }

  /** Opens a connection for messages if there is none, and waits until others have subscribed to it. */
  prepareToSay(): Promise<void> {
    if (!this.peerConnection) this.wordsReady ??= this.openForWords();
    return this.wordsReady ?? Promise.resolve();
  }

  /** Sends a message to all who watch. */
  async say(text: string): Promise<void> {
    try {
      await this.prepareToSay();
    } catch (error) {
      this.wordsReady = null;
      throw error;
    }
    await this.exchange.call.text(text);
  }

  /** Asks something about the room that is answered at once. */
  ask(body: Record<string, unknown>): Promise<Answer> {
    return this.exchange.ask({ room: this.room, ...body });
  }

  midOf(track: MediaStreamTrack): string | undefined {
    return this.peerConnection?.getTransceivers().find(({ sender }) => sender.track === track)?.mid ?? undefined;
  }

  /** Closes the PeerConnection only: others see that nothing more is sent. */
  hangup(): void {
    this.wordsReady = null;
    if (this.peerConnection) this.exchange.call.hangup();
  }

  /** Gives its handle up: it leaves the room. */
  close(): void {
    this.exchange.close();
  }

  /** One offer after the other. */
  private negotiate(tracks: Track[], body: Record<string, unknown>, more: Offered = {}): Promise<void> {
    const result = this.last.then(() => this.offer(tracks, body, more));
    this.last = result.catch(() => {});
    return result;
  }

  private async openForWords(): Promise<void> {
    const settled = new Promise<void>((done, failed) => {
      this.cameUp = () => setTimeout(done, SETTLING);
      this.failed = failed;
    });
    // A waiting caller gets the failure; without an answer nobody waits yet.
    settled.catch(() => {});
    await this.negotiate([], {});
    await settled;
  }

  /** The connection's negotiation ends with it. */
  private wentDown(): void {
    this.wordsReady = null;
    this.descriptions.clear();
    this.failed(new Error('the connection was lost'));
  }

  private async offer(tracks: Track[], body: Record<string, unknown>, { svc = '', described }: Offered): Promise<void> {
    const first = !this.peerConnection;
    const jsep = await this.exchange.call.makeOffer([...tracks, { type: 'data', capture: false }]);
    const mid = described && this.midOf(described.track);
    if (mid) this.descriptions.set(mid, described.text);
    const descriptions = [...this.descriptions].map(([mid, description]) => ({ mid, description }));
    try {
      await this.exchange.offer(
        { request: first ? 'publish' : 'configure', ...body, ...(descriptions.length > 0 && { descriptions }) },
        svc ? withSvc(jsep, svc) : jsep,
      );
    } catch (error) {
      if (first) this.hangup();
      throw error;
    }
  }
}

/** Members beside an offer. */
interface Offered {
  /** The scalability mode of its pictures. */
  svc?: string;
  described?: { track: MediaStreamTrack; text: string };
}

/** Says in the offer how its pictures are layered, which SDP does not. */
function withSvc(jsep: Jsep, svc: string): Jsep {
  const sections = (jsep.sdp ?? '').split(/^(?=m=)/m).slice(1);
  const videos = sections.flatMap((section, mindex) => (section.startsWith('m=video') ? [{ mindex, svc }] : []));
  return { type: jsep.type, sdp: jsep.sdp, svc: videos } as Jsep;
}

function tell(data: Answer, events: RoomEvents): void {
  if (data['videoroom'] === 'destroyed') return events.ended('destroyed');
  if (data['error_code'] !== undefined) return;
  for (const feed of (data['attendees'] ?? []) as Feed[]) events.joining(feed);
  if (data['dominant'] !== undefined) events.dominant(data['dominant']);
  if (data['publishers']) return events.feeds(data['publishers'] as Feed[]);
  if (data['joining']) return events.joining(data['joining'] as Feed);
  if (data['leaving'] === 'ok' && data['reason'] === 'kicked') return events.ended('kicked');
  if (data['moderation']) return events.moderated(data['id'], String(data['mid']), data['moderation'] === 'muted');
  if (data['kicked'] !== undefined) return events.left(data['kicked'], true);
  if (data['leaving'] !== undefined && data['leaving'] !== 'ok') return events.left(data['leaving'], false);
  if (data['unpublished'] !== undefined && data['unpublished'] !== 'ok') return events.unpublished(data['unpublished']);
  if (data['id'] === undefined || data['videoroom'] !== 'event') return;
  if (data['display'] !== undefined) events.renamed(data['id'], data['display']);
  if (data['metadata'] !== undefined) events.does(data['id'], data['metadata'] as Doing);
}
