// The text room page: choose or make a room, join it, leave it.
import { accepted, Refused, type Answer } from './answer';
import { Call, type CallEvents } from './call';
import { copyLink } from './link';
import { Lobby, value } from './lobby';
import { clearNotice, element, notice, pageOptions, serverAway } from './page';
import { connect, type Session } from './session';
import { CODES, explain, type Listed } from './text/api';
import { Room } from './text/room';

const query = new URLSearchParams(window.location.search);
const options = pageOptions();

/** Of a handle without a connection. */
const SILENT: CallEvents = {
  message: () => {},
  connected: () => {},
  localTrack: () => {},
  remoteTrack: () => {},
  dataOpen: () => {},
  data: () => {},
  slowLink: () => {},
  ended: () => {},
};

let session: Session | null = null;
/** A handle to ask for rooms with. */
let asking: Call | null = null;

const room = new Room((why) => {
  showLobby();
  notice('info', why);
});
const lobby = new Lobby<Listed>({
  ask,
  join: () => void join(),
  failed: (error) => notice('error', session ? explain(error) : serverAway(error)),
  back: clearNotice,
  about: ({ history }) => (history > 0 ? `remembers ${history} messages` : ''),
  creation: () => ({ history: Number(value('new-history')) || 0 }),
  invalid: CODES.invalid,
});

element('leave').addEventListener('click', () => void leave());
element('copy-link').addEventListener('click', () => void copyLink('textroom.html', query.get('room') ?? ''));
lobby.fill(query.get('room') ?? '', options.name);
element('pin-field').hidden = !query.has('pin');
element<HTMLInputElement>('pin').value = query.get('pin') ?? '';
showLobby();

async function ask(body: Record<string, unknown>): Promise<Answer> {
  session ??= await connect(options.transport, lostServer);
  asking ??= await Call.attach(session, 'janus.plugin.textroom', SILENT);
  return accepted(await asking.ask(body));
}

async function join(): Promise<void> {
  const button = element<HTMLButtonElement>('join');
  button.disabled = true;
  clearNotice();
  status('Joining…');
  try {
    const id = await lobby.roomId();
    if (!session) return;
    await room.enter(session, { room: id, username: lobby.name, pin: lobby.enteredPin }, lobby.secret);
    lobby.hide();
    element('meeting').hidden = false;
    element('room-title').textContent = lobby.describe(id);
    query.set('room', String(id));
    query.delete('pin');
    history.replaceState(null, '', `?${query}`);
    status(`In the room as ${lobby.name}; signalling over ${session.transport}.`);
    element('text-input').focus();
  } catch (error) {
    status('Not in a room.');
    notice('error', session ? explain(error) : serverAway(error));
    if (!(error instanceof Refused)) return;
    if (error.code === CODES.missing || error.code === CODES.unauthorized) lobby.askPin();
    if (error.code === CODES.nameTaken) element('name').focus();
  } finally {
    button.disabled = false;
  }
}

async function leave(): Promise<void> {
  const left = room.leave();
  clearNotice();
  showLobby();
  // It is left on this side, whatever the server answers.
  await left.catch(() => {});
}

function showLobby(): void {
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
