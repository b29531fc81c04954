// The phone: an account with lines, of which one is always free.
import type { Session } from '../session';
import { type Account, type CallEnd, identity, type Line, registration, type Result, type Waiting } from './api';
import { PhoneLine, type Voice } from './line';

/** How many calls a page has at once. */
const MOST = 6;

export interface PhoneEvents {
  /** A line's call is another, does something else, or is over. */
  changed(line: PhoneLine): void;
  ended(line: PhoneLine, peer: string, how: CallEnd): void;
  failed(error: unknown): void;
  track(line: PhoneLine, track: MediaStreamTrack): void;
  registered(resumable: Waiting[]): void;
  registrationFailed(code: number, reason: string): void;
  unregistered(): void;
  whereabouts(lines: Line[]): void;
  missed(caller: string, displayname: string): void;
  message(result: Result): void;
  sent(callId: string): void;
  delivered(callId: string, code: number, reason: string): void;
  pressed(line: PhoneLine, digit: string): void;
  /** The other end of a call wants this page to call somebody else. */
  transfer(line: PhoneLine, refer: number, to: string, by: string): void;
  /** The outcome of a requested transfer: the status of the other end's new call. */
  transferred(line: PhoneLine, status: number, reason: string): void;
}

export class Phone {
  readonly lines: PhoneLine[] = [];
  private masterId = 0;
  private adding = false;
  private isClosed = false;

  private constructor(private readonly session: Session, readonly account: Account, private readonly voice: Voice, private readonly events: PhoneEvents) {}

  /** Registers an account, or declares it a guest; events report the outcome. */
  static async start(session: Session, account: Account, voice: Voice, events: PhoneEvents): Promise<Phone> {
    const phone = new Phone(session, account, voice, events);
    const master = await phone.add();
    await master.send(registration(account));
    return phone;
  }

  get calls(): PhoneLine[] {
    return this.lines.filter(({ state }) => state !== 'idle');
  }

  get hasFree(): boolean {
    return this.lines.some(({ state }) => state === 'idle');
  }

  /** A line without a call; an error if all have one. */
  get free(): PhoneLine {
    const line = this.lines.find(({ state }) => state === 'idle');
    if (!line) throw new Error('All lines have a call. End one of them first.');
    return line;
  }

  /** Calls somebody; who talks meanwhile is held. */
  async dial(uri: string, picture: boolean, refer?: number): Promise<PhoneLine> {
    const line = this.free;
    await this.holdOthers(line);
    await line.dial(uri, { picture, srtp: this.account.srtp, refer });
    return line;
  }

  async accept(line: PhoneLine, picture: boolean): Promise<void> {
    await this.holdOthers(line);
    await line.accept(picture);
  }

  async take(callId: string, peer: string): Promise<void> {
    const line = this.free;
    await this.holdOthers(line);
    await line.take(callId, peer);
  }

  async resume(line: PhoneLine): Promise<void> {
    await this.holdOthers(line);
    await line.hold(false);
  }

  /** Sends a message to an address, or to the other end of a call. */
  async write(to: string | null, content: string): Promise<void> {
    const talking = this.calls.find(({ state }) => state === 'talking');
    if (!to && !talking) throw new Error('To whom? There is no call.');
    await (to ? this.lines[0] : talking)?.send({ request: 'message', content, ...(to && { uri: to }) });
  }

  async unregister(): Promise<void> {
    for (const line of this.calls) await line.hangup();
    // A guest has nothing to take back.
    if (this.account.guest) this.close();
    else await this.lines[0]?.send({ request: 'unregister' });
  }

  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    for (const line of this.lines.reverse()) line.close();
    this.events.unregistered();
  }

  private async holdOthers(than: PhoneLine): Promise<void> {
    for (const line of this.calls) if (line !== than) await line.hold(true);
  }

  private async add(): Promise<PhoneLine> {
    // What ends with the phone is no news of it.
    const open = (tell: () => void): void => void (this.isClosed || tell());
    const line = await PhoneLine.open(this.session, this.voice, {
      changed: (line) =>
        open(() => {
          this.events.changed(line);
          void this.keepOneFree();
        }),
      ended: (line, peer, how) => open(() => this.events.ended(line, peer, how)),
      failed: (_, error) => open(() => this.events.failed(error)),
      said: (line, result) => open(() => this.said(line, result)),
      track: (line, track) => open(() => this.events.track(line, track)),
    });
    this.lines.push(line);
    return line;
  }

  /** Adds a line to the account when all have a call; two are there from the start. */
  private async keepOneFree(): Promise<void> {
    const [free, all] = [this.lines.length - this.calls.length, this.lines.length];
    if (!this.masterId || this.adding || this.isClosed || all >= MOST || (free > 0 && all > 1)) return;
    this.adding = true;
    try {
      const line = await this.add();
      await line.send({ request: 'register', type: 'helper', username: identity(this.account), master_id: this.masterId, lines: true, name: this.account.page });
    } catch (error) {
      this.events.failed(error);
    } finally {
      this.adding = false;
    }
  }

  private said(line: PhoneLine, result: Result): void {
    const text = (key: string) => String(result[key] ?? '');
    const isMaster = line === this.lines[0];
    switch (result['event']) {
      case 'registered':
        if (!isMaster) break;
        if (result['resumable'] || !this.masterId) this.events.registered((result['resumable'] ?? []) as Waiting[]);
        this.masterId = Number(result['master_id']);
        void this.keepOneFree();
        break;
      case 'registration_failed':
        this.masterId = 0;
        this.events.registrationFailed(Number(result['code']), text('reason'));
        break;
      case 'unregistered':
        this.close();
        break;
      case 'lines':
        if (isMaster) this.events.whereabouts(result['lines'] as Line[]);
        break;
      case 'missed_call':
        this.events.missed(text('caller'), text('displayname'));
        break;
      case 'message':
        this.events.message(result);
        break;
      case 'messagesent':
        this.events.sent(text('call_id'));
        break;
      case 'messagedelivery':
        this.events.delivered(text('call_id'), Number(result['code']), text('reason'));
        break;
      case 'dtmf':
        this.events.pressed(line, text('signal'));
        break;
      case 'info': {
        const digit = /^Signal\s*=\s*([0-9A-D*#])/im.exec(text('content'))?.[1];
        if (digit && /dtmf-relay/i.test(text('type'))) this.events.pressed(line, digit);
        break;
      }
      case 'transfer':
        this.events.transfer(line, Number(result['refer_id']), text('refer_to'), text('referred_by'));
        break;
      case 'notify': {
        const status = /^SIP\/2\.0 (\d{3}) ?(.*)/.exec(text('content').trim());
        if (result['notify'] === 'refer' && status) this.events.transferred(line, Number(status[1]), status[2]?.trim() ?? '');
        break;
      }
    }
  }
}
