// The streaming page: lists mountpoints, plays one, shows its figures and layers.
import { Call, type CallEvents } from './call';
import type { MountpointInfo, StreamInfo } from './feed';
import { FiguresPanel } from './figures';
import { LayerChoice } from './layers';
import { copyLink } from './link';
import { isLive, MountpointList, type Listed } from './mountpoints';
import { clearNotice, element, endNotice, idle, notice, pageOptions, press, serverAway, showCall, status } from './page';
import { PositionBar } from './position';
import { connect, type Jsep, type Session } from './session';
import { Player, type Playing } from './player';
import { wasWanted, type Ending } from './ending';
import { Patience } from './patience';

/** How often the list is read again, in milliseconds. */
const REFRESH = 3000;

/** How long the server may take to stop, in milliseconds. */
const STOP_LIMIT = 2000;

/** The plugin's codes of a PIN that is missing or wrong. */
const PIN_NEEDED = [453, 457];
/** The plugin's code of a mountpoint of which it is not known what it will send, since nobody has published yet. */
const NOTHING_YET = 452;

const options = pageOptions();
const player = new Player(element('tiles'), (playing, words) => shows(playing, words));
const patience = new Patience();
const figures = new FiguresPanel(element('figures'), { receiveOnly: true, more: element('more-figures') });
const layers = new LayerChoice(element('layers'), (settings) => run(call?.send({ request: 'configure', ...settings })));
const list = new MountpointList(element('streams'), element('none'), {
  play: (mountpoint, pin) => void play(mountpoint, pin),
  info: async (mountpoint, secret) => (await ask({ request: 'info', id: mountpoint.id, ...(secret && { secret }) }))['info'] as MountpointInfo,
});
const position = new PositionBar(element('position'), (position) => run(call?.send({ request: 'seek', position })));
const pause = element<HTMLButtonElement>('pause');
/** The user has stopped it. */
let stopped = false;
/** Who has paused wants to go on. */
let goesOn = false;

let session: Session | null = null;
let call: Call | null = null;
/** The present mountpoint and its streams. */
let current: { mountpoint: Listed; pin?: string; streams: StreamInfo[]; duration?: number } | null = null;
/** What was played when the server went away: it is played again when the server is back. */
let comeBack: { id: number | string; pin?: string } | null = null;
/** What is played as soon as somebody publishes to it. */
let awaited: { id: number | string; pin?: string } | null = null;
/** The mountpoint to play once the former has stopped. */
let next: { mountpoint: Listed; pin?: string } | null = null;
let timer: ReturnType<typeof setTimeout> | undefined;
let stopping: ReturnType<typeof setTimeout> | undefined;

element('stop').addEventListener('click', () => stop());
element('copy-link').addEventListener('click', () => void copyLink('streaming.html', 'play', String(current?.mountpoint.id)));
element('embed').addEventListener('click', () => {
  const field = element<HTMLInputElement>('embed-code');
  const address = new URL('streaming.html', window.location.href);
  address.search = new URLSearchParams({ play: String(current?.mountpoint.id), embed: '1' }).toString();
  field.value = `<iframe src="${address.href.replace(/&/g, '&amp;')}" allow="autoplay; fullscreen" width="640" height="400"></iframe>`;
  field.hidden = !field.hidden;
  field.select();
});
pause.addEventListener('click', () => {
  goesOn = pause.getAttribute('aria-pressed') === 'true';
  run(call?.send({ request: goesOn ? 'start' : 'pause' }));
});
for (const kind of ['rtp', 'whip'] as const) element(`try-${kind}`).addEventListener('click', () => void tryOut(kind));
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) void refresh();
});
void refresh();

/** Reads the list, now and every few seconds while the page is seen. */
async function refresh(): Promise<void> {
  clearTimeout(timer);
  try {
    const first = !call;
    const { list: mountpoints } = await ask({ request: 'list' });
    list.show(mountpoints as Listed[]);
    list.playing(current?.mountpoint.id ?? null);
    if (first) {
      clearNotice();
      idle('Ready.');
      playAsked(mountpoints as Listed[]);
      const before = comeBack && (mountpoints as Listed[]).find(({ id }) => id === comeBack?.id);
      if (before && !current) void play(before, comeBack?.pin);
      comeBack = null;
    }
    const begun = awaited && (mountpoints as Listed[]).find((one) => one.id === awaited?.id && isLive(one));
    if (begun && !current) void play(begun, awaited?.pin);
  } catch (error) {
    if (!session) notice('error', serverAway(error));
    else notice('error', `The streams cannot be listed: ${message(error)}`);
  }
  if (!document.hidden) timer = setTimeout(() => void refresh(), REFRESH);
}

