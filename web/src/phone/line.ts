// A line: a handle of the SIP plugin, which has one call at a time.
import { wasWanted, type Ending } from '../ending';
import { Call } from '../call';
import type { Jsep, Session, Track } from '../session';
import { type CallEnd, type Result, SIP } from './api';

/** The state of a line's call. */
export type State = 'idle' | 'calling' | 'ringing' | 'talking' | 'ending';

/** The media that calls send. */
export interface Voice {
  /** Opens it. The sound is null if the user only listens; so is a picture that is not asked for. */
  open(picture: boolean): Promise<{ sound: MediaStreamTrack | null; picture: MediaStreamTrack | null }>;
}

export interface LineEvents {
  /** The call is another or does something else. */
  changed(line: PhoneLine): void;
  ended(line: PhoneLine, peer: string, how: CallEnd): void;
  failed(line: PhoneLine, error: unknown): void;
  /** Events of the plugin beyond the line's own call, or for other lines. */
  said(line: PhoneLine, result: Result): void;
  track(line: PhoneLine, track: MediaStreamTrack): void;
}

export interface Outgoing {
  picture: boolean;
  srtp: string;
  /** The transfer that this call follows. */
  refer?: number;
}

/** An error of the plugin's, which it has sent instead of an answer. */
export class Refusal extends Error {
  constructor(readonly code: number, text: string) {
    super(text);
  }
}

export class PhoneLine {
  state: State = 'idle';
  peer = '';
  displayname = '';
  callId = '';
  /** When the other end answered, in milliseconds. */
  since = 0;
  held = false;
  muted = false;
  /** The progress before the answer, for the user. */
  progress = '';
  /** Sound comes already, though nobody has answered. */
  early = false;
  hasPicture = false;
  /** Why the connection to the server ended, if nobody wanted that. */
  lost: Ending | null = null;
  /** The transfer that its call follows. */
  refer: number | null = null;
  private offer: Jsep | null = null;
  private own: MediaStreamTrack[] = [];
  /** Counts calls: work that began for an earlier one is stale. */
  private attempt = 0;

  private constructor(private readonly call: Call, private readonly voice: Voice, private readonly events: LineEvents) {}

  static async open(session: Session, voice: Voice, events: LineEvents): Promise<PhoneLine> {
    let line: PhoneLine | null = null;
    const call = await Call.attach(session, SIP, {
      message: (data, jsep) => line?.message(data, jsep),
      connected: (up, ending) => {
        if (line) line.lost = up || !ending || wasWanted(ending) ? null : ending;
      },
      restart: async (call) => call.send({ request: 'update' }, await call.restartOffer()),
      localTrack: () => {},
      remoteTrack: (track, on) => line && on && events.track(line, track),
      dataOpen: () => {},
      data: () => {},
      slowLink: () => {},
      ended: () => {},
    });
    line = new PhoneLine(call, voice, events);
    return line;
  }

  /** Sends a request; what the plugin answers is an event like others. */
  send(body: Record<string, unknown>, jsep?: Jsep): Promise<void> {
    return this.call.send(body, jsep);
  }

  get id(): number {
    return this.call.id;
  }

  get peerConnection(): RTCPeerConnection | null {
    return this.call.peerConnection;
  }

  async dial(uri: string, { picture, srtp, refer }: Outgoing): Promise<void> {
    const attempt = this.begin('calling', uri);
    this.refer = refer ?? null;
    const tracks = await this.tracks(picture, attempt);
    if (!tracks) return;
    const offer = await this.call.makeOffer(tracks);
    if (attempt !== this.attempt) return;
    await this.send({ request: 'call', uri, ...(srtp && { srtp }), ...(refer !== undefined && { refer_id: refer }) }, offer);
  }

  async accept(picture: boolean): Promise<void> {
    const { offer, attempt } = this;
    if (this.state !== 'ringing') return;
    const tracks = await this.tracks(picture, attempt);
    if (!tracks) return;
    // Who calls without an offer gets one.
    const jsep = offer ? await this.call.answerWith(offer, tracks) : await this.call.makeOffer(tracks);
    if (attempt === this.attempt) await this.send({ request: 'accept' }, jsep);
  }

  /** Takes over a call that another page has, or that nobody has. */
  async take(callId: string, peer: string): Promise<void> {
    this.begin('calling', peer);
    this.progress = 'Taking it over…';
    this.events.changed(this);
    await this.send({ request: 'move', call_id: callId });
  }

  /** Ends the call, whatever it does. */
  async hangup(): Promise<void> {
    switch (this.state) {
      case 'ringing':
        return this.send({ request: 'decline', code: 486 });
      case 'calling':
        // Nobody knows of it yet.
        if (!this.callId) return this.over({ code: 200, reason: '' });
        break;
    }
    await this.send({ request: 'hangup' });
  }

  async hold(held: boolean): Promise<void> {
    if (this.state !== 'talking' || this.held === held) return;
    await this.send(held ? { request: 'hold' } : { request: 'unhold' });
  }

  mute(muted: boolean): void {
    this.muted = muted;
    for (const track of this.own) if (track.kind === 'audio') track.enabled = !muted;
    this.events.changed(this);
  }

  /** Sends a key: within the sound if the other end takes that, else by SIP. */
  async key(digit: string): Promise<void> {
    const dtmf = this.peerConnection?.getSenders().find(({ track, dtmf }) => track?.kind === 'audio' && dtmf?.canInsertDTMF)?.dtmf;
    if (dtmf) dtmf.insertDTMF(dtmf.toneBuffer + digit, 160, 50);
    else await this.send({ request: 'dtmf_info', digit });
  }

