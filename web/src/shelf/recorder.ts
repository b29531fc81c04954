// Records what this browser sends.
import { Call, type CallEvents } from '../call';
import { open, type Capture, type SourceKind } from '../capture';
import { element, endNotice, notice, press } from '../page';
import { wasWanted } from '../ending';
import { clock } from '../position';
import type { Session } from '../session';

/** The media to record. */
export interface Wish {
  name: string;
  source: SourceKind;
  codec: string;
  format: string;
}

export class Recorder {
  private call: Call | null = null;
  private capture: Capture | null = null;
  private timer = 0;
  /** The recorded time in ms, and when the present part began. */
  private passed = 0;
  private since = 0;

  private constructor(private readonly over: (saved: boolean) => void) {}

  /** Begins; `over` is called once at the end. */
  static async begin(session: Session, wish: Wish, over: (saved: boolean) => void): Promise<Recorder> {
    const recorder = new Recorder(over);
    try {
      await recorder.open(session, wish);
    } catch (error) {
      recorder.close();
      throw error;
    }
    return recorder;
  }

  private async open(session: Session, wish: Wish): Promise<void> {
    this.capture = await open(wish.source, { width: 640, height: 360, camera: '', microphone: '' });
    const { stream } = this.capture;
    this.call = await Call.attach(session, 'janus.plugin.recordplay', this.events);
    const tracks = stream.getTracks().map((track) => ({ type: track.kind as 'audio' | 'video', capture: track, recv: false }));
    const offer = await this.call.makeOffer(tracks);
    const codec = wish.codec && { videocodec: wish.codec };
    await this.call.send({ request: 'record', name: wish.name, record_format: wish.format, ...codec }, offer);
    element<HTMLVideoElement>('preview').srcObject = stream;
  }

  hold(hold: boolean): void {
    this.call?.send({ request: hold ? 'pause' : 'resume' }).catch((error: unknown) => notice('error', String(error)));
  }

  end(): void {
    this.call?.send({ request: 'stop' }).catch(() => this.ended());
  }

  /** The server is gone. */
  lost(): void {
    this.ended();
  }

  private readonly events: CallEvents = {
    message: (data, jsep) => {
      if (jsep) this.call?.accept(jsep).catch((error: unknown) => notice('error', `The server’s answer was refused: ${String(error)}`));
      if (data['error']) {
        notice('error', `The server says: ${data['error']} (${data['error_code']})`);
        if (this.since === 0 && this.passed === 0) this.ended();
      }
      const status = data['result']?.status;
      if (status === 'paused') this.stand();
      if (status === 'resumed') this.goOn();
      if (status === 'done') this.ended();
    },
    connected: (up, ending) => {
      if (up) this.goOn();
      else if (ending && !wasWanted(ending)) endNotice('The recording has ended. What came before is kept.', ending);
    },
    localTrack: () => {},
    remoteTrack: () => {},
    dataOpen: () => {},
    data: () => {},
    slowLink: (uplink) => {
      if (uplink) notice('warning', 'Parts of the recording do not reach the server: the network is slow or busy.');
    },
    ended: () => this.ended(),
  };

  private goOn(): void {
    this.since = performance.now();
    window.clearInterval(this.timer);
    this.timer = window.setInterval(() => this.show(), 250);
    this.showHeld(false);
    element<HTMLButtonElement>('end').disabled = false;
  }

  private stand(): void {
    if (this.since > 0) this.passed += performance.now() - this.since;
    this.since = 0;
    window.clearInterval(this.timer);
    this.showHeld(true);
    this.show();
  }

  private showHeld(held: boolean): void {
    press(element('hold'), held, held ? 'Go on' : 'Pause');
    element('recording-now').textContent = held ? 'Paused' : '● Recording';
  }

  private show(): void {
    const running = this.since > 0 ? performance.now() - this.since : 0;
    element('passed').textContent = clock((this.passed + running) / 1000);
  }

  private ended(): void {
    if (!this.call) return;
    const saved = this.since > 0 || this.passed > 0;
    this.close();
    this.over(saved);
  }

  private close(): void {
    window.clearInterval(this.timer);
    element<HTMLVideoElement>('preview').srcObject = null;
    this.capture?.close();
    for (const track of this.capture?.stream.getTracks() ?? []) track.stop();
    this.capture = null;
    const call = this.call;
    this.call = null;
    call?.detach();
  }
}
