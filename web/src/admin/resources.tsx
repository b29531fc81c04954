// Rooms and mountpoints, as the plugins list them for administrators. A room opens to those who are in it.
import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { element } from '../page';
import { SECOND } from '../seen';
import { bytes, duration } from '../units';
import { ask, CODES, Refused, type Id, type Json } from './api';

interface Room {
  room: Id;
  description?: string;
  num_participants?: number;
  max_publishers?: number;
  is_private?: boolean;
  pin_required?: boolean;
  sampling_rate?: number;
  spatial_audio?: boolean;
  muted?: boolean;
  record?: boolean;
}

interface Person {
  id?: Id;
  username?: string;
  display?: string;
  publisher?: boolean;
  talking?: boolean;
  muted?: boolean;
}

export interface Mountpoint {
  id: Id;
  description?: string;
  type?: string;
  enabled?: boolean;
  viewers?: number;
  media?: { type: string; label?: string; age_ms?: number; waiting?: boolean; refused?: { reason: string; age_ms: number } }[];
}

/** A recording of this server, or of any node of its cluster. */
interface Recording {
  id: number;
  node?: string;
  name: string;
  date: string;
  is_private: boolean;
  bytes: number;
  urls?: Record<string, string>;
}

/** The newest recordings that are shown. */
const RECORDINGS = 50;

/** How often the people of a room that is open are asked for, in milliseconds. */
const PEOPLE = 5 * SECOND;

/** Media that has not come for this long counts as away, in milliseconds. */
const AWAY = 2000;

/** Asks for all lists and shows them. Returns the mountpoints. */
export async function showResources(): Promise<Mountpoint[]> {
  const rooms = (id: string, plugin: string, about: (room: Room) => string) =>
    show<Room>(id, plugin, (room) => <RoomRow key={String(room.room)} plugin={plugin} room={room} about={about(room)} />);
  const [mountpoints, , , , recordings] = await Promise.all([
    show<Mountpoint>('mountpoints', 'janus.plugin.streaming', (one) => (
      <li key={String(one.id)}>
        <span class="grow">{named(one.id, one.description)}</span>
        <span class="soft">{[one.type, mediaOf(one), one.viewers === undefined ? '' : `${one.viewers} watch`].filter(Boolean).join(' · ')}</span>
      </li>
    )),
    rooms('rooms', 'janus.plugin.videoroom', (room) => marked(room, `${room.num_participants ?? 0} present, ${room.max_publishers ?? '–'} may send`)),
    rooms('audio-rooms', 'janus.plugin.audiobridge', (room) => marked(room, `${room.num_participants ?? 0} present · ${(room.sampling_rate ?? 0) / 1000} kHz${room.spatial_audio ? ', spatial' : ''}`)),
    rooms('text-rooms', 'janus.plugin.textroom', (room) => marked(room, `${room.num_participants ?? 0} present`)),
    show<Recording>('recordings', 'janus.plugin.recordplay', (one) => <RecordingRow key={`${one.node ?? ''}/${one.id}`} recording={one} />, newest),
  ]);
  const more = recordings.length - RECORDINGS;
  const about = element('more-recordings');
  about.hidden = more <= 0;
  about.textContent = `${more} older ones are not shown.`;
  return mountpoints;
}

/** Shows a list of a plugin, or the part of it that `seen` returns. Returns all of it. */
async function show<T>(id: string, plugin: string, row: (one: T) => preact.JSX.Element, seen = (all: T[]) => all): Promise<T[]> {
  const about = element(`no-${id}`);
  let list: T[] = [];
  about.textContent = 'There is none.';
  try {
    const response = await asked(plugin, { request: 'list' });
    list = (response['list'] as T[] | undefined) ?? [];
    if (response['error']) about.textContent = `The plugin says: ${String(response['error'])}`;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    about.textContent = error.code === CODES.noPlugin ? 'The plugin is turned off.' : `It cannot be asked: ${error.message}`;
  }
  about.hidden = list.length > 0;
  render(<>{seen(list).map(row)}</>, element(id));
  return list;
}