/** Makes a mountpoint for somebody who has none yet, and shows how to feed it. */
async function tryOut(kind: 'rtp' | 'whip'): Promise<void> {
  const streams = [
    { type: 'audio', mid: 'a', ...(kind === 'rtp' && { port: 0, codec: 'opus' }) },
    { type: 'video', mid: 'v', ...(kind === 'rtp' && { port: 0, codec: 'vp8' }) },
  ];
  try {
    const request = { request: 'create', type: kind, description: 'Try-out', bufferkf_ms: 10_000, media: streams };
    const { stream } = await ask(request);
    await refresh();
    list.showFeeds(stream.id);
  } catch (error) {
    notice('error', `There is no new stream: ${message(error)}`);
  }
}

/** `?play=ID` plays at once; without a touch of the user there is no sound in most browsers. */
function playAsked(mountpoints: Listed[]): void {
  const id = new URLSearchParams(window.location.search).get('play');
  const wanted = mountpoints.find((mountpoint) => String(mountpoint.id) === id);
  if (wanted && !current) void play(wanted);
  else if (id !== null && !wanted) notice('warning', `There is no stream ${id}. Whoever runs the server may have removed it.`);
}

async function ask(body: Record<string, unknown>): Promise<Record<string, any>> {
  const data = await (await attached()).ask(body);
  if (data['error']) throw new Error(data['error']);
  return data;
}

async function attached(): Promise<Call> {
  session ??= await connect(options.transport, lostServer);
  call ??= await Call.attach(session, 'janus.plugin.streaming', events);
  return call;
}

async function play(mountpoint: Listed, pin?: string): Promise<void> {
  clearNotice();
  awaited = null;
  if (current) {
    // One handle watches one mountpoint: the other follows when this one has ended.
    next = { mountpoint, pin };
    return stop();
  }
  current = { mountpoint, pin, streams: mountpoint.media ?? [] };
  stopped = false;
  status('Connecting…');
  list.playing(mountpoint.id);
  try {
    const live = await attached();
    const { info } = await live.ask({ request: 'info', id: mountpoint.id });
    if (info?.media) current.streams = info.media;
    current.duration = info?.duration;
    await live.send({ request: 'watch', id: mountpoint.id, ...(pin && { pin }) });
  } catch (error) {
    failed(message(error));
  }
}

/** The server hangs up when it has stopped. Hanging up before would let its hangup end whatever is played next. */
function stop(): void {
  stopped = true;
  run(call?.send({ request: 'stop' }));
  clearTimeout(stopping);
  stopping = setTimeout(() => call?.hangup(), STOP_LIMIT);
}

const events: CallEvents = {
  message: (data, jsep) => {
    if (data['error']) return failed(data['error'], data['error_code']);
    if (data['event'] === 'edited') return void refresh();
    if (String(data['event']).startsWith('rtsp-')) {
      notice('warning', data['event'] === 'rtsp-disconnected' ? 'The source is away; the server tries again.' : 'The source is back.');
    }
    const result = data['result'] ?? {};
    if (jsep) void answer(jsep, result.status === 'updating');
    const text = layers.update(result);
    if (text) figures.layer(text);
    switch (result.status) {
      case 'started':
      case 'starting':
        // It tells of a connection that came up, too, and answers what nobody has pressed: who has paused stays so.
        if (goesOn) showPaused(false);
        goesOn = false;
        return;
      case 'pausing':
        return showPaused(true);
      case 'seeking':
        return position.goesOn(result.position);
      case 'stopped':
        if (current && !stopped) notice('info', 'The stream is gone: whoever runs the server has removed it.');
        break;
      case 'kicked_all':
        notice('info', 'The server has ended this stream for all viewers.');
        break;
    }
  },
  connected: (up, ending) => {
    patience.stop();
    if (!up && current && ending) over(current.mountpoint, ending);
  },
  restart: async (live) => live.send({ request: 'watch', id: current?.mountpoint.id, restart: true }),
  localTrack: () => {},
  remoteTrack: (track, on, mid) => player.track(track, on, mid, labelOf(mid)),
  dataOpen: () => {},
  data: (data) => line(typeof data === 'string' ? data : `${(data as ArrayBuffer).byteLength} bytes`),
  slowLink: (uplink, lost) => {
    if (!uplink) notice('warning', `${lost} packets from the server were lost lately.`);
  },
  ended,
};

