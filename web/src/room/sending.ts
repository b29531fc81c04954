// Media sent to a room: microphone, camera, screen; they can be muted, changed and ended meanwhile.
import { openDevice, openScreen, type Capture } from '../capture';
import { clearNotice, notice } from '../page';
import type { Setup } from '../setup';
import { explain } from './api';
import type { Participant } from './participant';

export type Slot = 'audio' | 'video' | 'screen';

export class Sending {
  private capture: Capture | null = null;
  private readonly tracks = new Map<Slot, MediaStreamTrack>();
  /** For whom camera and microphone are being opened. */
  private opening: Participant | null = null;
  /** Tracks that were muted when the connection was lost. */
  private readonly muted = new Set<string>();
  private changing: Promise<void> = Promise.resolve();
  /** Most that is sent, in kbit/s; 0: as the room allows. */
  private limit = 0;

  /** `changed` is called when something else is sent or muted. */
  constructor(private readonly setup: Setup, private readonly participant: () => Participant | null, private readonly changed: () => void) {
    setup.onDevice((kind) => this.run(this.change(kind)));
  }

  /** Mutes or unmutes. */
  toggle(slot: 'audio' | 'video'): void {
    this.run(this.mute(slot));
  }

  toggleScreen(): void {
    this.run(this.tracks.has('screen') ? this.endScreen() : this.shareScreen());
  }

  cap(kbit: number): void {
    this.limit = kbit;
    this.run(this.participant()?.configure({ bitrate: this.bitrateCap }));
  }

  /** What is opened next is muted. */
  startMuted(slots: Slot[]): void {
    for (const slot of slots) this.muted.add(slot);
  }

  track(slot: Slot): MediaStreamTrack | null {
    return this.tracks.get(slot) ?? null;
  }

  isMuted(slot: 'audio' | 'video'): boolean {
    return this.tracks.get(slot)?.enabled === false;
  }

  /** Opens what the form says and sends it, once. */
  async start(): Promise<void> {
    const participant = this.participant();
    if (!participant || this.opening === participant || this.tracks.has('audio') || this.tracks.has('video')) return;
    this.opening = participant;
    let capture: Capture | null = null;
    try {
      capture = await this.setup.capture(() => void this.start());
    } finally {
      if (this.opening === participant) this.opening = null;
    }
    if (!capture || participant !== this.participant()) return stopAll(capture);
    // Nothing to send: a connection is made when there is.
    if (capture.stream.getTracks().length === 0) return;
    this.capture = capture;
    const tracks = capture.stream.getTracks();
    for (const track of tracks) this.take(track.kind as 'audio' | 'video', track, this.muted.has(track.kind));
    try {
      await participant.publish(capture.stream, this.setup.sendOptions, this.setup.videoCodec, this.bitrateCap);
      for (const track of tracks.filter(({ enabled }) => !enabled)) await participant.send(track, false);
    } catch (error) {
      this.stop();
      notice('warning', explain(error));
    }
    this.changed();
  }

  /** The connection was lost: the same, but what is muted stays muted when it is started again. */
  lost(): void {
    const muted = (['audio', 'video'] as const).filter((slot) => this.isMuted(slot));
    this.stop();
    for (const slot of muted) this.muted.add(slot);
  }

  /** Frees camera, microphone and screen; the connection is closed by who made it. */
  stop(): void {
    this.muted.clear();
    stopAll(this.capture);
    this.capture = null;
    for (const track of this.tracks.values()) track.stop();
    this.tracks.clear();
    this.changed();
  }

  private get bitrateCap(): number {
    return this.limit * 1000;
  }

  private async mute(slot: 'audio' | 'video'): Promise<void> {
    const track = this.tracks.get(slot);
    if (!track) return;
    track.enabled = !track.enabled;
    this.changed();
    await this.participant()?.send(track, track.enabled);
  }

  private async shareScreen(): Promise<void> {
    const track = await openScreen();
    const participant = this.participant();
    // The user may well have chosen nothing.
    if (!track || !participant) return track?.stop();
    this.tracks.set('screen', track);
    track.addEventListener('ended', () => this.run(this.endScreen()));
    this.changed();
    try {
      await participant.add(track, 'Screen');
    } catch (error) {
      track.stop();
      this.tracks.delete('screen');
      this.changed();
      throw error;
    }
  }

  private async endScreen(): Promise<void> {
    const track = this.tracks.get('screen');
    if (!track) return;
    this.tracks.delete('screen');
    this.changed();
    await this.participant()?.remove(track);
    track.stop();
  }

  /** One device after the other: each takes the place of the one before. */
  private change(kind: 'audio' | 'video'): Promise<void> {
    const changed = this.changing.then(() => this.changeDevice(kind));
    this.changing = changed.catch(() => {});
    return changed;
  }

  private async changeDevice(kind: 'audio' | 'video'): Promise<void> {
    const old = this.tracks.get(kind);
    const participant = this.participant();
    if (!old || !participant) return;
    const track = await openDevice(kind, this.setup.captureOptions);
    // Left, or lost, while the browser asked.
    if (this.tracks.get(kind) !== old) return track.stop();
    this.take(kind, track, !old.enabled);
    await participant.replace(old, track);
    old.stop();
    this.changed();
  }

  private take(slot: 'audio' | 'video', track: MediaStreamTrack, muted: boolean): void {
    track.enabled = !muted;
    this.tracks.set(slot, track);
    // Not by us: that raises no event.
    track.addEventListener('ended', () => {
      if (this.tracks.get(slot) !== track) return;
      notice('warning', slot === 'audio' ? 'The microphone is gone: nobody hears you.' : 'The camera is gone: nobody sees you.', [
        { label: 'Use another', id: 'another', run: () => { clearNotice(); this.run(this.change(slot)); } },
      ]);
    });
  }

  private run(work: Promise<void> | undefined): void {
    work?.catch((error: unknown) => notice('error', `That did not work: ${explain(error)}`));
  }
}

function stopAll(capture: Capture | null): void {
  capture?.close();
  for (const track of capture?.stream.getTracks() ?? []) track.stop();
}
