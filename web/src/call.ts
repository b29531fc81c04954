// One plugin handle and its PeerConnection: what the echo test and the video call have in common.
import { endingOf, type Ending } from './ending';
import { reconnecting } from './page';
import type { Handle, Jsep, Session, Track } from './session';

export interface CallEvents {
  /** A message of the plugin, with an offer or answer if it carries one. */
  message(data: Record<string, any>, jsep?: Jsep): void;
  /** The connection came up, or went down for a reason. */
  connected(up: boolean, ending?: Ending): void;
  /** Media has come from neither side for some seconds: asks for new addresses and credentials, by an ICE restart. */
  restart?(call: Call): Promise<void>;
  localTrack(track: MediaStreamTrack, on: boolean): void;
  remoteTrack(track: MediaStreamTrack, on: boolean, mid: string): void;
  dataOpen(): void;
  data(data: unknown, label: string): void;
  /** The server loses packets of ours (`uplink`), or we lose packets of the server's. */
  slowLink(uplink: boolean, lost: number): void;
  /** The PeerConnection is gone, for whatever reason. */
  ended(): void;
}

/** How the camera's picture is sent. */
export interface SendOptions {
  simulcast: boolean;
  /** A scalability mode such as `L3T3`; empty for none. */
  svc: string;
}

/** How long a connection may be disconnected before ICE is restarted, and how long that may take, in ms. */
const DISCONNECTED = 1_500;
const RESTARTING = 6_000;

export class Call {
  private up = false;
  private ice = '';
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly stop: () => void;

  private constructor(
    private readonly session: Session,
    private readonly handle: Handle,
    private readonly restart: CallEvents['restart'],
  ) {
    this.stop = session.onBack(() => this.up && this.ice !== 'connected' && this.ice !== 'completed' && this.restartSoon(0));
  }

  static async attach(session: Session, plugin: string, events: CallEvents): Promise<Call> {
    let call: Call | null = null;
    const handle = await session.attach(plugin, {
      onmessage: (data, jsep) => events.message(data, jsep),
      // The reason is passed by janus.js though its types do not say so.
      webrtcState: ((up: boolean, reason?: string) => {
        call?.wentUp(up);
        events.connected(up, up ? undefined : endingOf(handle.getId(), reason));
      }) as (up: boolean) => void,
      iceState: (state) => call?.iceChanged(state),
      onlocaltrack: (track, on) => events.localTrack(track, on),
      onremotetrack: (track, mid, on, metadata) => {
        // A muted track is one from which nothing arrives for a moment, not one that ended.
        if (metadata?.reason === 'mute' || metadata?.reason === 'unmute') return;
        events.remoteTrack(track, on, mid);
      },
      ondataopen: () => events.dataOpen(),
      ondata: (data: unknown, label: string) => events.data(data, label),
      slowLink: (uplink, lost) => events.slowLink(uplink, lost),
      oncleanup: () => {
        call?.wentUp(false);
        events.ended();
      },
    });
    call = new Call(session, handle, events.restart);
    return call;
  }

  private wentUp(up: boolean): void {
    this.up = up;
    clearTimeout(this.timer);
    reconnecting(`call ${this.id}`, false);
  }

  private iceChanged(state: string): void {
    this.ice = state;
    clearTimeout(this.timer);
    if (state === 'connected' || state === 'completed') reconnecting(`call ${this.id}`, false);
    else if (this.up && (state === 'disconnected' || state === 'failed')) this.restartSoon(state === 'failed' ? 0 : DISCONNECTED);
  }

  private restartSoon(after: number): void {
    clearTimeout(this.timer);
    if (!this.restart) return;
    this.timer = setTimeout(() => {
      if (!this.peerConnection) return;
      reconnecting(`call ${this.id}`, true);
      this.session.doubt();
      // It is tried again if it does not help.
      this.restart?.(this).then(
        () => setTimeout(() => this.iceChanged(this.peerConnection?.iceConnectionState ?? 'closed'), DISCONNECTED),
        () => {},
      );
      this.restartSoon(RESTARTING);
    }, after);
  }

  /** The handle's id. */
  get id(): number {
    return Number(this.handle.getId());
  }

  /** The live PeerConnection, for statistics. */
  get peerConnection(): RTCPeerConnection | null {
    return this.handle.webrtcStuff?.pc ?? null;
  }

  /** Sends a request to the plugin; its result arrives as a message. */
  send(body: Record<string, unknown>, jsep?: Jsep): Promise<void> {
    return this.session.answered(() => new Promise((resolve, reject) => {
      this.handle.send({
        message: body as { request: string },
        jsep,
        success: () => resolve(),
        error: (reason) => reject(new Error(reason)),
      });
    }));
  }

  /** Sends a request that the plugin answers at once. */
  ask(body: Record<string, unknown>): Promise<Record<string, any>> {
    return this.session.answered(() => new Promise((resolve, reject) => {
      this.handle.send({
        message: body as { request: string },
        success: (data: unknown) => resolve((data ?? {}) as Record<string, any>),
        error: (reason) => reject(new Error(reason)),
      });
    }));
  }

  /** Answers an offer, sending nothing. */
  receive(jsep: Jsep): Promise<Jsep> {
    const data = /^m=application [1-9]/m.test(jsep.sdp ?? '');
    return this.answerWith(jsep, data ? [{ type: 'data', capture: false }] : []);
  }

