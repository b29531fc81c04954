// The record & play page: what is sent becomes a file of the server, and plays again.
import { Call, type CallEvents } from './call';
import { CaptureError, type SourceKind } from './capture';
import { choose, clearNotice, element, endNotice, idle, notice, pageOptions, press, serverAway, status } from './page';
import { wasWanted } from './ending';
import { PositionBar } from './position';
import { comeBack } from './return';
import { connect, type Jsep, type Session } from './session';
import { RecordingList, type Recorded } from './shelf/list';
import { Recorder } from './shelf/recorder';
import { Player } from './player';

/** How often the list is read again, in milliseconds. */
const REFRESH = 5000;

const options = pageOptions();
const name = element<HTMLInputElement>('name');
const source = element<HTMLSelectElement>('source');
const codec = element<HTMLSelectElement>('codec');
const format = element<HTMLSelectElement>('format');
const recordButton = element<HTMLButtonElement>('record');
const pause = element<HTMLButtonElement>('pause');
const hold = element<HTMLButtonElement>('hold');
const tiles = new Player(element('tiles'));
const list = new RecordingList(element('list'), element('none'), (recorded) => void play(recorded));
const position = new PositionBar(element('position'), (at) => run(player?.send({ request: 'seek', position: Math.round(at * 1000) })), false);

let session: Session | null = null;
/** The node of a cluster that the page is of. */
let here: string | undefined;
/** The handle that lists and plays. */
let player: Call | null = null;
let recorder: Recorder | null = null;
/** The present recording, and the next one. */
let current: Recorded | null = null;
let next: Recorded | null = null;
/** Where to go on with it, in seconds, after the server was away. */
let goOnAt = 0;

choose(source, options.source);
choose(codec, options.codec);
choose(format, new URLSearchParams(window.location.search).get('format') ?? 'webm');
name.value = options.name;
element('setup').addEventListener('submit', (event) => {
  event.preventDefault();
  void record();
});
element('end').addEventListener('click', () => {
  element<HTMLButtonElement>('end').disabled = true;
  recorder?.end();
});
element('stop').addEventListener('click', () => run(player?.send({ request: 'stop' })));
hold.addEventListener('click', () => recorder?.hold(hold.getAttribute('aria-pressed') !== 'true'));
pause.addEventListener('click', () => {
  const paused = pause.getAttribute('aria-pressed') === 'true';
  run(player?.send({ request: paused ? 'resume' : 'pause' }));
});
void refresh().then((known) => {
  idle('Ready.');
  // A link of another node leads to a recording of this one.
  const wanted = new URLSearchParams(window.location.search).get('play');
  const linked = known.find(({ id, node }) => String(id) === wanted && node === here);
  if (linked) void play(linked);
});
// Others record, too.
setInterval(() => !document.hidden && session && !recorder && void refresh(), REFRESH);

async function attached(): Promise<Call> {
  session ??= await connect(options.transport, lostServer);
  player ??= await Call.attach(session, 'janus.plugin.recordplay', events);
  return player;
}

/** Reads the list again, and returns it. */
async function refresh(): Promise<Recorded[]> {
  try {
    const data = await (await attached()).ask({ request: 'list' });
    if (data['error']) throw new Error(data['error']);
    here = data['node'] as string | undefined;
    list.show(data['list'] as Recorded[], here);
    list.playing(current);
    return data['list'] as Recorded[];
  } catch (error) {
    notice('error', session ? `The recordings cannot be listed: ${message(error)}` : serverAway(error));
    return [];
  }
}

async function record(): Promise<void> {
  recordButton.disabled = true;
  clearNotice();
  status('Connecting…');
  try {
    await attached();
    const wish = { name: name.value, source: source.value as SourceKind, codec: codec.value, format: format.value };
    element('recording-name').textContent = wish.name;
    element('passed').textContent = '0:00';
    recorder = await Recorder.begin(session as Session, wish, recorded);
    showRecorder(true);
    status('Recording.');
  } catch (error) {
    showRecorder(false);
    idle('Ready.');
    const synthetic = { label: 'Record a synthetic picture', id: 'use-synthetic', run: useSynthetic };
    if (error instanceof CaptureError) notice('warning', error.message, [synthetic]);
    else notice('error', session ? `Nothing is recorded: ${message(error)}` : serverAway(error));
  }
}

function useSynthetic(): void {
  source.value = 'synthetic';
  void record();
}

