// Who is in an audio room, who talks, and what a moderator may do about them.
import type { Id } from '../answer';
import { make, makeButton } from '../make';
import { element } from '../page';
import { initials } from '../units';
import type { Participant } from './api';

export interface PeopleActions {
  mute(id: Id, mute: boolean): void;
  kick(id: Id): void;
}

/** A participant, of whom the page knows whether they can send at all if they are its user. */
type Person = Participant & { listens?: boolean };

/** Somebody in the list. Its elements stay, so that a change takes the focus from no button. */
interface Row {
  person: Person;
  root: HTMLElement;
  face: HTMLElement;
  name: HTMLElement;
  doing: HTMLElement;
  moderation: HTMLElement;
  mute: HTMLButtonElement;
}

export class People {
  private readonly rows = new Map<string, Row>();
  private own: Id = 0;
  private moderating = false;

  constructor(private readonly root: HTMLElement, private readonly actions: PeopleActions) {}

  /** Begins anew: these, of whom one is the user. */
  enter(own: Participant, others: Participant[]): void {
    this.clear();
    this.own = own.id;
    for (const person of [own, ...others]) this.update(person);
  }

  clear(): void {
    this.rows.clear();
    this.root.replaceChildren();
    this.moderating = false;
    this.count();
  }

  /** Somebody comes, or is different now. */
  update(change: Pick<Person, 'id'> & Partial<Person>): void {
    const row = this.rows.get(String(change.id)) ?? this.add(change.id);
    row.person = { ...row.person, ...change };
    this.show(row);
  }

  /** The same of somebody who may have left. */
  updateKnown(change: Pick<Participant, 'id'> & Partial<Participant>): void {
    if (this.rows.has(String(change.id))) this.update(change);
  }

  remove(id: Id): void {
    this.rows.get(String(id))?.root.remove();
    this.rows.delete(String(id));
    this.count();
  }

  moderate(): void {
    this.moderating = true;
    for (const row of this.rows.values()) this.show(row);
  }

  nameOf(id: Id): string {
    return this.rows.get(String(id))?.person.display || `Guest ${id}`;
  }

  private add(id: Id): Row {
    const person: Participant = { id, setup: false, muted: false };
    const root = make('li');
    const face = make('span', { className: 'initials' });
    face.setAttribute('aria-hidden', 'true');
    const name = make('strong');
    const doing = make('span', { className: 'soft', testid: 'doing' });
    const moderation = make('div', { className: 'row' });
    const mute = makeButton('Mute', 'moderate-mute', () => this.actions.mute(id, !row.person.muted));
    const kick = makeButton('Kick', 'kick', () => this.actions.kick(id));
    kick.className = 'danger';
    moderation.append(mute, kick);
    root.append(face, name, doing, moderation);
    const row: Row = { person, root, face, name, doing, moderation, mute };
    this.rows.set(String(id), row);
    this.root.append(root);
    this.count();
    return row;
  }

  private show({ person, root, face, name, doing, moderation, mute }: Row): void {
    const called = this.nameOf(person.id);
    const own = person.id === this.own;
    root.dataset['testid'] = `person-${called}`;
    root.classList.toggle('talking', !!person.talking && !person.muted);
    face.textContent = initials(called);
    name.textContent = own ? `${called} (you)` : called;
    const state = words(person);
    doing.textContent = state;
    root.classList.toggle('muted', state.startsWith('muted'));
    moderation.hidden = own || !this.moderating;
    mute.textContent = person.muted ? 'Unmute' : 'Mute';
    mute.setAttribute('aria-label', `${mute.textContent} ${called}`);
    moderation.lastElementChild?.setAttribute('aria-label', `Kick ${called}`);
  }

  private count(): void {
    element('people-count').textContent = String(this.rows.size);
  }
}

/** The state of a participant. */
function words({ setup, muted, talking, suspended, spatial_position, listens }: Person): string {
  const state = suspended ? 'paused' : !setup ? 'connecting' : listens ? 'listening' : muted ? 'muted' : talking ? 'talking' : 'silent';
  return spatial_position === undefined ? state : `${state} · ${place(spatial_position)}`;
}

/** Where somebody is heard. */
function place(position: number): string {
  if (position === 50) return 'in the middle';
  return position < 50 ? `${50 - position} to the left` : `${position - 50} to the right`;
}
