// janus.js without a page around it, for tests that need more than the pages' buttons. Runs in the browser.
import Janus from 'janus-gateway';
import adapter from 'webrtc-adapter';
import { picture } from './picture';

type Json = Record<string, any>;

/** A session with one handle; `open` gives it, the methods return when the server has answered. */
class Client {
  readonly messages: Json[] = [];
  readonly received: (string | number[])[] = [];
  readonly labels: string[] = [];
  readonly hangups: string[] = [];
  readonly media: string[] = [];
  open = false;
  up = false;
  /** It has a subscription in a video room. */
  subscribed = false;
  private waiting: ((answer: { data: Json; jsep?: Json }) => void)[] = [];

  private constructor(readonly janus: any, public handle: any) {}

  static async open(server: string, plugin = 'janus.plugin.echotest'): Promise<Client> {
    await new Promise<void>((callback) =>
      Janus.init({ dependencies: Janus.useDefaultDependencies({ adapter }), callback }),
    );
    const janus: any = await new Promise((resolve, reject) => {
      const made: any = new Janus({ server, success: () => resolve(made), error: (reason) => reject(new Error(String(reason))) });
    });
    const client = new Client(janus, null);
    client.handle = await new Promise((success, error) =>
      janus.attach({
        plugin,
        success,
        error,
        onmessage: (data: Json, jsep?: Json) => client.message(data, jsep),
        webrtcState: (up: boolean, reason?: string) => {
          client.up = up;
          if (!up) client.hangups.push(reason ?? '');
        },
        mediaState: (kind: string, on: boolean, mid: string) => client.media.push(`${kind} ${mid} ${on}`),
        // Sound is decoded for who hears it only.
        onremotetrack: (track: MediaStreamTrack, _mid: string, on: boolean) => on && track.kind === 'audio' && hear(track),
        ondataopen: (label: string) => {
          client.open = true;
          client.labels.push(label);
        },
        ondata: (data: string | ArrayBuffer, label: string) => {
          client.received.push(typeof data === 'string' ? data : [...new Uint8Array(data)]);
          client.labels.push(label);
        },
      }),
    );
    return client;
  }

  private message(data: Json, jsep?: Json): void {
    this.messages.push(data);
    if (jsep && this.isOffered(data, jsep)) return void this.renegotiate(jsep);
    // The NoSIP plugin says nothing that is not asked for.
    if (jsep || data['result'] === 'ok' || data['error'] || data['nosip'] || isRoomAnswer(data)) this.waiting.shift()?.({ data, jsep });
  }

  /** Offers that nobody has asked for are answered at once. */
  private isOffered(data: Json, jsep: Json): boolean {
    if (jsep['type'] !== 'offer' || this.waiting.length > 0) return false;
    return (this.subscribed && data['videoroom'] === 'updated') || data['result']?.['status'] === 'updating';
  }

  private async renegotiate(offer: Json): Promise<void> {
    const jsep = await this.answer(offer);
    if (this.subscribed) await this.ask({ request: 'start' }, jsep);
    // Of a mountpoint, the answer is among the messages.
    else this.handle.send({ message: { request: 'start' }, jsep });
  }

  private answer(jsep: Json): Promise<Json> {
    return new Promise((success, error) => this.handle.createAnswer({ jsep, tracks: [{ type: 'data' }], success, error }));
  }

  /** Sends a request and gives the plugin's answer. */
  ask(body: Json, jsep?: Json): Promise<{ data: Json; jsep?: Json }> {
    return new Promise((resolve, reject) => {
      this.waiting.push(resolve);
      const error = (reason: string) => {
        this.waiting.splice(this.waiting.indexOf(resolve), 1);
        reject(new Error(reason));
      };
      this.handle.send({ message: body, jsep, error });
    });
  }

  /** An offer for whoever it is that `body` tells; gives what the plugin makes of it. */
  async make(tracks: Json[], body: Json, options: Json = {}): Promise<Json> {
    const offer: Json = await new Promise((success, error) => this.handle.createOffer({ ...options, tracks, success, error }));
    return (await this.ask(body, offer)).data;
  }

