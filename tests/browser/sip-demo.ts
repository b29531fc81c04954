// What Janus's demo of the SIP plugin does with janus.js: it registers, calls and is called, offers and answers by what the plugin's
// events say. Runs in the browser.
import Janus from 'janus-gateway';
import adapter from 'webrtc-adapter';
import { picture } from './picture';

type Json = Record<string, any>;

class SipDemo {
  /** The plugin's events as they came, with the Call-ID that is beside the result. */
  readonly events: Json[] = [];
  readonly errors: Json[] = [];
  readonly hangups: string[] = [];
  masterId: number | null = null;
  up = false;
  handle: any;
  private offer: Json | null = null;

  private constructor(readonly janus: any) {}

  /** Opens a session with a handle, or a handle more in the session of another. */
  static async open(server: string, beside?: SipDemo): Promise<SipDemo> {
    await new Promise<void>((callback) => Janus.init({ dependencies: Janus.useDefaultDependencies({ adapter }), callback }));
    const janus: any =
      beside?.janus ??
      (await new Promise((resolve, reject) => {
        const made: any = new Janus({ server, success: () => resolve(made), error: (reason) => reject(new Error(String(reason))) });
      }));
    const demo = new SipDemo(janus);
    demo.handle = await new Promise((success, error) =>
      janus.attach({
        plugin: 'janus.plugin.sip',
        success,
        error,
        onmessage: (data: Json, jsep?: Json) => demo.message(data, jsep),
        webrtcState: (up: boolean, reason?: string) => {
          demo.up = up;
          if (!up) demo.hangups.push(reason ?? '');
        },
        onremotetrack: (track: MediaStreamTrack, mid: string, on: boolean) => on && track.kind === 'audio' && play(track, `${demo.handle.getId()}-${mid}`),
      }),
    );
    return demo;
  }

  send(body: Json, jsep?: Json): void {
    this.handle.send({ message: body, jsep });
  }

  async call(uri: string, body: Json = {}, video = false): Promise<void> {
    this.send({ request: 'call', uri, autoaccept_reinvites: false, ...body }, await this.make('createOffer', { tracks: tracks(video) }));
  }

  async accept(body: Json = {}, video = false): Promise<void> {
    const jsep = this.offer;
    const own = jsep ? await this.make('createAnswer', { jsep, tracks: tracks(video) }) : await this.make('createOffer', { tracks: tracks(video) });
    this.send({ request: 'accept', autoaccept_reinvites: false, ...body }, own);
  }

  /** Adds a picture to the call. */
  async addPicture(): Promise<void> {
    this.send({ request: 'update' }, await this.make('createOffer', { tracks: [{ type: 'video', capture: picture(), recv: true, add: true }] }));
  }

  private message(data: Json, jsep?: Json): void {
    if (data['error']) this.errors.push(data);
    const result: Json | undefined = data['result'];
    if (!result?.['event']) return;
    const { event } = result;
    this.events.push({ ...result, ...(data['call_id'] && { at: data['call_id'] }), ...(jsep && { jsep: jsep['type'] }) });
    if (event === 'registered') this.masterId ??= result['master_id'];
    else if (event === 'incomingcall') this.offer = jsep ?? null;
    else if (['accepted', 'progress'].includes(event) && jsep) this.handle.handleRemoteJsep({ jsep });
    else if (event === 'updatingcall' && jsep) void this.answerUpdate(jsep);
    else if (event === 'hangup') this.handle.hangup();
  }

  private async answerUpdate(jsep: Json): Promise<void> {
    const video = /^m=video [1-9]/m.test(jsep['sdp']);
    const tracks = video ? [{ type: 'video', capture: picture(), recv: true, add: true }] : [];
    this.send({ request: 'update' }, await this.make('createAnswer', { jsep, tracks }));
  }

  private make(what: 'createOffer' | 'createAnswer', options: Json): Promise<Json> {
    return new Promise((success, error) => this.handle[what]({ ...options, success, error }));
  }

  destroy(): Promise<void> {
    return new Promise((success, error) => this.janus.destroy({ success, error }));
  }
}

function tracks(video: boolean): Json[] {
  return [{ type: 'audio', capture: true, recv: true }, ...(video ? [{ type: 'video', capture: picture(), recv: true }] : [])];
}

function play(track: MediaStreamTrack, id: string): void {
  document.getElementById(id)?.remove();
  const element = Object.assign(document.createElement('audio'), { autoplay: true, id });
  element.srcObject = new MediaStream([track]);
  document.body.append(element);
}

Object.assign(window, { SipDemo });
