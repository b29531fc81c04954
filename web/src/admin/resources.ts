// Rooms and mountpoints, as the plugins list them for administrators.
import { make } from '../make';
import { element } from '../page';
import { ask, CODES, Refused, type Id, type Json } from './api';

interface Room {
  room: Id;
  description?: string;
  num_participants?: number;
  max_publishers?: number;
  is_private?: boolean;
  pin_required?: boolean;
}

interface AudioRoom {
  room: Id;
  description?: string;
  num_participants?: number;
  sampling_rate?: number;
  spatial_audio?: boolean;
  muted?: boolean;
  record?: boolean;
  pin_required?: boolean;
}

interface TextRoom {
  room: Id;
  description?: string;
  num_participants?: number;
  pin_required?: boolean;
}

interface Mountpoint {
  id: Id;
  description?: string;
  type?: string;
  enabled?: boolean;
  viewers?: number;
  media?: { type: string; age_ms?: number; waiting?: boolean; refused?: { reason: string; age_ms: number } }[];
}

/** Media that has not come for this long counts as away, in milliseconds. */
const AWAY = 2000;

/** Asks for all lists and shows them. */
export async function showResources(): Promise<void> {
  await Promise.all([
    show<Room>('rooms', 'janus.plugin.videoroom', 'There is none.', roomLine),
    show<AudioRoom>('audio-rooms', 'janus.plugin.audiobridge', 'There is none.', audioRoomLine),
    show<TextRoom>('text-rooms', 'janus.plugin.textroom', 'There is none.', textRoomLine),
    show<Mountpoint>('mountpoints', 'janus.plugin.streaming', 'There is none.', mountpointLine),
  ]);
}

async function show<T>(id: string, plugin: string, none: string, line: (one: T) => [string, string]): Promise<void> {
  const root = element(id);
  const about = element(`no-${id}`);
  let list: T[] = [];
  about.textContent = none;
  try {
    const { response } = await ask<{ response: Json }>('message_plugin', { plugin, request: { request: 'list', transaction: 'dashboard' } });
    list = (response['list'] as T[] | undefined) ?? [];
    if (response['error']) about.textContent = `The plugin says: ${String(response['error'])}`;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    about.textContent = error.code === CODES.noPlugin ? 'The plugin is turned off.' : `It cannot be asked: ${error.message}`;
  }
  about.hidden = list.length > 0;
  root.replaceChildren(
    ...list.map((one) => {
      const [name, state] = line(one);
      const row = make('li');
      row.append(make('span', { className: 'grow', text: name }), make('span', { className: 'soft', text: state }));
      return row;
    }),
  );
}

function roomLine(room: Room): [string, string] {
  const marks = [room.is_private && 'private', room.pin_required && 'PIN'].filter(Boolean).join(', ');
  const present = room.num_participants ?? 0;
  return [named(room.room, room.description), [`${present} of ${room.max_publishers ?? '–'} may send`, marks].filter(Boolean).join(' · ')];
}

function audioRoomLine(room: AudioRoom): [string, string] {
  const kind = `${(room.sampling_rate ?? 0) / 1000} kHz${room.spatial_audio ? ', spatial' : ''}`;
  const marks = [room.muted && 'muted', room.record && 'recorded', room.pin_required && 'PIN'].filter(Boolean).join(', ');
  return [named(room.room, room.description), [`${room.num_participants ?? 0} present`, kind, marks].filter(Boolean).join(' · ')];
}

function textRoomLine(room: TextRoom): [string, string] {
  return [named(room.room, room.description), [`${room.num_participants ?? 0} present`, room.pin_required && 'PIN'].filter(Boolean).join(' · ')];
}

function mountpointLine(mountpoint: Mountpoint): [string, string] {
  const come = (mountpoint.media ?? []).filter((stream) => !stream.waiting);
  const ages = come.map(({ age_ms }) => age_ms).filter((age) => age !== undefined);
  const refused = (mountpoint.media ?? []).find((stream) => stream.refused && stream.refused.age_ms < AWAY)?.refused;
  let state = 'no media';
  if (mountpoint.enabled === false) state = 'disabled';
  else if (ages.some((age) => age < AWAY)) state = 'media comes in';
  else if (refused) state = `packets are refused: ${refused.reason}`;
  const viewers = mountpoint.viewers === undefined ? '' : `${mountpoint.viewers} watch`;
  return [named(mountpoint.id, mountpoint.description), [mountpoint.type, state, viewers].filter(Boolean).join(' · ')];
}

function named(id: Id, description: string | undefined): string {
  return description ? `${description} (${id})` : String(id);
}
