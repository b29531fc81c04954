// The video room page: choose or make a room, join it, leave it.
import { Exchange } from './exchange';
import { copyLink } from './link';
import { Lobby, value } from './lobby';
import { choose, clearNotice, element, notice, pageOptions, serverAway } from './page';
import { CODES, explain, Refused, VIDEO_ROOM, type Answer, type Listed } from './room/api';
import { Conference } from './room/conference';
import { connect, type Session } from './session';
import { Setup } from './setup';

const query = new URLSearchParams(window.location.search);
const options = pageOptions();
// Several sizes are the rule in a room; `?simulcast=0` sends one.
if (!query.has('simulcast') && !options.sending) options.sending = 'simulcast';
const setup = new Setup(options);

let session: Session | null = null;
/** A handle to ask for rooms with. */
let asking: Exchange | null = null;

const conference = new Conference(setup, (why) => {
  showLobby();
  notice('info', why);
});
const lobby = new Lobby<Listed>({
  ask,
  join: () => void join(),
  failed: (error) => notice('error', session ? explain(error) : serverAway(error)),
  back: clearNotice,
  about: ({ max_publishers }) => `up to ${max_publishers} send`,
  creation: () => ({
    publishers: Number(value('new-publishers')) || 6,
    bitrate: Number(value('new-bitrate')) * 1000,
    videocodec: value('new-codecs'),
    notify_joining: true,
    audiolevel_event: true,
    dominant_speaker: true,
  }),
  invalid: CODES.invalid,
});

element('leave').addEventListener('click', () => void leave());
element('copy-link').addEventListener('click', () => void copyLink('videoroom.html', query.get('room') ?? ''));
choose(element<HTMLSelectElement>('follow'), query.get('last') ?? '');
lobby.fill(query.get('room') ?? '', options.name);
element('pin-field').hidden = !query.has('pin');
element<HTMLInputElement>('pin').value = query.get('pin') ?? '';
showLobby();

async function ask(body: Record<string, unknown>): Promise<Answer> {
  session ??= await connect(options.transport, lostServer);
  asking ??= await Exchange.attach(session, VIDEO_ROOM, { message: () => {}, connected: () => {} });
  return asking.ask(body);
}

async function join(): Promise<void> {
  const button = element<HTMLButtonElement>('join');
  button.disabled = true;
  clearNotice();
  status('Joining…');
  try {
    const room = await lobby.roomId();
    if (!session) return;
    await conference.enter(session, { room, display: lobby.name, pin: lobby.enteredPin }, lobby.secret);
    lobby.hide();
    setup.moveDevices(element('room-devices'));
    query.set('room', String(room));
    query.delete('pin');
    history.replaceState(null, '', `?${query}`);
    status(`In the room as ${lobby.name}; signalling over ${session.transport}.`);
    element('room-title').focus();
  } catch (error) {
    status('Not in a room.');
    notice('error', session ? explain(error) : serverAway(error));
    if (error instanceof Refused && (error.code === CODES.missing || error.code === CODES.unauthorized)) lobby.askPin();
  } finally {
    button.disabled = false;
  }
}

async function leave(): Promise<void> {
  const left = conference.leave();
  clearNotice();
  showLobby();
  // It is left on this side, whatever the server answers.
  await left.catch(() => {});
}

function showLobby(): void {
  setup.moveDevices(element('setup-fields'));
  lobby.show();
  status('Choose a room.');
}

function lostServer(reason: string): void {
  session = null;
  asking = null;
  conference.close();
  showLobby();
  notice('error', serverAway(reason));
}

function status(text: string): void {
  element('status').textContent = text;
}
