// The text room page: choose or make a room, join it, leave it.
import { accepted, Refused } from './answer';
import { Call, type CallEvents } from './call';
import { value } from './lobby';
import { element } from './page';
import { RoomPage } from './roompage';
import { CODES, explain, type Listed } from './text/api';
import { Room } from './text/room';

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

const room = new Room((why) => page.left(why));
const page = new RoomPage<Listed>({
  file: 'textroom.html',
  codes: CODES,
  attach: async (session) => {
    const call = await Call.attach(session, 'janus.plugin.textroom', SILENT);
    return { ask: async (body) => accepted(await call.ask(body)) };
  },
  about: ({ history }) => (history > 0 ? `remembers ${history} messages` : ''),
  creation: () => ({ history: Number(value('new-history')) || 0 }),
  enter: (session, { room: id, name, pin, secret }) => room.enter(session, { room: id, username: name, pin }, secret),
  entered: (description) => {
    element('room-title').textContent = description;
    element('text-input').focus();
  },
  leave: () => room.leave(),
  close: () => room.close(),
  suspend: () => room.suspend(),
  away: () => {},
  explain,
  help: (error) => {
    const isTaken = error instanceof Refused && error.code === CODES.nameTaken;
    if (isTaken) element('name').focus();
    return false;
  },
});
