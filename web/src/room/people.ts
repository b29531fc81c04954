// Who is in the room, and what a moderator may do about them.
import type { Feed, FeedStream, Id } from './api';
import { make, makeButton } from '../make';
import { live } from './subscription';

/** Somebody in the room. */
export interface Person extends Feed {
  name: string;
  /** Own ones are listed, but not moderated. */
  own: boolean;
}

export interface PeopleActions {
  mute(id: Id, stream: FeedStream, mute: boolean): void;
  kick(id: Id): void;
}

export class People {
  private shown = '';

  constructor(private readonly root: HTMLElement, private readonly actions: PeopleActions) {}

  show(people: Person[], moderating: boolean): void {
    // Building the list anew would take the focus from its buttons.
    const text = JSON.stringify([people, moderating]);
    if (text === this.shown) return;
    this.shown = text;
    this.root.replaceChildren(...people.map((person) => this.row(person, moderating)));
  }

  private row(person: Person, moderating: boolean): HTMLElement {
    const root = make('li', { testid: `person-${person.name}` });
    const words = make('div', { className: 'grow' });
    words.append(make('strong', { text: person.own ? `${person.name} (you)` : person.name }), make('br'), make('span', { className: 'soft', text: doing(person), testid: 'doing' }));
    root.append(words);
    if (moderating && !person.own) root.append(this.moderation(person));
    return root;
  }

  private moderation(person: Person): HTMLElement {
    const row = make('div', { className: 'row' });
    const streams = [...live(person, 'audio'), ...live(person, 'video')];
    for (const stream of streams) {
      const muted = stream.moderated === true;
      const what = stream.description || (stream.type === 'audio' ? 'sound' : 'picture');
      const button = makeButton(`${muted ? 'Allow' : 'Mute'} ${what}`, `moderate-${stream.type}`, () => this.actions.mute(person.id, stream, !muted));
      button.setAttribute('aria-pressed', String(muted));
      button.setAttribute('aria-label', `${muted ? 'Allow' : 'Mute'} ${what} of ${person.name}`);
      row.append(button);
    }
    const kick = makeButton('Kick', 'kick', () => this.actions.kick(person.id));
    kick.className = 'danger';
    kick.setAttribute('aria-label', `Kick ${person.name}`);
    row.append(kick);
    return row;
  }
}

function doing(person: Person): string {
  const streams = person.streams ?? [];
  const kinds = [
    live(person, 'audio').length > 0 && 'sound',
    ...live(person, 'video').map((stream) => stream.description?.toLowerCase() || 'picture'),
  ].filter(Boolean);
  if (kinds.length === 0) return 'watching';
  const muted = streams.some((stream) => stream.moderated && !stream.disabled);
  return `sends ${kinds.join(', ')}${muted ? ' · muted by a moderator' : ''}`;
}
