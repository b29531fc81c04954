// Who is in the room, whom one may whisper to, and what a moderator may do.
import { make, makeButton } from '../make';
import { choose, element } from '../page';
import type { Member } from './api';

export class Members {
  private readonly root = element('people');
  private readonly to = element<HTMLSelectElement>('to');
  private members = new Map<string, Member>();
  private own = '';
  private moderating = false;
  private shown = '';

  constructor(private readonly kick: (username: string) => void) {}

  /** Those who are there from the start, and oneself. */
  enter(own: string, others: Member[]): void {
    this.own = own;
    this.moderating = false;
    this.members = new Map([...others, { username: own }].map((member) => [member.username, member]));
    this.show();
  }

  add(member: Member): void {
    this.members.set(member.username, member);
    this.show();
  }

  remove(username: string): void {
    this.members.delete(username);
    this.show();
  }

  moderate(): void {
    this.moderating = true;
    this.show();
  }

  /** Whom the next message is for; empty: everybody. */
  get addressee(): string {
    return this.to.value;
  }

  nameOf(username: string): string {
    return this.members.get(username)?.display || username;
  }

  private show(): void {
    const members = [...this.members.values()];
    const text = JSON.stringify([members, this.moderating]);
    // Building the lists anew would take the focus from their buttons.
    if (text === this.shown) return;
    this.shown = text;
    this.root.replaceChildren(...members.map((member) => this.row(member)));
    element('people-count').textContent = String(members.length);
    const chosen = this.to.value;
    const others = members.filter(({ username }) => username !== this.own);
    const option = (value: string, text: string) => Object.assign(make('option', { text }), { value });
    this.to.replaceChildren(option('', 'Everybody'), ...others.map(({ username }) => option(username, this.nameOf(username))));
    choose(this.to, chosen);
  }

  private row({ username }: Member): HTMLElement {
    const own = username === this.own;
    const root = make('li', { testid: `person-${username}` });
    const name = this.nameOf(username);
    root.append(make('span', { className: 'grow', text: own ? `${name} (you)` : name }));
    if (own) return root;
    const whisper = makeButton('Whisper', 'whisper', () => {
      this.to.value = username;
      element('text-input').focus();
    });
    whisper.setAttribute('aria-label', `Whisper to ${name}`);
    root.append(whisper);
    if (!this.moderating) return root;
    const kick = makeButton('Kick', 'kick', () => this.kick(username));
    kick.className = 'danger';
    kick.setAttribute('aria-label', `Kick ${name}`);
    root.append(kick);
    return root;
  }
}
