// The page to translate, generate, chat, classify and embed with the selected run.
const $ = (id) => document.getElementById(id);
let models = [];
let messages = [];
let running = null;

function headers() {
  const key = $("key").value;
  return { "Content-Type": "application/json", ...(key && { Authorization: `Bearer ${key}` }) };
}

async function ask(path, body) {
  running = new AbortController();
  const response = await fetch(path, {
    method: "POST", headers: headers(), body: JSON.stringify(body), signal: running.signal,
  });
  if (!response.ok) throw new Error((await response.json()).error.message);
  return response;
}

function say(text, kind) {
  const element = document.createElement("div");
  element.className = `said ${kind}`;
  $("log").append(element);
  add(element, text);
  return element;
}

function add(element, text) {
  element.textContent += text;
  element.scrollIntoView({ block: "end" });
}

async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let pending = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (pending + value).split("\n\n");
    pending = parts.pop();
    for (const part of parts) {
      const data = part.replace(/^data: /, "");
      if (data === "[DONE]") return;
      const event = JSON.parse(data);
      if (event.error) throw new Error(event.error.message);
      yield event;
    }
  }
}

const verbs = {
  async translate(model, text) {
    const found = await (await ask("translate", { model, text })).json();
    say(found.translations[0][0].text, "model");
  },
  async generate(model, prompt) {
    const element = say(prompt, "model");
    for await (const event of events(await ask("generate", { model, prompt, stream: true }))) {
      add(element, event.text);
    }
  },
  async chat(model, content) {
    const own = messages; // another run begins another conversation
    own.push({ role: "user", content });
    const element = say("", "model");
    try {
      const response = await ask("v1/chat/completions", { model, messages: own, stream: true });
      for await (const event of events(response)) add(element, event.choices[0]?.delta.content ?? "");
    } finally {
      if (element.textContent.trim()) own.push({ role: "assistant", content: element.textContent });
      else own.pop();
    }
  },
  async classify(model, text) {
    const [found] = (await (await ask("classify", { model, text })).json()).classes;
    const rows = Object.entries(found.probabilities).sort((a, b) => b[1] - a[1]);
    say(rows.map(([label, p]) => `${label}: ${(100 * p).toFixed(1)} %`).join("\n"), "model");
  },
  async embed(model, text) {
    const [vector] = (await (await ask("embed", { model, text })).json()).vectors;
    say(`${vector.length} numbers: ${vector.slice(0, 8).map((x) => x.toFixed(3)).join(", ")} …`, "model");
  },
};

function chosen() {
  return models.find((model) => model.name === $("model").value);
}

function choose() {
  const model = chosen();
  running?.abort();
  messages = [];
  $("log").replaceChildren();
  $("send").textContent = model?.verb ?? "Send";
  $("send").disabled = !verbs[model?.verb];
  $("explore").href = `explore/${encodeURIComponent(model?.name ?? "")}/`;
}

$("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = $("text").value;
  $("text").value = "";
  $("send").hidden = true;
  $("stop").hidden = false;
  say(text, "user");
  try {
    await verbs[chosen().verb](chosen().name, text);
  } catch (error) {
    if (error.name !== "AbortError") say(error.message, "error");
  }
  $("send").hidden = false;
  $("stop").hidden = true;
  $("text").focus();
});
$("stop").addEventListener("click", () => running?.abort());
$("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey) {
    event.preventDefault();
    if (!$("send").disabled && !$("send").hidden) $("form").requestSubmit();
  }
});
$("model").addEventListener("change", choose);

const ready = await (await fetch("ready")).json();
models = ready.runs;
$("model").replaceChildren(...models.map((model) => new Option(`${model.name} (${model.task})`, model.name)));
$("key-label").hidden = !ready.key;
$("explore").hidden = ready.key;
choose();
