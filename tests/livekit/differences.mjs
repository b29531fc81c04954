// Differences to livekit-server that are meant, with their reasons. Patterns are regular expressions of whole texts.

/** @type {{ session?: string, step?: string, path?: string, reason: string }[]} */
export const KNOWN = [];
