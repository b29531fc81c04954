// An audio room that somebody is in: what they send and hear, who is there, and moderation.
import type { Answer, Id } from '../answer';
import { CaptureError } from '../capture';
import { Closed, Exchange } from '../exchange';
import type { Ending } from '../ending';
import { badges, type Standing } from '../listening';
import { clearNotice, element, endNotice, notice } from '../page';
import { Rejoin } from '../rejoin';
import { Sounds } from '../sounds';
import type { Session } from '../session';
import { AUDIO_BRIDGE, explain, type Participant } from './api';
import { Moderation } from './moderation';
import { People } from './people';
import { Sending } from './sending';

export interface Entry {
  room: Id;
  display: string;
  pin: string;
  group: string;
}

/** What the user has chosen in a room, which stays when the connection is made anew. */
interface Choice {
  muted: boolean;
  paused: boolean;
  volume: string;
  position: string;
}

export interface RoomEvents {
  /** The user is out of the room without having asked for it. */
  left(why: string): void;
  /** The connection was lost, and the user wants it back. */
  again(): void;
}

export class Room {
  private exchange: Exchange | null = null;
  private session: Session | null = null;
  private entry: Entry | null = null;
  private secret = '';
  private choice: Choice | null = null;
  private readonly rejoin = new Rejoin();
  /** Counts joins and departures: what began before the last one is stale. */
  private turn = 0;
  private own: Id = 0;
  private muted = false;
  private paused = false;
  private readonly muteButton = element<HTMLButtonElement>('mute');
  private readonly pauseButton = element<HTMLButtonElement>('pause');
  private readonly position = element<HTMLInputElement>('position');
  private readonly volume = element<HTMLInputElement>('volume');
  private readonly sounds = new Sounds(element('sounds'), () => {
    notice('info', 'The browser waits for you before it plays sound.', [{ label: 'Play sound', id: 'play-sound', run: () => { clearNotice(); this.sounds.resume(); } }]);
  });
  private readonly people = new People(element('people'), {
    mute: (id, mute) => this.run(this.moderation.manage(mute ? 'mute' : 'unmute', { id })),
    kick: (id) => this.run(this.moderation.manage('kick', { id })),
  });
  private readonly moderation = new Moderation({
    ask: (body) => this.ask(body),
    group: () => this.entry?.group ?? '',
    begun: () => this.people.moderate(),
    failed: (error) => this.failed(error),
  });

  constructor(private readonly sending: Sending, private readonly events: RoomEvents) {
    this.muteButton.addEventListener('click', () => this.run(this.mute(!this.muted)));
    this.pauseButton.addEventListener('click', () => this.run(this.pause(!this.paused)));
    this.position.addEventListener('change', () => this.run(this.place(Number(this.position.value))));
    this.volume.addEventListener('change', () => this.run(this.configure({ volume: Number(this.volume.value) })));
    this.volume.addEventListener('input', () => this.showVolume());
  }

  get inside(): boolean {
    return this.exchange !== null;
  }

  /** Joins and connects. `secret` is that of a room that was made here. */
  async enter(session: Session, entry: Entry, secret: string): Promise<void> {
    this.rejoin.end();
    await this.join(session, entry, secret);
  }

  private async join(session: Session, entry: Entry, secret: string): Promise<void> {
    this.drop();
    const turn = (this.turn += 1);
    const { choice } = this;
    this.session = session;
    this.entry = entry;
    this.secret = secret;
    const exchange = await Exchange.attach(session, AUDIO_BRIDGE, {
      message: (data) => this.exchange === exchange && this.happened(data),
      connected: (up, ending) => this.exchange === exchange && this.connected(up, ending),
      restart: async ({ call }) => exchange.offer({ request: 'configure' }, await call.restartOffer()),
      track: (track) => this.sounds.play('mix', track),
    });
    try {
      await this.sending.open();
      const { room, display, pin, group } = entry;
      const muted = !this.sending.track || choice?.muted === true;
      const { data } = await exchange.request({ request: 'join', room, display, muted, ...(pin && { pin }), ...(group && { group }) });
      if (turn !== this.turn) throw new Closed();
      this.own = data['id'] as Id;
      this.people.enter({ id: this.own, display, setup: false, muted }, data['participants'] as Participant[]);
      this.people.update({ id: this.own, listens: !this.sending.track });
      this.exchange = exchange;
      const offer = await exchange.call.soundOffer(this.sending.track);
      const answer = await exchange.request({ request: 'configure', muted }, offer);
      if (answer.jsep) await exchange.call.accept(answer.jsep);
      this.show(muted, /\bstereo=1/.test(answer.jsep?.sdp ?? ''));
      this.choice = null;
      if (choice) await this.choose(choice);
      if (secret) this.run(this.moderation.begin(secret));
    } catch (error) {
      exchange.close();
      if (turn === this.turn) this.drop();
      throw error;
    }
  }

