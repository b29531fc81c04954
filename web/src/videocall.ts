// The video call page: register a name, see who is there, call and be called.
import { Call, type CallEvents } from './call';
import type { Capture } from './capture';
import { Controls, ReceivedLayers } from './controls';
import { wasWanted, type Ending } from './ending';
import { FiguresPanel } from './figures';
import { choose, clearNotice, element, endNotice, idle, notice, pageOptions, serverAway, showCall, status } from './page';
import { comeBack } from './return';
import { connect, type Jsep, type Session } from './session';
import { Setup } from './setup';
import { Stage } from './stage';

type State =
  | { at: 'unregistered' }
  | { at: 'idle' }
  | { at: 'calling'; peer: string }
  | { at: 'ringing'; peer: string; offer: Jsep }
  | { at: 'in call'; peer: string };

const options = pageOptions();
choose(element<HTMLSelectElement>('bitrate'), options.bitrate);
const nameInput = element<HTMLInputElement>('name');
nameInput.value = options.name;
const incoming = element<HTMLDialogElement>('incoming');
const setup = new Setup(options);
const stage = new Stage();
const figures = new FiguresPanel(element('figures'), { more: element('more-figures') });
const restart = async (live: Call) => live.send({ request: 'set' }, await live.restartOffer());
const controls = new Controls({
  call: () => call,
  configure: async (settings) => call?.send({ request: 'set', ...settings }),
  restart,
});

let session: Session | null = null;
let call: Call | null = null;
let capture: Capture | null = null;
let ownName = '';
let layers = new ReceivedLayers();
let state: State = { at: 'unregistered' };

element<HTMLFormElement>('register-form').addEventListener('submit', (event) => {
  event.preventDefault();
  void register(nameInput.value.trim());
});
element('refresh').addEventListener('click', () => void request({ request: 'list' }));
element('hangup').addEventListener('click', () => void request({ request: 'hangup' }));
element('accept').addEventListener('click', () => void accept());
element('reject').addEventListener('click', () => reject());
// Escape closes a dialog; here it means to reject.
incoming.addEventListener('cancel', () => reject());
// Others come and go without telling; a look now and then keeps the list fresh.
setInterval(() => state.at === 'idle' && void request({ request: 'list' }), 5000);
enter({ at: 'unregistered' });

async function register(name: string): Promise<void> {
  if (!name) return;
  clearNotice();
  status('Connecting…');
  try {
    session ??= await connect(options.transport, lostServer);
    call ??= await Call.attach(session, 'janus.plugin.videocall', events);
    await call.send({ request: 'register', username: name });
  } catch (error) {
    idle('Not registered.');
    notice('error', serverAway(error));
  }
}

async function dial(peer: string): Promise<void> {
  if (state.at !== 'idle' || !call) return;
  const dialling: State = { at: 'calling', peer };
  enter(dialling);
  const opened = await setup.capture(() => void dial(peer));
  // The user may have hung up while the browser asked for permission, or somebody else has called.
  if ((state as State) !== dialling) return free(opened);
  if (!opened) return enter({ at: 'idle' });
  capture = opened;
  try {
    const offer = await call.offer(capture.stream, setup.sendOptions, setup.videoCodec);
    await call.send({ request: 'call', username: peer }, offer);
  } catch (error) {
    notice('error', `The call could not be started: ${String(error)}`);
    hangupMedia();
  }
}

async function accept(): Promise<void> {
  if (state.at !== 'ringing' || !call) return;
  const ringing = state;
  incoming.close();
  const opened = await setup.capture(() => void accept());
  // While the browser asked for permission, the caller may have hung up, and another one may have called.
  if ((state as State) !== ringing) return free(opened);
  // The call goes on ringing until the user has decided what to send, or rejects it.
  if (!opened) return incoming.show();
  capture = opened;
  const { peer, offer } = ringing;
  try {
    const answer = await call.answer(offer, capture.stream);
    enter({ at: 'in call', peer });
    await call.send({ request: 'accept' }, answer);
    await settle();
  } catch (error) {
    notice('error', `The call could not be answered: ${String(error)}`);
    void request({ request: 'hangup' });
    hangupMedia();
  }
}

function reject(): void {
  if (state.at !== 'ringing') return;
  enter({ at: 'idle' });
  void request({ request: 'hangup', reason: 'Call rejected' });
}

async function request(body: Record<string, unknown>, jsep?: Jsep): Promise<void> {
  try {
    await call?.send(body, jsep);
  } catch (error) {
    notice('error', `The server did not take the request: ${String(error)}`);
  }
}

const events: CallEvents = {
  message: (data, jsep) => {
    if (data['error']) return failed(Number(data['error_code']), String(data['error']));
    const result = data['result'] as Record<string, any> | undefined;
    if (result?.['list']) return showUsers(result['list'] as string[]);
    if (result) void react(result, jsep).catch((error: unknown) => notice('error', `The call failed: ${String(error)}`));
  },
  connected: (up, ending) => {
    if (up && state.at === 'in call') status(statusText(state));
    else if (!up && ending && (state.at === 'in call' || state.at === 'calling') && !wasWanted(ending)) broken(state.peer, ending);
  },
  restart,
  localTrack: (track, on) => stage.localTrack(track, on),
  remoteTrack: (track, on) => stage.remoteTrack(track, on),
  dataOpen: () => controls.enableText(true),
  data: (data) => controls.received(data),
  slowLink: (uplink, lost) => {
    if (!uplink) notice('warning', `${lost} packets from the server were lost lately.`);
  },
  ended: () => {
    release();
    if (state.at !== 'unregistered') enter({ at: 'idle' });
  },
};

