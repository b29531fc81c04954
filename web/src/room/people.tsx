// Who is in the room, what they do, and what a moderator may do about them.
import { Icon } from '../icon';
import type { Feed, FeedStream, Id } from './api';
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

export function People({ people, moderating, actions }: { people: Person[]; moderating: boolean; actions: PeopleActions }) {
  return (
    <ul class="users people" data-testid="people">
      {people.map((person) => (
        <li key={String(person.id)} data-testid={`person-${person.name}`}>
          <div class="row">
            <div class="grow">
              <strong>{person.own ? `${person.name} (you)` : person.name}</strong>
              <br />
              <span class="soft" data-testid="doing">{doing(person)}</span>
            </div>
            {isMuted(person) && <Icon name="mic-off" label="muted" />}
            {person.metadata?.hand && <Icon name="hand" label="hand raised" />}
          </div>
          {moderating && !person.own && <Moderation person={person} actions={actions} />}
        </li>
      ))}
    </ul>
  );
}

function Moderation({ person, actions }: { person: Person; actions: PeopleActions }) {
  const streams = [...live(person, 'audio'), ...live(person, 'video')];
  return (
    <div class="row">
      {streams.map((stream) => {
        const muted = stream.moderated === true;
        const what = stream.description?.toLowerCase() || (stream.type === 'audio' ? 'sound' : 'picture');
        const label = `${muted ? 'Allow' : 'Mute'} ${what}`;
        return (
          <button
            type="button"
            key={stream.mid}
            data-testid={`moderate-${stream.type}`}
            aria-pressed={muted}
            aria-label={`${label} of ${person.name}`}
            onClick={() => actions.mute(person.id, stream, !muted)}
          >
            {label}
          </button>
        );
      })}
      <button type="button" class="danger" data-testid="kick" aria-label={`Kick ${person.name}`} onClick={() => actions.kick(person.id)}>Kick</button>
    </div>
  );
}

/** Whether somebody sends sound that nobody is to hear. */
export function isMuted(person: Feed): boolean {
  const sounds = live(person, 'audio');
  return sounds.length > 0 && (person.metadata?.audio === false || sounds.some(({ moderated }) => moderated));
}

function doing(person: Person): string {
  const kinds = [
    live(person, 'audio').length > 0 && 'sound',
    ...live(person, 'video').map((stream) => stream.description?.toLowerCase() || 'picture'),
  ].filter(Boolean);
  if (kinds.length === 0) return 'watching';
  const muted = (person.streams ?? []).some((stream) => stream.moderated && !stream.disabled);
  return `sends ${kinds.join(', ')}${muted ? ' · muted by a moderator' : ''}`;
}
