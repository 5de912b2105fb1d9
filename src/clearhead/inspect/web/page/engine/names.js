// Names of tensors as paths through the model, as in inspect/paths.py and names.py. What Python knows about each name
// (its kind, its axes, what it is computed from) is in the run's run.json.

export const kindOf = (name) => name.slice(name.lastIndexOf(".") + 1);

export const ownerOf = (name) => name.slice(0, Math.max(0, name.lastIndexOf(".")));

// The part of the model that a name belongs to: "encoder.blocks.0", or "encoder", "decoder", "head" outside.
export function blockOf(name) {
  const words = name.split(".");
  return words.slice(0, words[1] === "blocks" ? 3 : 1).join(".");
}

export const blockOutput = (block) => `${block}.feed_forward_add_norm`;

export const lastStack = ({ config }) => (config.family === "encoder-only" ? "encoder" : "decoder");

// The tensor that a model's output is.
export const outputOf = ({ config }) => (config.head === "embedding" ? "pooled" : "head.logits");

export function stackOf(run, name) {
  const found = run.about.stacks.find((stack) => stack.name === name);
  if (!found) throw new Error(`there is no stack '${name}'; there are ${run.about.stacks.map((each) => each.name).join(", ")}`);
  return found;
}

export const sideOfStack = (stack) => (stack === "encoder" ? "source" : "target");

// What is known about a tensor: {kind, parents, module, parameters}.
export function entryOf(run, name) {
  if (!run.tensors[name]) throw new Error(`there is no tensor '${name}'`);
  return run.tensors[name];
}

export const fullAxes = (run, name) => run.kinds[entryOf(run, name).kind].axes;

// What the axes of a tensor count, without the batch; "token" is left out where there is one vector for the whole text.
export function axesOf(run, name, dimensions) {
  const axes = fullAxes(run, name).filter((axis) => axis !== "batch");
  return axes.length === dimensions ? axes : axes.filter((axis) => axis !== "token");
}

// Which text's tokens an axis counts; "" for an axis that counts something else.
export function sideOf(run, name, axis) {
  if (!["token", "query", "key"].includes(axis)) return "";
  const readsSource = name.startsWith("encoder") || (axis === "key" && name.includes(".cross_attention."));
  return readsSource || run.config.family === "encoder-only" ? "source" : "target";
}

// The labels along an axis.
export function labelsOf(run, inputs, name, axis, size) {
  const side = sideOf(run, name, axis);
  if (side) return inputs.tokens[side];
  if (axis === "word") return vocabulary(run, size);
  if (axis === "class" && run.about.labels.length) return run.about.labels;
  if (axis === "part") return ["cosine", "sine"];
  const numbers = Array.from({ length: size }, (_, i) => i);
  if (axis !== "head") return numbers.map(String);
  const shared = run.config.heads / size; // query heads that share one key/value head
  return numbers.map((i) => (shared > 1 ? `heads ${i * shared}–${(i + 1) * shared - 1}` : `head ${i}`));
}

const vocabularies = new WeakMap();

// Every token of the target's vocabulary as readable text.
function vocabulary({ tokenizers: { target } }, size) {
  if (!vocabularies.has(target)) vocabularies.set(target, Array.from({ length: size }, (_, id) => word(target, id)));
  return vocabularies.get(target);
}

export const word = (tokenizer, id) => (id < tokenizer.size ? tokenizer.piece(id) : `unused ${id}`);

// Whether a name has the form of a pattern, in which * stands for anything.
export function matches(name, pattern) {
  if (!/[*?[]/.test(pattern)) return name === pattern;
  const form = pattern.replace(/[.+^${}()|\\]/g, "\\$&").replace(/\*/g, ".*").replace(/\?/g, ".").replace(/\[!/g, "[^");
  return new RegExp(`^${form}$`, "s").test(name);
}

// A whole number below a limit, from the text of a request.
export function whole(name, value, limit) {
  if (!/^\d{1,8}$/.test(value) || Number(value) >= limit) {
    throw new Error(`${name} = '${value}': expected 0 to ${limit - 1}`);
  }
  return Number(value);
}
