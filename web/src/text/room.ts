// The room that the user is in: messages both ways, and moderation.
import type { Id } from '../answer';
import { clearNotice, element, notice } from '../page';
import { Rejoin } from '../rejoin';
import { Closed } from '../exchange';
import type { Session } from '../session';
import { explain, type Member, type TextEvent } from './api';
import { Channel } from './channel';
import { Conversation } from './conversation';
import { Members } from './members';

export interface Entry {
  room: Id;
  username: string;
  pin: string;
}

export class Room {
  private readonly conversation = new Conversation();
  private readonly members = new Members((username) => void this.manage('kick', { username }));
  private readonly input = element<HTMLInputElement>('text-input');
  private channel: Channel | null = null;
  private room: Id = 0;
  private own = '';
  private secret = '';
  private session: Session | null = null;
  private entry: Entry | null = null;
  /** The user comes back: the conversation stays. */
  private returning = false;
  private readonly rejoin = new Rejoin();
  /** Counts joins and departures: what began before the last one is stale. */
  private turn = 0;

  /** `left` is called when the user is out of the room without having asked for it. */
  constructor(private readonly left: (why: string) => void) {
    this.onSubmit('text-form', () => this.write());
    this.onSubmit('moderate-form', () => this.moderate(element<HTMLInputElement>('secret').value));
    this.onSubmit('announce-form', () => this.announce());
    element('close-room').addEventListener('click', () => void this.manage('destroy', {}));
  }

  /** Connects and joins. `secret` is that of a room that was made here. */
  async enter(session: Session, entry: Entry, secret: string): Promise<void> {
    this.rejoin.end();
    await this.join(session, entry, secret);
  }

  private async join(session: Session, entry: Entry, secret: string): Promise<void> {
    const { room, username, pin } = entry;
    const { returning } = this;
    const turn = (this.turn += 1);
    this.drop();
    if (!returning) this.conversation.clear();
    this.session = session;
    this.entry = entry;
    this.room = room;
    this.own = username;
    this.secret = secret;
    let early: TextEvent[] | null = [];
    const channel: Channel = await Channel.open(session, {
      // The history and the own join arrive before the answer.
      event: (event) => (early ? early.push(event) : this.happened(event)),
      lost: (reason) => this.channel === channel && this.reconnect(reason),
    });
    try {
      const { participants } = await channel.request('join', { room, username, ...(pin && { pin }) });
      if (turn !== this.turn) throw new Closed();
      this.channel = channel;
      this.members.enter(username, participants as Member[]);
      element('moderation').hidden = true;
      this.returning = false;
      this.rejoin.up();
      // Who comes back has seen most of the history.
      for (const event of early) if (!returning || !this.conversation.has(event)) this.happened(event);
      early = null;
      // A user who was admitted stays, even if the secret changes.
      if (secret) this.run(this.moderate(secret));
    } catch (error) {
      channel.close();
      throw error;
    }
  }

  /** Leaves, and closes the connection. */
  async leave(): Promise<void> {
    const { channel, room } = this;
    this.channel = null;
    this.returning = false;
    this.turn += 1;
    this.rejoin.end();
    element<HTMLInputElement>('secret').value = '';
    try {
      await channel?.request('leave', { room });
    } finally {
      channel?.close();
    }
  }

  /** Gives the connection up without a word. */
  close(): void {
    this.returning = false;
    this.turn += 1;
    this.rejoin.end();
    this.drop();
  }

  /** The same, but the user comes back. */
  suspend(): void {
    this.rejoin.end();
    this.returning = true;
    this.drop();
  }

  private drop(): void {
    this.channel?.close();
    this.channel = null;
    element<HTMLInputElement>('secret').value = '';
  }

  /** The connection is gone, but neither the server nor the room is: comes back without asking. */
  private reconnect(reason: string): void {
    const { session, entry, secret } = this;
    if (!session || !entry) return;
    this.returning = true;
    this.drop();
    void this.rejoin.start(
      () => this.join(session, entry, secret),
      (error) => this.gaveUp(explain(error) || reason),
    );
  }

  private gaveUp(why: string): void {
    this.close();
    this.left(why);
  }

  private happened(event: TextEvent): void {
    if (event.room !== this.room) return;
    const { username = '' } = event;
    switch (event.textroom) {
      case 'message':
        return this.conversation.said(event, event.from === this.own);
      case 'announcement':
        return this.conversation.announced(event);
      case 'join':
        this.members.add({ username, display: event.display });
        return this.conversation.remark(username === this.own ? 'You joined.' : `${this.members.nameOf(username)} joined.`);
      case 'leave':
        return this.gone(username, 'left');
      case 'kicked':
        if (username === this.own) return this.out('A moderator has removed you from the room.');
        return this.gone(username, 'was removed');
      case 'destroyed':
        return this.out('The room was closed.');
    }
  }

  private gone(username: string, how: string): void {
    if (username === this.own) return;
    this.conversation.remark(`${this.members.nameOf(username)} ${how}.`);
    this.members.remove(username);
  }

  private async write(): Promise<void> {
    const text = this.input.value.trim();
    const to = this.members.addressee;
    if (!text) return;
    const { sent } = await this.request('message', { text, ...(to && { to }) });
    if (to && !sent?.[to]) return notice('warning', `${to} is not in the room any more.`);
    if (to) this.conversation.whispered(this.members.nameOf(to), text);
    // The user may have written on meanwhile.
    if (this.input.value.trim() === text) this.input.value = '';
    clearNotice();
  }

  /** Shows what a moderator may do, if the secret is right: a change of the tokens that changes nothing asks for it. */
  private async moderate(secret: string): Promise<void> {
    await this.request('allowed', { action: 'add', allowed: [], ...(secret && { secret }) });
    this.secret = secret;
    this.members.moderate();
    element('moderation').hidden = false;
    clearNotice();
  }

  private async announce(): Promise<void> {
    const field = element<HTMLInputElement>('announcement');
    const text = field.value.trim();
    if (!text) return;
    if (await this.manage('announcement', { text })) field.value = '';
  }

  /** Sends a request that needs the secret; returns false and shows why if it was refused. */
  private async manage(name: string, members: Record<string, unknown>): Promise<boolean> {
    try {
      await this.request(name, { ...members, ...(this.secret && { secret: this.secret }) });
      return true;
    } catch (error) {
      this.failed(error);
      return false;
    }
  }

  private request(name: string, members: Record<string, unknown>): Promise<Record<string, any>> {
    if (!this.channel) return Promise.reject(new Error('You are not in a room.'));
    return this.channel.request(name, { room: this.room, ...members });
  }

  private out(why: string): void {
    if (this.channel) this.gaveUp(why);
  }

  private onSubmit(form: string, run: () => Promise<void>): void {
    element<HTMLFormElement>(form).addEventListener('submit', (event) => {
      event.preventDefault();
      this.run(run());
    });
  }

  private run(work: Promise<void>): void {
    work.catch((error: unknown) => this.failed(error));
  }

  /** Shows an error, unless the user has left the room and knows. */
  private failed(error: unknown): void {
    if (this.channel) notice('error', explain(error));
  }
}
