// Keeps a published page, so that it works offline after the first visit. Files come from the network if it is there.

const KEPT = "clearhead";

addEventListener("install", (event) => event.waitUntil(keepAll()));
addEventListener("activate", (event) => event.waitUntil(clients.claim()));
addEventListener("fetch", (event) => {
  if (event.request.method === "GET" && event.request.url.startsWith(registration.scope)) event.respondWith(load(event.request));
});

async function keepAll() {
  const files = await (await fetch("files.json")).json();
  await (await caches.open(KEPT)).addAll(files);
  await skipWaiting();
}

async function load(request) {
  const kept = await caches.open(KEPT);
  try {
    const response = await fetch(request);
    if (response.ok) kept.put(request, response.clone());
    return response;
  } catch (error) {
    const found = await kept.match(request, { ignoreSearch: true });
    if (found) return found;
    throw error;
  }
}
