// The card of a call: who it is with, what it does, and what can be done with it.
import { Level } from '../level';
import { make, makeButton, makeIcon } from '../make';
import { fillKeypad } from './keypad';
import type { PhoneLine } from './line';

export interface CardEvents {
  /** Does something with a call, and shows what goes wrong. */
  run(work: Promise<unknown>): void;
  name(line: PhoneLine): string;
  /** The other calls, with which this one can be connected. */
  others(line: PhoneLine): PhoneLine[];
  accept(line: PhoneLine, picture: boolean): void;
  hold(line: PhoneLine, held: boolean): void;
  key(line: PhoneLine, key: string): void;
  /** Connects with an address that the user has entered, or with another call. */
  transfer(line: PhoneLine, to: string | PhoneLine): void;
}

export class Card {
  readonly root = make('li', { className: 'card stack', testid: 'call-card' });
  private readonly name = make('strong', { className: 'grow', testid: 'call-name' });
  private readonly doing = make('span', { className: 'soft', testid: 'call-state' });
  private readonly video = document.createElement('video');
  private readonly meter = document.createElement('meter');
  private readonly accept = makeButton('Accept', 'accept', () => this.events.accept(this.line, false));
  private readonly acceptPicture = makeButton('Accept with picture', 'accept-picture', () => this.events.accept(this.line, true));
  private readonly holdButton = makeButton('Hold', 'hold', () => this.events.hold(this.line, !this.line.held));
  private readonly muteButton = makeButton('Mute', 'mute', () => this.line.mute(!this.line.muted));
  private readonly padButton = makeButton('Keys', 'keys', () => this.toggle(this.pad, this.padButton));
  private readonly moveButton = makeButton('Transfer', 'transfer', () => this.toggle(this.transferring, this.moveButton));
  private readonly end = makeButton('Hang up', 'hangup', () => this.events.run(this.line.hangup()));
  private readonly pad = make('div', { className: 'stack' });
  private readonly sentKeys = make('output', { className: 'soft', testid: 'sent-keys' });
  private readonly transferring = make('form', { className: 'stack' });
  private readonly toCalls = make('div', { className: 'row' });
  private level: Level | null = null;

  constructor(private readonly line: PhoneLine, private readonly events: CardEvents) {
    const head = make('div', { className: 'row' });
    head.append(this.name, this.doing);
    this.video.autoplay = this.video.playsInline = this.video.muted = true;
    this.video.setAttribute('aria-label', 'Picture of the other end');
    this.video.dataset['testid'] = 'picture';
    this.meter.max = 1;
    this.meter.setAttribute('aria-label', 'How loud the other end is');
    this.meter.dataset['testid'] = 'call-level';
    this.accept.className = 'primary';
    this.end.className = 'end';
    this.muteButton.className = 'mutes';
    const row = make('div', { className: 'row' });
    row.append(this.accept, this.acceptPicture, this.holdButton, this.muteButton, this.padButton, this.moveButton, this.end);
    for (const [button, icon] of [[this.accept, 'phone'], [this.holdButton, 'pause'], [this.muteButton, 'mic-off'], [this.padButton, 'keys'], [this.moveButton, 'transfer'], [this.end, 'leave']] as const) {
      button.prepend(makeIcon(icon), ' ');
    }
    this.root.append(head, this.video, this.meter, row, this.pad, this.transferring);
    this.fillPad();
    this.fillTransfer();
    this.pad.hidden = this.transferring.hidden = true;
    this.video.hidden = true;
  }

  /** Shows what comes of the other end. */
  track(track: MediaStreamTrack): void {
    if (track.kind === 'video') {
      this.video.srcObject = new MediaStream([track]);
      return;
    }
    this.level?.close();
    this.level = new Level(new MediaStream([track]), this.meter);
  }

  show(): void {
    const { state, held, muted } = this.line;
    this.name.textContent = this.events.name(this.line);
    this.root.dataset['state'] = state;
    const [ringing, talking] = [state === 'ringing', state === 'talking'];
    this.accept.hidden = !ringing;
    this.acceptPicture.hidden = !ringing || !this.line.hasPicture;
    for (const button of [this.holdButton, this.muteButton, this.moveButton]) button.hidden = !talking;
    this.padButton.hidden = !talking && !this.line.early;
    if (!talking) this.transferring.hidden = true;
    this.meter.hidden = !talking && !this.line.early;
    this.video.hidden = !this.line.hasPicture || !talking;
    this.press(this.holdButton, held);
    this.press(this.muteButton, muted);
    if (this.end.lastChild) this.end.lastChild.textContent = ringing ? 'Decline' : 'Hang up';
    this.end.disabled = state === 'ending';
    this.showOthers();
    this.tick();
  }

  /** The time goes on. */
  tick(): void {
    const { state, held, since, progress } = this.line;
    const words = {
      idle: 'Ended',
      calling: progress || 'Calling…',
      ringing: this.line.hasPicture ? 'is calling, with picture' : 'is calling',
      talking: `${held ? 'On hold · ' : ''}${duration(Date.now() - since)}`,
      ending: 'Ending…',
    };
    if (this.doing.textContent !== words[state]) this.doing.textContent = words[state];
  }

  /** The digits that the other end pressed. */
  pressed(digit: string): void {
    const last = this.sentKeys.textContent ?? '';
    this.sentKeys.textContent = `${last.startsWith('They pressed') ? last : 'They pressed '}${digit}`;
    this.pad.hidden = false;
    this.press(this.padButton, true);
  }

  close(): void {
    this.level?.close();
    this.video.srcObject = null;
    this.root.remove();
  }

  private fillPad(): void {
    const keys = make('div', { className: 'keypad' });
    keys.setAttribute('role', 'group');
    keys.setAttribute('aria-label', 'Keys to send');
    fillKeypad(keys, 'key', (key) => {
      const last = this.sentKeys.textContent ?? '';
      this.sentKeys.textContent = `${last.startsWith('You pressed') ? last : 'You pressed '}${key}`;
      this.events.key(this.line, key);
    });
    this.pad.append(this.sentKeys, keys);
  }

  private fillTransfer(): void {
    const field = make('div', { className: 'text-form' });
    const to = make('input', { testid: 'transfer-to' });
    Object.assign(to, { placeholder: 'Number or address', autocomplete: 'off', ariaLabel: 'Transfer to', required: true, maxLength: 255 });
    field.append(to, make('button', { text: 'Transfer', testid: 'transfer-now' }));
    this.transferring.append(field, this.toCalls);
    this.transferring.addEventListener('submit', (event) => {
      event.preventDefault();
      this.events.transfer(this.line, to.value);
    });
  }

  private showOthers(): void {
    this.toCalls.replaceChildren(
      ...this.events.others(this.line).map((other) =>
        makeButton(`Connect with ${this.events.name(other)}`, 'transfer-call', () => this.events.transfer(this.line, other)),
      ),
    );
  }

  private toggle(part: HTMLElement, button: HTMLButtonElement): void {
    part.hidden = !part.hidden;
    this.press(button, !part.hidden);
    if (!part.hidden) part.querySelector('input')?.focus();
  }

  private press(button: HTMLButtonElement, pressed: boolean): void {
    button.setAttribute('aria-pressed', String(pressed));
  }
}

/** A time as `1:05`. */
export function duration(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  const rest = String(seconds % 60).padStart(2, '0');
  return hours > 0 ? `${hours}:${String(minutes).padStart(2, '0')}:${rest}` : `${minutes}:${rest}`;
}
