// A meeting: camera, microphone, screen, names and chat.
import { Room, RoomEvent, Track } from 'livekit-client';

const element = (id) => document.getElementById(id);
const say = (text) => { element('status').textContent = text; };

/** The layers that are received fit the size of the pictures, and those that nobody sees are not sent. */
const room = new Room({ adaptiveStream: true, dynacast: true });

/** Returns where something of a participant is shown: `camera` or `screen`. */
function tile(participant, of) {
  const id = `${of} of ${participant.identity}`;
  const found = document.getElementById(id);
  if (found) return found;
  const made = document.createElement('figure');
  made.id = id;
  made.append(document.createElement('figcaption'));
  element('people').append(made);
  return made;
}

/** Shows what there is of a participant now. */
function show(participant) {
  const name = participant.name || participant.identity;
  const muted = participant.isMicrophoneEnabled ? '' : ' (muted)';
  const own = participant === room.localParticipant;
  tile(participant, 'camera').firstChild.textContent = `${name}${own ? ' (you)' : ''}${muted}`;
  tile(participant, 'camera').classList.toggle('speaking', participant.isSpeaking);
  for (const [of, source] of [['camera', Track.Source.Camera], ['screen', Track.Source.ScreenShare]]) {
    const publication = participant.getTrackPublication(source);
    const track = publication?.isMuted ? undefined : publication?.videoTrack;
    if (!track && of === 'screen') document.getElementById(`screen of ${participant.identity}`)?.remove();
    if (!track && of === 'camera') tile(participant, of).querySelector('video')?.remove();
    if (!track) continue;
    const shown = tile(participant, of);
    if (of === 'screen') shown.firstChild.textContent = `The screen of ${name}`;
    if (shown.querySelector('video')) track.attach(shown.querySelector('video'));
    else shown.prepend(track.attach());
  }
  if (own) {
    element('microphone').ariaPressed = String(participant.isMicrophoneEnabled);
    element('camera').ariaPressed = String(participant.isCameraEnabled);
    element('screen').ariaPressed = String(participant.isScreenShareEnabled);
  }
}

const everybody = () => [room.localParticipant, ...room.remoteParticipants.values()];
const showAll = () => everybody().forEach(show);

function hide(participant) {
  for (const of of ['camera', 'screen']) document.getElementById(`${of} of ${participant.identity}`)?.remove();
}

function write(name, text) {
  const line = document.createElement('li');
  line.textContent = `${name}: ${text}`;
  element('messages').append(line);
  line.scrollIntoView();
}

for (const event of [
  RoomEvent.ParticipantConnected, RoomEvent.ParticipantNameChanged, RoomEvent.TrackMuted, RoomEvent.TrackUnmuted, RoomEvent.TrackUnsubscribed,
  RoomEvent.LocalTrackPublished, RoomEvent.LocalTrackUnpublished, RoomEvent.ActiveSpeakersChanged,
]) room.on(event, showAll);
room.on(RoomEvent.TrackSubscribed, (track) => {
  // Sound is heard without a place on the page.
  if (track.kind === Track.Kind.Audio) track.attach();
  showAll();
});
room.on(RoomEvent.ParticipantDisconnected, hide);
room.on(RoomEvent.Reconnecting, () => say('The connection is lost. Trying again …'));
room.on(RoomEvent.Reconnected, () => say(`In ${room.name}`));
room.on(RoomEvent.Disconnected, () => {
  say('You have left.');
  element('people').replaceChildren();
  [element('meeting').hidden, element('join').hidden] = [true, false];
});
room.registerTextStreamHandler('chat', async (reader, { identity }) => {
  write(room.getParticipantByIdentity(identity)?.name ?? identity, await reader.readAll());
});

/** Runs something, and says what went wrong. */
const attempt = (action) => async (event) => {
  event.preventDefault();
  await Promise.resolve(action(event)).catch((error) => say(error.message));
  if (room.state === 'connected') showAll();
};

element('join').addEventListener('submit', attempt(async ({ target }) => {
  const answer = await fetch(`token?${new URLSearchParams(new FormData(target))}`);
  if (!answer.ok) throw new Error(await answer.text());
  const { url, token } = await answer.json();
  await room.connect(url, token);
  say(`In ${room.name}`);
  [element('meeting').hidden, element('join').hidden] = [false, true];
  showAll();
  await room.localParticipant.enableCameraAndMicrophone();
}));
const me = room.localParticipant;
element('microphone').addEventListener('click', attempt(() => me.setMicrophoneEnabled(!me.isMicrophoneEnabled)));
element('camera').addEventListener('click', attempt(() => me.setCameraEnabled(!me.isCameraEnabled)));
element('screen').addEventListener('click', attempt(() => me.setScreenShareEnabled(!me.isScreenShareEnabled)));
element('leave').addEventListener('click', attempt(() => room.disconnect()));
element('chat').addEventListener('submit', attempt(async ({ target }) => {
  const { text } = target.elements;
  await me.sendText(text.value, { topic: 'chat' });
  write(me.name, text.value);
  text.value = '';
}));