  /** Connects the other end with somebody else: in the place of a call if one is given. */
  transfer(uri: string, replace?: string): Promise<void> {
    return this.send({ request: 'transfer', uri, ...(replace && { replace }) });
  }

  /** Sends another microphone's sound. */
  async replaceSound(track: MediaStreamTrack | null): Promise<void> {
    const sender = this.peerConnection?.getSenders().find((one) => one.track?.kind === 'audio');
    if (!sender || !track) return;
    const own = track.clone();
    own.enabled = !this.muted;
    await sender.replaceTrack(own);
    for (const old of this.own.filter(({ kind }) => kind === 'audio')) old.stop();
    this.own = [own, ...this.own.filter(({ kind }) => kind !== 'audio')];
  }

  close(): void {
    this.release();
    this.call.detach();
  }

  private begin(state: State, peer: string, displayname = ''): number {
    Object.assign(this, { state, peer, displayname, callId: '', since: 0, held: false, muted: false, progress: '', early: false, hasPicture: false, refer: null, lost: null });
    this.offer = null;
    this.attempt += 1;
    this.events.changed(this);
    return this.attempt;
  }

  /** Copies the tracks to send, so that a call can be muted by itself. Null if the call has ended meanwhile. */
  private async tracks(picture: boolean, attempt: number): Promise<Track[] | null> {
    const opened = await this.voice.open(picture).catch((error: unknown) => {
      if (attempt === this.attempt && this.state === 'calling') this.over({ code: 200, reason: '' });
      throw error;
    });
    if (attempt !== this.attempt) {
      opened.picture?.stop();
      return null;
    }
    const sound = opened.sound?.clone() ?? null;
    this.own = [sound, opened.picture].filter((track) => track !== null);
    const offered = !this.offer || /^m=video [1-9]/m.test(this.offer.sdp ?? '');
    return [
      { type: 'audio', capture: sound ?? false, recv: true },
      ...(picture || (this.offer && offered) ? [{ type: 'video', capture: opened.picture ?? false, recv: true } as Track] : []),
    ];
  }

  private message(data: Record<string, any>, jsep?: Jsep): void {
    this.react(data, jsep).catch((error: unknown) => this.events.failed(this, error));
  }

  private async react(data: Record<string, any>, jsep?: Jsep): Promise<void> {
    if (data['error_code'] !== undefined || data['error']) {
      if (this.state === 'calling' && !this.callId) this.over({ code: 200, reason: '' });
      throw new Refusal(Number(data['error_code']), String(data['error']));
    }
    // Which call or message it is about is in one place or the other.
    const result = { call_id: data['call_id'], ...data['result'] } as Result;
    switch (result['event']) {
      case 'calling':
        this.callId = String(result['call_id'] ?? '');
        break;
      case 'ringing':
        this.progress = 'Ringing…';
        break;
      case 'progress':
        this.early = true;
        this.progress = 'Ringing…';
        if (jsep) await this.answered(jsep);
        break;
      case 'incomingcall':
        this.begin('ringing', String(result['username']), String(result['displayname'] ?? ''));
        this.callId = String(result['call_id'] ?? '');
        this.offer = jsep ?? null;
        this.hasPicture = /^m=video [1-9]/m.test(jsep?.sdp ?? '');
        break;
      case 'moved':
        await this.moved(result, jsep);
        break;
      case 'accepted':
        if (this.state === 'idle') return;
        this.state = 'talking';
        this.since ||= Date.now();
        if (jsep?.type === 'answer') await this.answered(jsep);
        break;
      case 'holding':
      case 'resuming':
        this.held = result['event'] === 'holding';
        break;
      case 'updatingcall':
        if (jsep) await this.send({ request: 'update' }, await this.call.answerWith(jsep, []));
        break;
      case 'hangingup':
      case 'declining':
        if (this.state !== 'idle' && result['refer_id'] === undefined) this.state = 'ending';
        break;
      case 'hangup':
        return this.over({ code: Number(result['code']), reason: String(result['reason'] ?? ''), text: result['text'] as string | undefined });
    }
    this.events.said(this, result);
    this.events.changed(this);
  }

  private async answered(jsep: Jsep): Promise<void> {
    this.hasPicture = /^m=video [1-9]/m.test(jsep.sdp ?? '');
    await this.call.accept(jsep);
  }

  /** The call of another page is ours now: the server offers what it has. */
  private async moved(result: Result, jsep?: Jsep): Promise<void> {
    if (!jsep) return;
    this.callId = String(result['call_id'] ?? '');
    this.displayname = String(result['displayname'] ?? '');
    this.peer = String(result['username'] ?? this.peer);
    this.held = result['held'] === true;
    this.offer = jsep;
    this.hasPicture = /^m=video [1-9]/m.test(jsep.sdp ?? '');
    if (Number(result['since']) > 0) this.since = Number(result['since']) * 1000;
    const tracks = await this.tracks(false, this.attempt);
    if (tracks) await this.send({ request: 'accept' }, await this.call.answerWith(jsep, tracks));
  }

  private over(how: CallEnd): void {
    if (this.state === 'idle') return;
    const peer = this.peer;
    this.attempt += 1;
    this.state = 'idle';
    this.release();
    this.events.ended(this, peer, how);
    this.events.changed(this);
  }

  private release(): void {
    this.offer = null;
    this.callId = '';
    for (const track of this.own) track.stop();
    this.own = [];
    if (this.peerConnection) this.call.hangup();
  }
}
