// The video room page: choose or make a room, join it, leave it.
import { choose, clearNotice, element, notice, pageOptions, serverAway } from './page';
import { CODES, explain, Refused, type Answer } from './room/api';
import { Conference } from './room/conference';
import { Exchange } from './room/exchange';
import { Lobby } from './room/lobby';
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
const lobby = new Lobby({
  ask,
  join: () => void join(),
  failed: (error) => notice('error', session ? explain(error) : serverAway(error)),
  back: clearNotice,
});

element('leave').addEventListener('click', () => void leave());
element('copy-link').addEventListener('click', () => void copyLink());
choose(element<HTMLSelectElement>('follow'), query.get('last') ?? '');
lobby.fill(query.get('room') ?? '', options.name);
element('pin-field').hidden = !query.has('pin');
element<HTMLInputElement>('pin').value = query.get('pin') ?? '';
showLobby();

async function ask(body: Record<string, unknown>): Promise<Answer> {
  session ??= await connect(options.transport, lostServer);
  asking ??= await Exchange.attach(session, { message: () => {}, connected: () => {}, data: () => {} });
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

/** The address at which others find the room; its PIN they have to be told. */
async function copyLink(): Promise<void> {
  const link = new URL('videoroom.html', window.location.href);
  link.searchParams.set('room', query.get('room') ?? '');
  const field = element<HTMLInputElement>('link');
  field.value = link.href;
  field.hidden = false;
  field.select();
  const button = element('copy-link');
  try {
    await navigator.clipboard.writeText(link.href);
    button.textContent = 'Copied';
  } catch {
    // Pages that are not from https: or localhost may not write to the clipboard: it is marked for copying by hand.
    button.textContent = 'Marked';
  }
  setTimeout(() => (button.textContent = 'Link to share'), 2000);
}

function status(text: string): void {
  element('status').textContent = text;
}