  /** Makes an offer for the stream's tracks and a data channel; `codec` moves a video codec to the front. */
  offer(stream: MediaStream, options: SendOptions, codec = ''): Promise<Jsep> {
    return this.createOffer({
      tracks: [...tracksOf(stream, options), { type: 'data', capture: false }],
      customizeSdp: (jsep: Jsep) => {
        if (codec && jsep.sdp) jsep.sdp = preferVideoCodec(jsep.sdp, codec);
      },
    });
  }

  /** Makes an offer with these changes to what is sent. */
  makeOffer(tracks: Track[]): Promise<Jsep> {
    return this.createOffer({ tracks });
  }

  /** Makes an offer for sound both ways, in stereo if the server answers so; without a track it is only received. */
  soundOffer(track: MediaStreamTrack | null): Promise<Jsep> {
    return this.createOffer({
      tracks: [{ type: 'audio', capture: track ?? false, recv: true }],
      customizeSdp: (jsep: Jsep) => {
        if (jsep.sdp) jsep.sdp = askStereo(jsep.sdp);
      },
    });
  }

  /** Sends other tracks, without an offer. */
  replace(tracks: Track[]): Promise<void> {
    return new Promise((resolve, reject) => {
      this.handle.replaceTracks({ tracks, success: () => resolve(), error: (reason: unknown) => reject(asError(reason)) });
    });
  }

  /** Answers an offer, sending the stream's tracks; without a stream what is sent stays as it is. */
  answer(jsep: Jsep, stream?: MediaStream): Promise<Jsep> {
    const tracks = stream ? tracksOf(stream, { simulcast: false, svc: '' }) : [];
    return this.answerWith(jsep, [...tracks, { type: 'data', capture: false }]);
  }

  /** Answers an offer, sending these tracks. */
  answerWith(jsep: Jsep, tracks: Track[]): Promise<Jsep> {
    return new Promise((resolve, reject) => {
      this.handle.createAnswer({ jsep, tracks, success: resolve, error: (reason: unknown) => reject(asError(reason)) });
    });
  }

  /** Takes in the other side's answer. */
  accept(jsep: Jsep): Promise<void> {
    return new Promise((resolve, reject) => {
      this.handle.handleRemoteJsep({
        jsep,
        success: () => resolve(),
        error: (reason: unknown) => reject(asError(reason)),
      });
    });
  }

  /** An offer that asks for new transport addresses and credentials while media goes on. */
  restartOffer(): Promise<Jsep> {
    return this.createOffer({ tracks: [], iceRestart: true });
  }

  /** Sends text on the data channel. */
  text(text: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.handle.data({ data: text, success: () => resolve(), error: (reason) => reject(new Error(reason)) });
    });
  }

  /** Closes the PeerConnection and tells the server; the handle can be used for another. */
  hangup(): void {
    // Without a connection there is nobody to tell, and one that is being opened refuses what is sent.
    this.handle.hangup(this.session.isConnected);
  }

  /** Gives the handle up, and the PeerConnection with it. */
  detach(): void {
    this.stop();
    this.wentUp(false);
    this.handle.detach(this.session.isConnected ? {} : { noRequest: true });
  }

  private createOffer(params: Parameters<Handle['createOffer']>[0]): Promise<Jsep> {
    return new Promise((resolve, reject) => {
      this.handle.createOffer({ ...params, success: resolve, error: reject });
    });
  }
}

/** The tracks as janus.js wants them; a kind that is not sent is still received. */
function tracksOf(stream: MediaStream, { simulcast, svc }: SendOptions): Track[] {
  const audio = stream.getAudioTracks()[0];
  const video = stream.getVideoTracks()[0];
  return [
    { type: 'audio', capture: audio ?? false, recv: true },
    {
      type: 'video',
      capture: video ?? false,
      recv: true,
      simulcast: simulcast && !!video,
      svc: !simulcast && svc && video ? svc : undefined,
    },
  ];
}

/**
 * Moves the payload types of a codec to the front of each video section, so that the other side picks it. The
 * browser's own setCodecPreferences would serve, but janus.js makes the transceiver and the offer in one go.
 */
export function preferVideoCodec(sdp: string, codec: string): string {
  const sections = sdp.split(/^(?=m=)/m);
  return sections.map((section) => (section.startsWith('m=video') ? preferIn(section, codec) : section)).join('');
}

function preferIn(section: string, codec: string): string {
  const wanted = [...section.matchAll(/^a=rtpmap:(\d+) ([^/\r\n]+)/gm)]
    .filter((found) => found[2]?.toLowerCase() === codec.toLowerCase())
    .map((found) => found[1] ?? '');
  if (wanted.length === 0) return section;
  return section.replace(/^(m=video \S+ \S+ )([\d ]+)/, (_line, start: string, payloads: string) => {
    const rest = payloads.trim().split(' ').filter((payload) => !wanted.includes(payload));
    return start + [...wanted, ...rest].join(' ');
  });
}

/** Says that Opus is wanted in stereo, which Chromium does not say by itself. */
function askStereo(sdp: string): string {
  const opus = /^a=rtpmap:(\d+) opus\//im.exec(sdp)?.[1];
  if (!opus || new RegExp(`^a=fmtp:${opus} .*\\bstereo=1`, 'm').test(sdp)) return sdp;
  return sdp.replace(new RegExp(`^(a=fmtp:${opus} [^\\r\\n]*)`, 'm'), '$1;stereo=1');
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