  /** Leaves, and closes the connection. */
  async leave(): Promise<void> {
    const { exchange } = this;
    this.exchange = null;
    this.turn += 1;
    this.rejoin.end();
    try {
      await exchange?.request({ request: 'leave' });
    } finally {
      exchange?.close();
      this.close();
    }
  }

  /** Gives the connection up without a word. */
  close(): void {
    this.choice = null;
    this.turn += 1;
    this.rejoin.end();
    this.drop();
  }

  /** The same, but the user comes back: what they have chosen stays. */
  suspend(): void {
    this.rejoin.end();
    this.keep();
  }

  private keep(): void {
    const { muted, paused, volume, position } = this;
    // A connection that fails before it is up leaves the choice of the one before.
    if (this.exchange) this.choice = { muted, paused, volume: volume.value, position: position.value };
    this.drop();
  }

  /** Shows who else hears the room. */
  stands(standing: Standing): void {
    element('standing').replaceChildren(...badges(standing));
  }

  private drop(): void {
    this.exchange?.close();
    this.exchange = null;
    this.sending.close();
    this.sounds.keep(new Set());
    this.people.clear();
    this.moderation.end();
  }

  /** Sends what the user has chosen instead. */
  async sendOther(): Promise<void> {
    const { exchange } = this;
    if (!exchange) return;
    try {
      await this.sending.open();
      const sender = exchange.call.peerConnection?.getTransceivers()[0];
      if (!sender) return;
      // Who came to listen has offered to receive only.
      if (this.sending.track && sender.direction === 'recvonly') return this.events.again();
      await sender.sender.replaceTrack(this.sending.track);
      this.people.update({ id: this.own, listens: !this.sending.track });
      await this.mute(!this.sending.track);
      clearNotice();
    } catch (error) {
      this.failed(error);
    }
  }

  /** Shows a room after joining. */
  private show(muted: boolean, spatial: boolean): void {
    this.paused = false;
    this.press(this.pauseButton, false);
    this.showMuted(muted);
    element('position-field').hidden = !spatial;
    this.position.value = '50';
    this.volume.value = '100';
    this.showVolume();
    if (spatial) this.people.update({ id: this.own, spatial_position: 50 });
  }

  /** Chooses again what was chosen before. */
  private async choose({ paused, volume, position }: Choice): Promise<void> {
    const spatial = !element('position-field').hidden;
    if (volume !== '100') await this.configure({ volume: Number((this.volume.value = volume)) });
    if (spatial && position !== '50') await this.place(Number((this.position.value = position)));
    if (paused) await this.pause(true);
    this.showVolume();
  }

  private happened(data: Answer): void {
    const room = this.entry?.room;
    if (data['room'] !== room || AUDIO_BRIDGE.isAnswer(data)) return;
    const { id } = data;
    switch (data['audiobridge']) {
      case 'destroyed':
        return this.out('The room was closed.');
      case 'talking':
      case 'stopped-talking':
        return this.people.updateKnown({ id, talking: data['audiobridge'] === 'talking' });
      case 'announcement-started':
        return this.moderation.plays(String(data['file_id']));
      case 'announcement-stopped':
        return this.moderation.stopped(String(data['file_id']));
    }
    for (const person of (data['participants'] ?? []) as Participant[]) this.changed(person);
    if (data['leaving'] !== undefined) this.people.remove(data['leaving']);
    if (data['kicked_all'] !== undefined || data['kicked'] === this.own) return this.out('A moderator has removed you from the room.');
    if (data['kicked'] !== undefined) this.people.remove(data['kicked']);
    if (data['suspended'] !== undefined) this.suspended(data['suspended'], true);
    if (data['resumed'] !== undefined) this.suspended(data['resumed'], false);
    if (typeof data['muted'] === 'boolean') this.roomMuted(data['muted']);
  }