async function answer(offer: Jsep, update: boolean): Promise<void> {
  const live = call;
  if (!live || !current) return;
  try {
    const ours = await live.receive(offer);
    // It may come up before the server has answered.
    if (!update) patience.start();
    await live.send({ request: 'start' }, ours);
    if (update) return;
    showPlayer(current);
    figures.start(() => live.peerConnection);
    player.start(() => live.peerConnection);
  } catch (error) {
    failed(`The offer could not be answered: ${message(error)}`);
    stop();
  }
}

function showPlayer({ mountpoint, streams, duration }: NonNullable<typeof current>): void {
  element('player').hidden = false;
  showCall(true);
  element('player-title').textContent = mountpoint.description;
  element('messages').hidden = !streams.some((stream) => stream.type === 'data');
  element('log').replaceChildren();
  layers.show(streams);
  position.show(duration);
  goesOn = false;
  showPaused(false);
  element('player').scrollIntoView({ block: 'nearest' });
}

/** The connection has ended while a mountpoint was played. */
function over(mountpoint: Listed, ending: Ending): void {
  if (wasWanted(ending) || next) return;
  endNotice('Playing has ended.', ending, { label: 'Play again', id: 'again', run: () => void play(mountpoint) });
}

/** Something else becomes of what is played. */
function shows(playing: Playing, words: string): void {
  if (!current) return;
  position.stand(playing !== 'playing');
  list.playing(current.mountpoint.id, playing === 'stopped' || playing === 'waiting' ? 'Waiting' : 'Playing');
  status(playing === 'playing' ? 'Playing.' : words);
}

function showPaused(paused: boolean): void {
  player.pause(paused);
  press(pause, paused, paused ? 'Go on' : 'Pause');
}

function labelOf(mid: string): string {
  const stream = current?.streams.find((stream) => stream.mid === mid);
  return stream?.label ?? stream?.type ?? 'video';
}

function line(text: string): void {
  const log = element('log');
  const item = document.createElement('p');
  item.className = 'received';
  item.textContent = text;
  log.append(item);
  while (log.childElementCount > 100) log.firstElementChild?.remove();
  log.scrollTop = log.scrollHeight;
}

function failed(text: string, code?: number): void {
  const mountpoint = current?.mountpoint;
  if (code !== undefined && PIN_NEEDED.includes(code) && mountpoint) {
    notice('info', 'This stream asks for a PIN.');
    ended();
    list.askPin(mountpoint.id);
    return;
  }
  if (code === NOTHING_YET && mountpoint) {
    const { pin } = current ?? {};
    ended();
    awaited = { id: mountpoint.id, pin };
    return notice('info', `Nobody sends to “${mountpoint.description}” yet. It plays as soon as somebody does.`);
  }
  notice('error', `The server says: ${text}${code ? ` (${code})` : ''}`);
  if (!call?.peerConnection) ended();
}

function ended(): void {
  clearTimeout(stopping);
  patience.stop();
  player.clear();
  figures.stop();
  position.show(undefined);
  element('player').hidden = true;
  showCall(false);
  current = null;
  list.playing(null);
  idle('Ready.');
  if (next) {
    const { mountpoint, pin } = next;
    next = null;
    void play(mountpoint, pin);
  }
}

function lostServer(reason: string): void {
  const before = next ?? current;
  session = null;
  call?.hangup();
  call = null;
  next = null;
  ended();
  notice('error', serverAway(reason));
  if (before) comeBack = { id: before.mountpoint.id, pin: before.pin };
}

function run(work: Promise<void> | undefined): void {
  work?.catch((error: unknown) => notice('error', `That did not work: ${message(error)}`));
}

function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
