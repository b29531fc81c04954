// Before joining: what the camera sees and how loud the microphone is, and with which of them muted one joins.
import { CaptureError, open, type Capture } from './capture';
import { Level } from './level';
import { element } from './page';
import type { Setup } from './setup';

export class Preview {
  private readonly video = element<HTMLVideoElement>('preview');
  private readonly meter = element<HTMLMeterElement>('preview-level');
  private readonly look = element<HTMLButtonElement>('preview-look');
  private readonly off = {
    audio: element<HTMLButtonElement>('join-muted'),
    video: element<HTMLButtonElement>('join-unseen'),
  };
  private capture: Capture | null = null;
  private level: Level | null = null;
  /** Why there is no picture, if it is not the user who wants none. */
  private why = '';
  /** Grows with each change: what was opened for an earlier one is not shown. */
  private turn = 0;

  constructor(private readonly setup: Setup, private readonly source: () => string) {
    for (const button of Object.values(this.off)) {
      button.addEventListener('click', () => {
        button.setAttribute('aria-pressed', String(button.getAttribute('aria-pressed') !== 'true'));
        this.show();
      });
    }
    this.look.addEventListener('click', () => void this.start());
    setup.onDevice(() => void (this.capture && this.start()));
    element('source').addEventListener('change', () => void (this.capture && this.start()));
  }

  /** What is muted when one joins. */
  get muted(): ('audio' | 'video')[] {
    return (['audio', 'video'] as const).filter((medium) => this.off[medium].getAttribute('aria-pressed') === 'true');
  }

  /** Shows the preview at once if the browser need not ask for that. */
  async startIfAllowed(): Promise<void> {
    const turn = this.turn;
    try {
      const names = ['camera', 'microphone'] as unknown as PermissionName[];
      const states = await Promise.all(names.map((name) => navigator.permissions.query({ name })));
      if (turn === this.turn && states.every(({ state }) => state === 'granted')) await this.start();
    } catch {
      // Such a browser is asked by the button.
    }
  }

  async start(): Promise<void> {
    this.stop();
    const turn = this.turn;
    const capture = this.source() === 'none' ? null : await open(this.source() as 'devices', this.setup.captureOptions).catch((error: unknown) => {
      if (turn === this.turn) this.why = error instanceof CaptureError ? error.message : String(error);
      return null;
    });
    if (turn !== this.turn) return free(capture);
    this.capture = capture;
    if (capture && capture.stream.getAudioTracks().length > 0) this.level = new Level(capture.stream, this.meter);
    this.show();
  }

  stop(): void {
    this.turn += 1;
    this.level?.close();
    this.level = null;
    free(this.capture);
    this.capture = null;
    this.why = '';
    this.meter.value = 0;
    this.show();
  }

  private show(): void {
    for (const track of this.capture?.stream.getTracks() ?? []) track.enabled = !this.muted.includes(track.kind as 'audio');
    const pictures = this.muted.includes('video') ? [] : (this.capture?.stream.getVideoTracks() ?? []);
    this.video.srcObject = pictures.length > 0 ? new MediaStream(pictures) : null;
    const figure = this.video.parentElement;
    figure?.classList.toggle('empty', pictures.length === 0);
    if (figure) figure.dataset['empty'] = this.why || 'The camera is off.';
    this.look.hidden = this.capture !== null;
  }
}

function free(capture: Capture | null): void {
  capture?.close();
  for (const track of capture?.stream.getTracks() ?? []) track.stop();
}
