// Requests to the server. The token is behind '#' of the first address, stays in this tab, and is sent as a header.

const given = new URLSearchParams(location.hash.slice(1)).get("t");
if (given) {
  sessionStorage.setItem("octet-token", given);
  history.replaceState(null, "", location.pathname);
}
const headers = () => {
  const token = sessionStorage.getItem("octet-token");
  return token ? { Authorization: "Bearer " + token } : {};
};

export async function get(path) {
  const answer = await fetch(path, { headers: headers(), cache: "no-store" });
  const type = answer.headers.get("Content-Type") ?? "";
  const body = type.startsWith("application/json") ? await answer.json() : { error: await answer.text() };
  if (!answer.ok) throw new Error(body.error ?? "status " + answer.status);
  return body;
}

export const has_token = () => sessionStorage.getItem("octet-token") !== null;
export async function file(path) {
  const answer = await fetch(path, { headers: headers(), cache: "no-store" });
  if (!answer.ok) throw new Error((await answer.text()).trim());
  return answer.blob();
}

// Server-sent events by fetch, since EventSource sends no header. Calls take(name, data); returns a function that ends it.
export function follow(path, take, state) {
  const control = new AbortController();
  let from = null;
  (async () => {
    for (let wait = 500; !control.signal.aborted; wait = Math.min(2 * wait, 10000)) {
      try {
        const address = from === null ? path : path + "?from=" + from;
        const answer = await fetch(address, { headers: headers(), signal: control.signal, cache: "no-store" });
        if (!answer.ok) throw new Error((await answer.text()).trim());
        state(true, "");
        wait = 500;
        await read(answer.body.getReader(), (id, name, data) => {
          if (id) from = id;
          take(name, data);
        });
      } catch (error) {
        if (control.signal.aborted) return;
        state(false, String(error.message ?? error));
      }
      await new Promise((done) => setTimeout(done, wait));
    }
  })();
  return () => control.abort();
}

async function read(reader, take) {
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += decoder.decode(value, { stream: true });
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const fields = {};
      for (const line of text.slice(0, end).split("\n")) {
        const colon = line.indexOf(": ");
        if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 2);
      }
      text = text.slice(end + 2);
      if (fields.event) take(fields.id, fields.event, JSON.parse(fields.data));
    }
  }
}