  /** Participants are notified about themselves only if somebody else acted. */
  private changed(person: Participant): void {
    if (person.id === this.own && person.muted !== this.muted) {
      this.showMuted(person.muted);
      notice('info', person.muted ? 'A moderator has muted you. You can unmute yourself.' : 'A moderator has unmuted you: the others hear you.');
    }
    this.people.update(person.id === this.own ? { id: person.id, muted: person.muted } : person);
  }

  private suspended(id: Id, suspended: boolean): void {
    this.people.updateKnown({ id, suspended });
    if (id !== this.own || suspended === this.paused) return;
    this.paused = suspended;
    this.press(this.pauseButton, suspended);
    notice('info', suspended ? 'A moderator has paused you: you hear nobody, and nobody hears you.' : 'You are back.');
  }

  private roomMuted(muted: boolean): void {
    this.moderation.roomMuted(muted);
    notice('info', muted ? 'A moderator has muted the room: nobody is heard, but for the hosts.' : 'The room is no longer muted.');
  }

  private connected(up: boolean, ending?: Ending): void {
    if (up) {
      this.rejoin.up();
      return this.people.update({ id: this.own, setup: true });
    }
    this.people.update({ id: this.own, setup: false, talking: false });
    const { exchange, session, entry, secret } = this;
    if (!session || !entry || !exchange) return;
    const again = { label: 'Connect again', id: 'again', run: () => this.events.again() };
    const rejoin = (): Promise<void> => {
      this.keep();
      return this.join(session, entry, secret);
    };
    void this.rejoin.start(rejoin, (error) => {
      if (!this.exchange) return this.out(explain(error));
      endNotice('You hear nobody, and nobody hears you.', ending ?? { reason: 'no reason given' }, again);
    });
  }

  private async mute(muted: boolean): Promise<void> {
    if (!muted && !this.sending.track) throw new Error('You only listen. Choose a microphone to talk.');
    this.showMuted(muted);
    await this.configure({ muted });
  }

  private async pause(paused: boolean): Promise<void> {
    await this.ask({ request: paused ? 'suspend' : 'resume', id: this.own });
    this.paused = paused;
    this.press(this.pauseButton, paused);
    this.people.update({ id: this.own, suspended: paused });
  }

  private async place(position: number): Promise<void> {
    await this.configure({ spatial_position: position });
    this.people.update({ id: this.own, spatial_position: position });
  }

  private async configure(settings: Answer): Promise<void> {
    await this.exchange?.request({ request: 'configure', ...settings });
  }

  /** Asks something about the room that is answered at once. */
  private async ask(body: Answer): Promise<Answer> {
    if (!this.exchange) throw new Error('You are not in a room.');
    return this.exchange.ask({ room: this.entry?.room, ...body });
  }

  private showMuted(muted: boolean): void {
    this.muted = muted;
    this.sending.mute(muted);
    this.press(this.muteButton, muted);
    this.people.update({ id: this.own, muted });
  }

  private showVolume(): void {
    element('volume-value').textContent = `${this.volume.value} %`;
  }

  private press(button: HTMLButtonElement, pressed: boolean): void {
    button.setAttribute('aria-pressed', String(pressed));
  }

  private out(why: string): void {
    this.close();
    this.events.left(why);
  }

  private run(work: Promise<unknown>): void {
    work.catch((error: unknown) => this.failed(error));
  }

  /** Shows an error, unless the user has left the room and knows. */
  private failed(error: unknown): void {
    if (this.exchange) notice(error instanceof CaptureError ? 'warning' : 'error', explain(error));
  }
}