/** The recording has ended. */
function recorded(saved: boolean): void {
  recorder = null;
  showRecorder(false);
  status(saved ? 'Recorded.' : 'Ready.');
  if (saved) void refresh();
}

function showRecorder(recording: boolean): void {
  element('setup').hidden = recording;
  element('recorder').hidden = !recording;
  recordButton.disabled = recording;
}

async function play(recording: Recorded): Promise<void> {
  clearNotice();
  if (current) {
    // The server hangs up when it has stopped; the other one follows then.
    next = recording;
    return run(player?.send({ request: 'stop' }));
  }
  current = recording;
  status('Connecting…');
  list.playing(recording);
  try {
    await (await attached()).send({ request: 'play', id: recording.id });
  } catch (error) {
    failed(message(error));
  }
}

const events: CallEvents = {
  message: (data, jsep) => {
    if (data['error']) return failed(`The server says: ${data['error']} (${data['error_code']})`);
    const result = data['result'] ?? {};
    if (result.warning) notice('warning', result.warning);
    if (jsep) void answer(jsep, result.duration);
    switch (result.status) {
      case 'paused':
        return showPaused(true);
      case 'resumed':
        return showPaused(false);
      case 'seeking':
        return position.goesOn(result.position / 1000);
      case 'done':
        tiles.pause(true);
        return status('Played.');
    }
  },
  connected: (up, ending) => {
    if (up) {
      status('Playing.');
      position.goesOn(0);
      if (goOnAt > 0) run(player?.send({ request: 'seek', position: Math.round(goOnAt * 1000) }));
      goOnAt = 0;
    } else if (current && ending && !wasWanted(ending)) {
      const what = current;
      endNotice('Playing has ended.', ending, { label: 'Play again', id: 'again', run: () => { clearNotice(); void play(what); } });
    }
  },
  localTrack: () => {},
  remoteTrack: (track, on, mid) => tiles.track(track, on, mid, current?.name ?? ''),
  dataOpen: () => {},
  data: () => {},
  slowLink: (uplink, lost) => {
    if (!uplink) notice('warning', `${lost} packets from the server were lost lately.`);
  },
  ended,
};

async function answer(offer: Jsep, duration?: number): Promise<void> {
  const live = player;
  if (!live || !current) return;
  try {
    const ours = await live.receive(offer);
    await live.send({ request: 'start' }, ours);
    element('player').hidden = false;
    tiles.start(() => live.peerConnection);
    element('player-title').textContent = current.name;
    position.show(duration === undefined ? undefined : duration / 1000);
    showPaused(false);
    element('player').scrollIntoView({ block: 'nearest' });
  } catch (error) {
    failed(`The offer could not be answered: ${message(error)}`);
    run(player?.send({ request: 'stop' }));
  }
}

function showPaused(paused: boolean): void {
  press(pause, paused, paused ? 'Go on' : 'Pause');
  position.stand(paused);
  tiles.pause(paused);
}

/** Nothing is played any more. */
function ended(): void {
  tiles.clear();
  position.show(undefined);
  element('player').hidden = true;
  current = null;
  list.playing(null);
  const follows = next;
  next = null;
  if (follows) void play(follows);
}

function failed(text: string): void {
  notice('error', text);
  idle('Ready.');
  if (element('player').hidden) ended();
}

/** Comes back once there is a server, and goes on with what was played. What was recorded stays as far as it came. */
function lostServer(reason: string): void {
  const [before, at, recording] = [next ?? current, next ? 0 : position.now, recorder !== null];
  session = null;
  player = null;
  next = null;
  recorder?.lost();
  ended();
  notice('error', serverAway(reason));
  const attempt = async (): Promise<void> => {
    session = await connect(options.transport, lostServer);
    clearNotice();
    const known = await refresh();
    if (recording) {
      notice('warning', 'The server was started anew, which has ended the recording. What came before is in the list.', [
        { label: 'Record again', id: 'record-again', run: () => void record() },
      ]);
    }
    const same = before && known.find(({ id, node }) => id === before.id && node === before.node);
    if (!same || current || recorder) return;
    goOnAt = at;
    void play(same);
  };
  void comeBack({ isWanted: () => session === null, attempt });
}

function run(sending: Promise<void> | undefined): void {
  sending?.catch((error: unknown) => notice('error', message(error)));
}

function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
