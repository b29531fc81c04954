/** Reads the claims of a token, unverified. */
export const decodeJwt = (token) => JSON.parse(Buffer.from(token.split('.')[1], 'base64url').toString());
