// What Janus's demo of the audio bridge does with janus.js: it joins, offers when it has joined, and keeps a list of those who are
// there by events. Runs in the browser.
import Janus from 'janus-gateway';
import adapter from 'webrtc-adapter';

type Json = Record<string, any>;

class Demo {
  readonly people = new Map<number, Json>();
  readonly talking: string[] = [];
  readonly left: number[] = [];
  readonly errors: string[] = [];
  readonly media: string[] = [];
  id = 0;
  room = 0;
  up = false;
  isDestroyed = false;
  private hasOffered = false;

  private constructor(private readonly janus: any, private readonly isStereo: boolean) {}

  handle: any;

  /** Opens a session with a handle; `server` says over which transport. */
  static async open(server: string, isStereo = false): Promise<Demo> {
    await new Promise<void>((callback) => Janus.init({ dependencies: Janus.useDefaultDependencies({ adapter }), callback }));
    const janus: any = await new Promise((resolve, reject) => {
      const made: any = new Janus({ server, success: () => resolve(made), error: (reason) => reject(new Error(String(reason))) });
    });
    const demo = new Demo(janus, isStereo);
    demo.handle = await new Promise((success, error) =>
      janus.attach({
        plugin: 'janus.plugin.audiobridge',
        success,
        error,
        onmessage: (data: Json, jsep?: Json) => demo.message(data, jsep),
        webrtcState: (up: boolean) => (demo.up = up),
        mediaState: (kind: string, on: boolean) => demo.media.push(`${kind} ${on}`),
        onremotetrack: (track: MediaStreamTrack, _mid: string, on: boolean) => on && play(track),
      }),
    );
    return demo;
  }

  join(room: number, display: string): void {
    this.room = room;
    this.handle.send({ message: { request: 'join', room, display } });
  }

  send(body: Json): void {
    this.handle.send({ message: body });
  }

  /** Sends what is answered at once. */
  ask(body: Json): Promise<Json> {
    return new Promise((success, error) => this.handle.send({ message: body, success, error }));
  }

  /** Offers anew, with other candidates. */
  restart(): void {
    this.offer({ iceRestart: true });
  }

  private message(data: Json, jsep?: Json): void {
    switch (data['audiobridge']) {
      case 'joined':
        if (data['id']) {
          this.id = data['id'];
          if (!this.hasOffered) this.offer();
        }
        break;
      case 'roomchanged':
        this.id = data['id'];
        this.room = data['room'];
        this.people.clear();
        break;
      case 'destroyed':
        this.isDestroyed = true;
        break;
      case 'talking':
      case 'stopped-talking':
        this.talking.push(`${data['audiobridge']} ${data['id']}`);
        break;
    }
    for (const person of data['participants'] ?? []) this.people.set(person.id, { ...this.people.get(person.id), ...person });
    if (data['leaving']) {
      this.people.delete(data['leaving']);
      this.left.push(data['leaving']);
    }
    if (data['error']) this.errors.push(data['error']);
    if (jsep) this.handle.handleRemoteJsep({ jsep });
  }

  private offer(options: Json = {}): void {
    this.hasOffered = true;
    this.handle.createOffer({
      ...options,
      tracks: options['iceRestart'] ? undefined : [{ type: 'audio', capture: true, recv: true }],
      customizeSdp: (jsep: Json) => {
        if (this.isStereo) jsep['sdp'] = jsep['sdp'].replace('useinbandfec=1', 'useinbandfec=1;stereo=1');
      },
      success: (jsep: Json) => this.handle.send({ message: { request: 'configure', muted: false }, jsep }),
      error: (reason: unknown) => this.errors.push(String(reason)),
    });
  }

  destroy(): Promise<void> {
    return new Promise((success, error) => this.janus.destroy({ success, error }));
  }
}

function play(track: MediaStreamTrack): void {
  document.querySelector('audio')?.remove();
  const element = Object.assign(document.createElement('audio'), { autoplay: true });
  element.srcObject = new MediaStream([track]);
  document.body.append(element);
}

Object.assign(window, { Demo });
