// All sessions by name. Each is a function of a run.
import { dispatches, workers } from './agents.mjs';
import { mediaOne, mediaTwo } from './media.mjs';
import { participants, rooms } from './rooms.mjs';
import { routes, bodies } from './twirp.mjs';
import { grants, tokens } from './tokens.mjs';
import { joins, tracks } from './signalling.mjs';

export const sessions = { tokens, grants, routes, bodies, rooms, participants, joins, tracks, dispatches, workers, mediaOne, mediaTwo };