async function react(result: Record<string, any>, jsep?: Jsep): Promise<void> {
  const peer = String(result['username'] ?? '');
  switch (result['event']) {
    case 'registered':
      ownName = peer;
      enter({ at: 'idle' });
      break;
    case 'incomingcall':
      if (jsep) enter({ at: 'ringing', peer, offer: jsep });
      break;
    case 'accepted':
      // Without a name it is the receipt of our own acceptance.
      if (!peer || !jsep) break;
      await call?.accept(jsep);
      enter({ at: 'in call', peer });
      await settle();
      break;
    case 'update':
      if (jsep?.type === 'offer') await call?.send({ request: 'set' }, await call.answer(jsep));
      else if (jsep) await call?.accept(jsep);
      break;
    case 'simulcast': {
      controls.showLayers('simulcast');
      const text = layers.update(result);
      if (text) figures.layer(text);
      break;
    }
    case 'slow_link':
      notice('warning', `The server misses ${result['media']} packets: the network is slow or busy.`);
      break;
    case 'hangup':
      hungUp(peer, String(result['reason'] ?? ''));
      break;
  }
}

/** The connection of a call has ended, which nobody wanted. */
function broken(peer: string, ending: Ending): void {
  endNotice(`The call with ${peer} has ended.`, ending, { label: 'Call again', id: 'again', run: () => { clearNotice(); void dial(peer); } });
}

/** Options that each call resets. */
async function settle(): Promise<void> {
  if (controls.bitrateCap > 0) await call?.send({ request: 'set', bitrate: controls.bitrateCap });
}

function hungUp(peer: string, reason: string): void {
  // A second one comes when the other PeerConnection closes; by then there is nothing to tell.
  if (state.at === 'idle') return;
  if (reason === 'User busy') notice('warning', 'The other side is in another call.');
  else if (reason === 'Call rejected') notice('info', `${peer} has declined the call.`);
  else if (reason === 'Remote WebRTC hangup') notice('info', `The connection of ${peer} has ended.`);
  // Other reasons are the server's words for how the user hung up.
  else if (peer !== ownName) notice('info', `${peer} hung up.`);
  hangupMedia();
}

function failed(code: number, text: string): void {
  notice('error', `The server says: ${text} (${code})`);
  if (state.at === 'unregistered') idle('Not registered.');
  if (state.at === 'calling') hangupMedia();
}

function hangupMedia(): void {
  if (call?.peerConnection) call.hangup();
  release();
  if (state.at !== 'unregistered') enter({ at: 'idle' });
}

function release(): void {
  free(capture);
  capture = null;
  stage.clear();
}

/** Lets go of camera and microphone. */
function free(opened: Capture | null): void {
  opened?.close();
  for (const track of opened?.stream.getTracks() ?? []) track.stop();
}

function lostServer(reason: string): void {
  const name = state.at === 'unregistered' ? '' : ownName;
  session = null;
  call?.hangup();
  call = null;
  release();
  enter({ at: 'unregistered' });
  notice('error', serverAway(reason));
  if (name) void returnAs(name);
}

/** Registers again, once there is a server. */
async function returnAs(name: string): Promise<void> {
  const before = state;
  status('Reconnecting…');
  const isWanted = (): boolean => state === before;
  await comeBack({
    isWanted,
    attempt: async () => {
      session = await connect(options.transport, lostServer);
      if (isWanted()) await register(name);
    },
  });
}

/** Goes to a state and shows it. */
function enter(next: State): void {
  const before = state.at;
  // Several events tell of the end of one call.
  if (before === 'idle' && next.at === 'idle') return;
  state = next;
  const live = next.at === 'in call' || next.at === 'calling';
  element('register').hidden = next.at !== 'unregistered';
  element('directory').hidden = next.at !== 'idle';
  element('setup').hidden = live;
  showCall(live);
  if (live) element('remote-name').textContent = next.peer;
  if (next.at === 'ringing') {
    element('incoming-text').textContent = `${next.peer} is calling you.`;
    if (!incoming.open) incoming.show();
    element('accept').focus();
  } else if (incoming.open) {
    incoming.close();
  }
  if (live && before !== 'calling') {
    layers = new ReceivedLayers();
    controls.start();
    figures.start(() => call?.peerConnection ?? null);
  } else if (!live) {
    controls.stop();
    figures.stop();
  }
  if (next.at === 'unregistered') idle(statusText(next));
  else status(statusText(next));
  if (next.at === 'idle') void request({ request: 'list' });
}

function statusText(of: State): string {
  switch (of.at) {
    case 'unregistered':
      return 'Not registered.';
    case 'idle':
      return `Registered as ${ownName}.`;
    case 'calling':
      return `Calling ${of.peer}…`;
    case 'ringing':
      return `${of.peer} is calling.`;
    case 'in call':
      return `In a call with ${of.peer}.`;
  }
}

function showUsers(names: string[]): void {
  const others = names.filter((name) => name !== ownName).sort((a, b) => a.localeCompare(b));
  element('nobody').hidden = others.length > 0;
  const list = element('users');
  // Rebuilding the list would take the focus from its buttons.
  if (others.join('\n') === list.dataset['names']) return;
  list.dataset['names'] = others.join('\n');
  list.replaceChildren(
    ...others.map((name) => {
      const item = document.createElement('li');
      const label = document.createElement('span');
      label.textContent = name;
      const button = document.createElement('button');
      button.type = 'button';
      button.className = 'primary';
      button.textContent = 'Call';
      button.setAttribute('aria-label', `Call ${name}`);
      button.dataset['testid'] = `call-${name}`;
      button.addEventListener('click', () => void dial(name));
      item.append(label, button);
      return item;
    }),
  );
}
