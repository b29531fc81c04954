// The audio room page: choose or make a room, join it, leave it.
import { Refused, type Answer } from './answer';
import { asksForGroup, AUDIO_BRIDGE, CODES, explain, type Listed } from './audio/api';
import { Room } from './audio/room';
import { Sending } from './audio/sending';
import { CaptureError } from './capture';
import { Exchange } from './exchange';
import { copyLink } from './link';
import { Lobby, value } from './lobby';
import { clearNotice, element, notice, pageOptions, serverAway } from './page';
import { connect, type Session } from './session';

/** How fast the rooms that are made here notice that somebody talks: over so many packets, from this level on, in -dBov. */
const TALKING = { audio_active_packets: 15, audio_level_average: 50 };

const query = new URLSearchParams(window.location.search);
const options = pageOptions();

let session: Session | null = null;
/** A handle to ask for rooms with. */
let asking: Exchange | null = null;

const sending = new Sending(options, () => void room.sendOther());
const room: Room = new Room(sending, {
  left: (why) => {
    showLobby();
    notice('info', why);
  },
  again: () => void join(),
});
const lobby = new Lobby<Listed>({
  ask,
  join: () => void join(),
  failed: (error) => notice('error', session ? explain(error) : serverAway(error)),
  back: clearNotice,
  about: ({ sampling_rate, spatial_audio, num_listeners }) =>
    [`${sampling_rate / 1000} kHz`, spatial_audio && 'stereo', num_listeners && `${num_listeners} listening`].filter(Boolean).join(' · '),
  creation: () => {
    const groups = value('new-groups').split(',').map((group) => group.trim()).filter(Boolean);
    return {
      sampling_rate: Number(value('new-rate')),
      spatial_audio: element<HTMLInputElement>('new-spatial').checked,
      audiolevel_event: true,
      ...TALKING,
      ...(groups.length > 0 && { groups }),
    };
  },
  invalid: CODES.invalid,
});

element('leave').addEventListener('click', () => void leave());
element('copy-link').addEventListener('click', () => void copyLink('audioroom.html', query.get('room') ?? ''));
lobby.fill(query.get('room') ?? '', options.name);
element('pin-field').hidden = !query.has('pin');
element<HTMLInputElement>('pin').value = query.get('pin') ?? '';
element('group-field').hidden = !query.has('group');
element<HTMLInputElement>('group').value = query.get('group') ?? '';
showLobby();

async function ask(body: Record<string, unknown>): Promise<Answer> {
  session ??= await connect(options.transport, lostServer);
  asking ??= await Exchange.attach(session, AUDIO_BRIDGE, { message: () => {}, connected: () => {} });
  return asking.ask(body);
}

async function join(): Promise<void> {
  const button = element<HTMLButtonElement>('join');
  button.disabled = true;
  clearNotice();
  status('Joining…');
  try {
    const id = await lobby.roomId();
    if (!session) return;
    const group = element('group-field').hidden ? '' : value('group');
    await room.enter(session, { room: id, display: lobby.name, pin: lobby.enteredPin, group }, lobby.secret);
    lobby.hide();
    sending.moveFields(element('room-sound'));
    element('meeting').hidden = false;
    element('room-title').textContent = lobby.describe(id);
    query.set('room', String(id));
    query.delete('pin');
    history.replaceState(null, '', `?${query}`);
    status(`In the room as ${lobby.name}; signalling over ${session.transport}.`);
    element('mute').focus();
  } catch (error) {
    showLobby();
    failed(error);
  } finally {
    button.disabled = false;
  }
}

/** Says why the user is not in the room, and shows what would help. */
function failed(error: unknown): void {
  if (error instanceof CaptureError) {
    return notice('warning', error.message.replace(/camera (and|or) microphone/gi, 'the microphone'), [
      { label: 'Only listen', id: 'listen-only', run: () => { sending.listenOnly(); void join(); } },
    ]);
  }
  notice('error', session ? explain(error) : serverAway(error));
  if (asksForGroup(error)) {
    element('group-field').hidden = false;
    element('group').focus();
  } else if (error instanceof Refused && (error.code === CODES.missing || error.code === CODES.unauthorized)) lobby.askPin();
}

async function leave(): Promise<void> {
  const left = room.leave();
  clearNotice();
  showLobby();
  // It is left on this side, whatever the server answers.
  await left.catch(() => {});
}

function showLobby(): void {
  sending.moveFields(element('setup-sound'));
  element('meeting').hidden = true;
  element('link').hidden = true;
  lobby.show();
  status('Choose a room.');
}

function lostServer(reason: string): void {
  session = null;
  asking = null;
  room.close();
  showLobby();
  notice('error', serverAway(reason));
}

function status(text: string): void {
  element('status').textContent = text;
}