async function asked(plugin: string, request: Json): Promise<Json> {
  const { response } = await ask<{ response: Json }>('message_plugin', { plugin, request: { transaction: 'dashboard', ...request } });
  return response;
}

function RoomRow({ plugin, room, about }: { plugin: string; room: Room; about: string }) {
  const [open, setOpen] = useState(false);
  return (
    <li>
      <details class="grow" onToggle={(event) => setOpen(event.currentTarget.open)} data-testid={`room-${room.room}`}>
        <summary>
          {named(room.room, room.description)} <span class="soft">{about}</span>
        </summary>
        {open && <People plugin={plugin} room={room.room} />}
      </details>
    </li>
  );
}

function newest(all: Recording[]): Recording[] {
  return [...all].sort((one, other) => other.date.localeCompare(one.date) || other.id - one.id).slice(0, RECORDINGS);
}

function RecordingRow({ recording }: { recording: Recording }) {
  const { id, node, name, date, is_private, bytes: size, urls = {} } = recording;
  // Other addresses are of the port for clients, which the dashboard does not know.
  const files = Object.entries(urls).filter(([, url], index, all) => /^https?:/.test(url) && all.findIndex(([, other]) => other === url) === index);
  return (
    <li>
      <span class="grow">{named(id, name)}</span>
      <span class="soft">{[node && `at ${node}`, date, bytes(size), is_private && 'private'].filter(Boolean).join(' · ')}</span>
      {files.map(([medium, url]) => (
        <a key={url} href={url} download aria-label={`Download ${medium} of ${name}`}>
          {files.length > 1 ? medium : 'Download'}
        </a>
      ))}
    </li>
  );
}

function People({ plugin, room }: { plugin: string; room: Id }) {
  const [people, setPeople] = useState<Person[] | string | null>(null);
  useEffect(() => {
    const look = async (): Promise<void> => {
      try {
        const response = await asked(plugin, { request: 'listparticipants', room });
        setPeople(response['error'] ? String(response['error']) : ((response['participants'] as Person[] | undefined) ?? []));
      } catch (error) {
        setPeople(String(error));
      }
    };
    void look();
    const timer = setInterval(() => document.hidden || void look(), PEOPLE);
    return () => clearInterval(timer);
  }, [plugin, room]);
  if (people === null) return <p class="soft">Asking the plugin…</p>;
  if (typeof people === 'string') return <p>The plugin says: {people}</p>;
  if (people.length === 0) return <p class="soft">Nobody is in it.</p>;
  return (
    <ul class="plain" data-testid="room-people">
      {people.map((person) => (
        <li key={String(person.id ?? person.username)}>
          {person.display || person.username || String(person.id)} <span class="soft">{doing(person)}</span>
        </li>
      ))}
    </ul>
  );
}

function doing({ publisher, talking, muted }: Person): string {
  return [publisher === true ? 'sends' : publisher === false ? 'watches' : '', talking && 'talks', muted && 'muted'].filter(Boolean).join(', ');
}

function marked(room: Room, about: string): string {
  const marks = [room.is_private && 'private', room.muted && 'muted', room.record && 'recorded', room.pin_required && 'PIN'].filter(Boolean).join(', ');
  return [about, marks].filter(Boolean).join(' · ');
}

/** Whether media comes into a mountpoint, in words. */
export function mediaOf({ enabled, media = [] }: Mountpoint): string {
  const ages = media.filter(({ waiting, age_ms }) => !waiting && age_ms !== undefined).map(({ age_ms }) => age_ms ?? 0);
  const refused = media.find((stream) => stream.refused && stream.refused.age_ms < AWAY)?.refused;
  if (enabled === false) return 'disabled';
  if (ages.some((age) => age < AWAY)) return 'media comes in';
  if (refused) return `packets are refused: ${refused.reason}`;
  if (ages.length > 0) return `silent for ${duration(Math.min(...ages) / 1000)}`;
  return media.some(({ waiting }) => waiting) ? 'nothing has come so far' : 'no source';
}

export function named(id: Id, description: string | undefined): string {
  return description ? `${description} (${id})` : String(id);
}
