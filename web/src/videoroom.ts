// The video room page: choose or make a room, look at oneself, join it, leave it.
import { Exchange } from './exchange';
import { value } from './lobby';
import { element, pageOptions } from './page';
import { Preview } from './preview';
import { CODES, explain, VIDEO_ROOM, type Listed } from './room/api';
import { Conference } from './room/conference';
import { RoomPage } from './roompage';
import { Setup } from './setup';

const options = pageOptions();
// Several sizes are the rule in a room; `?simulcast=0` sends one.
if (!new URLSearchParams(window.location.search).has('simulcast') && !options.sending) options.sending = 'simulcast';
const setup = new Setup(options);
const preview = new Preview(setup, () => value('source'));

const conference = new Conference(setup, (why) => page.left(why));
const page = new RoomPage<Listed>({
  file: 'videoroom.html',
  codes: CODES,
  attach: (session) => Exchange.attach(session, VIDEO_ROOM, { message: () => {}, connected: () => {} }),
  about: ({ max_publishers }) => `up to ${max_publishers} can send`,
  creation: () => ({
    publishers: Number(value('new-publishers')) || 6,
    bitrate: Number(value('new-bitrate')) * 1000,
    videocodec: value('new-codecs'),
    notify_joining: true,
    audiolevel_event: true,
    dominant_speaker: true,
  }),
  enter: (session, { room, name, pin, secret }) => {
    preview.stop();
    return conference.enter(session, { room, display: name, pin }, secret, preview.muted);
  },
  entered: () => {
    document.body.classList.add('in-meeting');
    setup.moveDevices(element('room-devices'));
    element('room-title').focus();
  },
  stands: (standing) => conference.stands(standing),
  leave: async () => conference.close(),
  close: () => conference.close(),
  suspend: () => conference.suspend(),
  away: () => {
    document.body.classList.remove('in-meeting');
    setup.moveDevices(element('setup-fields'));
    void preview.startIfAllowed();
  },
  explain,
});
