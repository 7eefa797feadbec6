"use strict";
// Passes the requests of the page to the server. All paths are relative to the page's URL, which
// contains the token.
const rovelogSource = {
  ask: async (path, signal) => {
    const answer = await fetch(path, { signal });
    if (answer.ok) return { bytes: await answer.arrayBuffer(), lost: answer.headers.get("rovelog-lost") };
    const found = await answer.json().catch(() => ({}));
    throw new Error(found.error || `${answer.status} ${answer.statusText}`);
  },
  show: (image, path) => { image.src = path; },
};
