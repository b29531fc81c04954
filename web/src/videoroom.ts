// The video room page: choose or make a room, join it, leave it.
import { Exchange } from './exchange';
import { value } from './lobby';
import { choose, element, pageOptions } from './page';
import { CODES, explain, VIDEO_ROOM, type Listed } from './room/api';
import { Conference } from './room/conference';
import { RoomPage } from './roompage';
import { Setup } from './setup';

const query = new URLSearchParams(window.location.search);
const options = pageOptions();
// Several sizes are the rule in a room; `?simulcast=0` sends one.
if (!query.has('simulcast') && !options.sending) options.sending = 'simulcast';
const setup = new Setup(options);
choose(element<HTMLSelectElement>('follow'), query.get('last') ?? '');

const conference = new Conference(setup, (why) => page.left(why));
const page = new RoomPage<Listed>({
  file: 'videoroom.html',
  codes: CODES,
  attach: (session) => Exchange.attach(session, VIDEO_ROOM, { message: () => {}, connected: () => {} }),
  about: ({ max_publishers }) => `up to ${max_publishers} send`,
  creation: () => ({
    publishers: Number(value('new-publishers')) || 6,
    bitrate: Number(value('new-bitrate')) * 1000,
    videocodec: value('new-codecs'),
    notify_joining: true,
    audiolevel_event: true,
    dominant_speaker: true,
  }),
  enter: (session, { room, name, pin, secret }) => conference.enter(session, { room, display: name, pin }, secret),
  entered: () => {
    setup.moveDevices(element('room-devices'));
    element('room-title').focus();
  },
  leave: () => conference.leave(),
  close: () => conference.close(),
  away: () => setup.moveDevices(element('setup-fields')),
  explain,
});
