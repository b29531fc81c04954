// The echo test page: what is sent comes back.
import { Call, type CallEvents } from './call';
import type { Capture } from './capture';
import { Controls, ReceivedLayers } from './controls';
import { wasWanted, type Ending } from './ending';
import { FiguresPanel } from './figures';
import { choose, clearNotice, element, endNotice, idle, notice, pageOptions, serverAway, showCall, status } from './page';
import { comeBack } from './return';
import { connect, type Session } from './session';
import { Setup } from './setup';
import { Stage } from './stage';
import { Patience } from './patience';

const options = pageOptions();
choose(element<HTMLSelectElement>('bitrate'), options.bitrate);
const setup = new Setup(options);
const stage = new Stage();
const figures = new FiguresPanel(element('figures'), { more: element('more-figures') });
const restart = async (live: Call) => live.send({}, await live.restartOffer());
const controls = new Controls({
  call: () => call,
  configure: async (settings) => call?.send(settings),
  restart,
});
const patience = new Patience();

let session: Session | null = null;
let call: Call | null = null;
let capture: Capture | null = null;
let layers = new ReceivedLayers();
/** The user has hung up. */
let hungUp = false;
/** Counts what the user does: whether a server that was away is still waited for. */
let turn = 0;

const startButton = element<HTMLButtonElement>('start');
startButton.addEventListener('click', () => {
  turn += 1;
  void start();
});
element('hangup').addEventListener('click', () => {
  hungUp = true;
  call?.hangup();
});
idle('Ready.');

async function start(): Promise<void> {
  startButton.disabled = true;
  hungUp = false;
  try {
    capture = await setup.capture(() => void start());
    if (!capture) return;
    status('Connecting…');
    session ??= await connect(options.transport, lostServer);
    call ??= await Call.attach(session, 'janus.plugin.echotest', events);
    const offer = await call.offer(capture.stream, setup.sendOptions);
    patience.start();
    await call.send(
      {
        audio: true,
        video: true,
        bitrate: controls.bitrateCap,
        ...(setup.videoCodec && { videocodec: setup.videoCodec }),
        ...(options.audioCodec && { audiocodec: options.audioCodec }),
      },
      offer,
    );
    showLive(true);
  } catch (error) {
    notice('error', session ? `The call could not be started: ${String(error)}` : serverAway(error));
    if (call?.peerConnection) call.hangup();
    else ended();
  } finally {
    startButton.disabled = false;
  }
}

const events: CallEvents = {
  message: (data, jsep) => {
    if (jsep) call?.accept(jsep).catch((error: unknown) => notice('error', `The server’s answer was refused: ${String(error)}`));
    if (data['error']) notice('error', `The server says: ${data['error']} (${data['error_code']})`);
    if (data['event'] === 'slow_link') notice('warning', `The server misses ${data['media']} packets: the network is slow or busy.`);
    const text = layers.update(data);
    if (text) figures.layer(text);
  },
  connected: (up, ending) => {
    patience.stop();
    if (!up) return over(ending);
    status(`Connected by ${session?.transport}: the second picture has been to the server and back.`);
    const { simulcast, svc } = setup.sendOptions;
    controls.showLayers(simulcast ? 'simulcast' : svc ? 'svc' : null);
  },
  restart,
  localTrack: (track, on) => stage.localTrack(track, on),
  remoteTrack: (track, on) => stage.remoteTrack(track, on),
  dataOpen: () => controls.enableText(true),
  data: (data) => controls.received(data),
  slowLink: (uplink, lost) => {
    if (!uplink) notice('warning', `${lost} packets from the server were lost lately.`);
  },
  ended,
};

/** The server says that the connection is over, and why. */
function over(ending?: Ending): void {
  if (hungUp || !ending) return;
  if (wasWanted(ending)) return notice('info', 'The echo test is over.');
  endNotice('The echo test has ended.', ending, { label: 'Try again', id: 'again', run: () => { clearNotice(); void start(); } });
}

function ended(): void {
  patience.stop();
  showLive(false);
  stage.clear();
  capture?.close();
  for (const track of capture?.stream.getTracks() ?? []) track.stop();
  capture = null;
  idle('Ready.');
}

function lostServer(reason: string): void {
  const isLive = call?.peerConnection != null;
  session = null;
  call?.hangup();
  call = null;
  ended();
  notice('error', serverAway(reason), [{ label: 'Try again', id: 'again', run: () => { turn += 1; clearNotice(); void start(); } }]);
  if (isLive) void returnToCall();
}

/** Starts again, once there is a server. */
async function returnToCall(): Promise<void> {
  const own = (turn += 1);
  const isWanted = (): boolean => turn === own;
  status('Reconnecting…');
  const failure = await comeBack({
    isWanted,
    attempt: async () => {
      session = await connect(options.transport, lostServer);
      if (!isWanted()) return;
      clearNotice();
      void start();
    },
  });
  if (failure !== undefined) idle('Ready.');
}

function showLive(live: boolean): void {
  element('setup').hidden = live;
  showCall(live);
  layers = new ReceivedLayers();
  if (live) {
    controls.start();
    figures.start(() => call?.peerConnection ?? null);
  } else {
    controls.stop();
    figures.stop();
  }
}
