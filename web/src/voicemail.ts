// The voice mail page: leave a message, and play it back.
import { Call, type CallEvents } from './call';
import { CaptureError, listDevices, open, openDevice, type Capture } from './capture';
import { Level } from './level';
import { make } from './make';
import { wasWanted } from './ending';
import { choose, clearNotice, element, endNotice, idle, notice, pageOptions, serverAway, status } from './page';
import { connect, type Session } from './session';
import { time } from './units';

/** The longest message that anybody could want, in s: the server says how long it may be. */
const LONGEST = 3600;

const options = pageOptions();
const source = element<HTMLSelectElement>('source');
const microphone = element<HTMLSelectElement>('microphone');
const recordButton = element<HTMLButtonElement>('record');
const stopButton = element<HTMLButtonElement>('stop');

let session: Session | null = null;
let call: Call | null = null;
let capture: Capture | null = null;
let level: Level | null = null;
/** The timer that shows the time left. */
let clock = 0;
/** How long the message is, in s. */
let recorded = 0;

choose(source, options.source);
source.addEventListener('change', showSource);
navigator.mediaDevices?.addEventListener?.('devicechange', () => void refreshMicrophones());
recordButton.addEventListener('click', () => void record());
stopButton.addEventListener('click', () => void stop());
showSource();
void refreshMicrophones();
idle('Ready.');

async function record(): Promise<void> {
  recordButton.disabled = true;
  clearNotice();
  try {
    capture = await openSound();
    void refreshMicrophones();
    status('Connecting…');
    session ??= await connect(options.transport, lostServer);
    // A handle is for one message.
    call = await Call.attach(session, 'janus.plugin.voicemail', events);
    const [track] = capture.stream.getAudioTracks();
    const offer = await call.makeOffer([{ type: 'audio', capture: track ?? false, recv: false }]);
    await call.send({ request: 'record', max_duration: LONGEST }, offer);
    level = new Level(capture.stream, element<HTMLMeterElement>('level'));
    show(true);
  } catch (error) {
    if (error instanceof CaptureError) notice('warning', error.message, [{ label: 'Record a tone', id: 'use-synthetic', run: useTone }]);
    else notice('error', session ? `The message could not be recorded: ${String(error)}` : serverAway(error));
    ended();
  }
}

/** The sound that is recorded, and nothing else. */
async function openSound(): Promise<Capture> {
  if (source.value === 'synthetic') {
    const all = await open('synthetic', { width: 16, height: 16, camera: '', microphone: '' });
    for (const track of all.stream.getVideoTracks()) track.stop();
    return { ...all, stream: new MediaStream(all.stream.getAudioTracks()) };
  }
  const track = await openDevice('audio', { width: 0, height: 0, camera: '', microphone: microphone.value });
  return { stream: new MediaStream([track]), remark: '', close: () => {} };
}

function useTone(): void {
  source.value = 'synthetic';
  showSource();
  void record();
}

async function stop(): Promise<void> {
  stopButton.disabled = true;
  try {
    await call?.send({ request: 'stop' });
  } catch (error) {
    notice('error', `The message could not be ended: ${String(error)}`);
    ended();
  }
}

const events: CallEvents = {
  message: (data, jsep) => {
    if (jsep) call?.accept(jsep).catch((error: unknown) => notice('error', `The server’s answer was refused: ${String(error)}`));
    if (data['error']) {
      notice('error', `The server says: ${data['error']} (${data['error_code']})`);
      ended();
    }
    if (data['status'] === 'started') started(Number(data['max_duration']));
    if (data['status'] === 'done') {
      keep(String(data['recording']));
      ended();
    }
  },
  connected: (up, ending) => {
    if (!up && ending && !wasWanted(ending) && recordButton.hidden) endNotice('Recording has ended. What came before is on the server.', ending);
  },
  localTrack: () => {},
  remoteTrack: () => {},
  dataOpen: () => {},
  data: () => {},
  slowLink: (uplink) => {
    if (uplink) notice('warning', 'Parts of the message do not reach the server: the network is slow or busy.');
  },
  ended,
};

/** The time begins. */
function started(seconds: number): void {
  status('Recording: say something.');
  const begun = performance.now();
  const passes = (): void => {
    recorded = Math.min((performance.now() - begun) / 1000, seconds);
    element('left').textContent = time(Math.max(1, Math.ceil(seconds - recorded)));
    element<HTMLProgressElement>('progress').value = recorded / seconds;
  };
  passes();
  clock = window.setInterval(passes, 100);
  stopButton.disabled = false;
}

/** Puts a message into the list, where it can be played. */
function keep(address: string): void {
  const url = new URL(address, window.location.href).href;
  const item = make('li', { testid: 'message' });
  const player = make('audio', { testid: 'player' });
  player.controls = true;
  player.preload = 'metadata';
  player.src = url;
  const number = element('messages').children.length + 1;
  player.setAttribute('aria-label', `Message ${number}`);
  player.addEventListener('error', () => item.append(make('p', { className: 'soft', text: 'This server does not hand its messages out (voicemail.serve).' })), { once: true });
  const link = make('a', { text: 'Download', testid: 'download' });
  link.href = url;
  link.download = address.slice(address.lastIndexOf('/') + 1);
  const row = make('div', { className: 'row' });
  row.append(make('span', { className: 'grow', text: `Message ${number}, ${time(Math.max(recorded, 0.1))}` }), link);
  item.append(row, player);
  element('messages').prepend(item);
  element('none').hidden = true;
}

function ended(): void {
  show(false);
  window.clearInterval(clock);
  level?.close();
  level = null;
  capture?.close();
  for (const track of capture?.stream.getTracks() ?? []) track.stop();
  capture = null;
  const last = call;
  call = null;
  last?.detach();
  recordButton.disabled = false;
  idle('Ready.');
}

function lostServer(reason: string): void {
  session = null;
  call = null;
  ended();
  notice('error', serverAway(reason));
}

function show(recording: boolean): void {
  element('setup').hidden = recording;
  element('recorder').hidden = !recording;
  recordButton.hidden = recording;
  stopButton.hidden = !recording;
  stopButton.disabled = true;
  element('left').textContent = '–';
  element<HTMLProgressElement>('progress').value = 0;
  recorded = 0;
}

function showSource(): void {
  element('devices').hidden = source.value !== 'devices';
}

async function refreshMicrophones(): Promise<void> {
  const chosen = microphone.value;
  const { microphones } = await listDevices();
  const named = microphones.filter(({ deviceId }) => deviceId !== '');
  microphone.replaceChildren(
    new Option('Default microphone', ''),
    ...named.map(({ label, deviceId }, index) => new Option(label || `Microphone ${index + 1}`, deviceId)),
  );
  choose(microphone, chosen);
}
