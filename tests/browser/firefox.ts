// How Firefox is started: with devices that it makes up.
import type { LaunchOptions } from '@playwright/test';

export const FIREFOX_LAUNCH: LaunchOptions = {
  executablePath: process.env.FIREFOX ?? '/usr/bin/firefox-esr',
  firefoxUserPrefs: {
    'media.navigator.streams.fake': true,
    'media.navigator.permission.disabled': true,
    'media.autoplay.default': 0,
    // Tabs in the back are as good as the one in front.
    'media.devices.unfocused.enabled': true,
    'media.block-autoplay-until-in-foreground': false,
    'dom.min_background_timeout_value': 4,
    // Lets the tests run on a machine that has no other network interface.
    'media.peerconnection.ice.loopback': true,
  },
};