  /** Takes what the plugin answers to `body`; an offer is answered with these tracks, and the plugin told by `then`. */
  async take(body: Json, tracks: Json[], then: Json): Promise<Json[]> {
    const { data, jsep } = await this.ask(body);
    if (jsep?.['type'] === 'answer') {
      await new Promise<void>((success, error) => this.handle.handleRemoteJsep({ jsep, success: () => success(), error }));
    }
    if (jsep?.['type'] !== 'offer') return [data];
    const answer: Json = await new Promise((success, error) => this.handle.createAnswer({ jsep, tracks, success, error }));
    return [data, (await this.ask(then, answer)).data];
  }

  /** One round of offer and answer; gives the plugin's answer. */
  async negotiate(tracks: Json[], body: Json = {}, options: Json = {}): Promise<Json> {
    const offer: Json = await new Promise((success, error) =>
      this.handle.createOffer({ ...options, tracks, success, error }),
    );
    const { data, jsep } = await this.ask(body, offer);
    if (!jsep) return data;
    await new Promise<void>((success, error) => this.handle.handleRemoteJsep({ jsep, success: () => success(), error }));
    return data;
  }

  /** Asks for a change of a subscription in a video room, and answers the offer that comes of it. */
  async subscribe(body: Json): Promise<Json> {
    this.subscribed = true;
    const { data, jsep } = await this.ask(body);
    if (jsep) await this.renegotiate(jsep);
    return data;
  }

  /** What is received on a mid: frames decoded and the width of the picture. */
  async picture(mid: string): Promise<{ frames: number; width: number }> {
    const report: Json[] = [...(await this.handle.webrtcStuff.pc.getStats()).values()];
    const stream = report.find((stat) => stat['type'] === 'inbound-rtp' && stat['kind'] === 'video' && stat['mid'] === mid);
    return { frames: stream?.['framesDecoded'] ?? 0, width: stream?.['frameWidth'] ?? 0 };
  }

  /** Watches a mountpoint of the streaming plugin; what follows is in `messages`. */
  async watch(body: Json): Promise<void> {
    const { data, jsep } = await this.ask({ request: 'watch', ...body });
    if (!jsep) throw new Error(`no offer: ${JSON.stringify(data)}`);
    this.handle.send({ message: { request: 'start' }, jsep: await this.answer(jsep) });
  }

  /** Plays a recording; what follows is in `messages`. */
  async play(body: Json): Promise<Json> {
    const { data, jsep } = await this.ask({ request: 'play', ...body });
    if (!jsep) throw new Error(`no offer: ${JSON.stringify(data)}`);
    this.handle.send({ message: { request: 'start' }, jsep: await this.answer(jsep) });
    return data['result'];
  }

  /** Sets up the text room's connection: the server offers. */
  async setUp(): Promise<void> {
    const { jsep } = await this.ask({ request: 'setup' });
    if (!jsep) throw new Error('no offer');
    await this.ask({ request: 'ack' }, await this.answer(jsep));
  }

  send(data: string | number[], label?: string): Promise<void> {
    return new Promise((success, error) =>
      this.handle.data({ data: typeof data === 'string' ? data : new Uint8Array(data).buffer, label, success: () => success(), error }),
    );
  }

  /** The mids of the transceivers with the direction that was negotiated. */
  directions(): Record<string, string> {
    const transceivers: RTCRtpTransceiver[] = this.handle.webrtcStuff.pc.getTransceivers();
    return Object.fromEntries(transceivers.map((one) => [one.mid ?? '?', one.currentDirection ?? '?']));
  }

  destroy(): Promise<void> {
    return new Promise((success, error) => this.janus.destroy({ success, error }));
  }
}

/** Whether a message of the video room answers a request. */
function isRoomAnswer(data: Json): boolean {
  if (['joined', 'attached', 'updated', 'updating'].includes(data['videoroom'])) return true;
  return ['configured', 'started', 'paused', 'switched', 'left', 'leaving', 'unpublished'].some((key) => data[key] === 'ok');
}

function hear(track: MediaStreamTrack): void {
  if (document.getElementById(track.id)) return;
  const element = Object.assign(document.createElement('audio'), { id: track.id, autoplay: true });
  element.srcObject = new MediaStream([track]);
  document.body.append(element);
}

Object.assign(window, { Client, picture });
