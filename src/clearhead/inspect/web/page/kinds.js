// Names of tensors, and what the tensors are. The table of kinds comes from the server with the run (see glass/kinds in the
// package); a trace has the place of each of its tensors in that table.

// What a tensor is: axes, and the view, title, brief and palette of its picture.
export function kindOf(trace, name) {
  return trace.kinds[trace.names[name]];
}

// The tensors that a view shows of a module, in the order of the table.
export function shownIn(view, trace, module) {
  const isInside = (name) => name === module || name.startsWith(`${module}.`);
  const found = Object.keys(trace.names).filter((name) => isInside(name) && kindOf(trace, name).view === view);
  return found.sort((a, b) => trace.names[a] - trace.names[b]);
}

// Where the page shows a tensor: in its own view, or in that of a module that it is part of.
export function whereIs(trace, name) {
  const words = name.split(".");
  const [stack, , layer, sublayer] = words;
  const paths = words.map((_, i) => words.slice(0, i + 1).join("."));
  const shown = paths.filter((path) => kindOf(trace, path)?.view);
  const view = shown.length ? kindOf(trace, shown[0]).view : stack === "head" ? "next" : "embedding";
  if (words.length === 2 && words[1] === "norm") return { view: "residual", stack }; // the final norm of a stack
  if (!name.includes(".blocks.")) return { view, stack };
  const where = { view, stack, layer: Number(layer), part: sublayer.replace("_add_norm", "") };
  return view === "attention" ? { ...where, stage: shown.length > 1 ? words[4] : "out" } : where;
}

export function sideOf(stack) {
  return stack === "encoder" ? "source" : "target";
}

// The sublayer that the state points at.
export function partName({ stack, layer, part }) {
  return `${stack}.blocks.${layer}.${part}`;
}

// The view that shows a sublayer.
export function viewOf(sublayer) {
  return sublayer === "feed_forward" ? "feedforward" : "attention";
}

// A sublayer in words: "Cross-attention".
export function titleOf(sublayer) {
  return sublayer[0].toUpperCase() + sublayer.slice(1).replaceAll("_", "-");
}

// The attentions of each block of a stack: ["attention", "cross_attention"].
export function attentionsOf({ sublayers }) {
  return sublayers.filter((sublayer) => viewOf(sublayer) === "attention");
}

// Which side's tokens are the queries and the keys of an attention.
export function sidesOfAttention({ stack, part }) {
  return [sideOf(stack), part === "cross_attention" ? "source" : sideOf(stack)];
}

// The states of the residual stream in a stack, from the input of the first block to the output of the last.
export function streamOf(run, stackName) {
  return run.stacks.find(({ name }) => name === stackName).stream;
}

// A part of the model that adds to a logit, in a few words: "block 1, cross-attention head 2".
export function partTitle(name) {
  const [path, head] = name.split(" head ");
  const words = path.split(".");
  const bias = words.at(-1) === "bias" ? ", bias" : "";
  const plain = (word) => word.replaceAll("_", "-").replace("-add-norm", "");
  if (words[0] === "head") return `logits${bias}`;
  if (words[1] !== "blocks") return `${words[1] === "norm" ? "final norm" : plain(words[1])}${bias}`;
  const norm = words[3].endsWith("_add_norm") ? ", norm" : "";
  return `block ${words[2]}, ${plain(words[3])}${norm}${head === undefined ? "" : ` head ${head}`}${bias}`;
}

// Where a state of the stream is, in a few words: "block 0, attention".
export function streamTitle(name) {
  const [, , layer, sublayer] = name.split(".");
  return sublayer ? `block ${layer}, ${sublayer.replace("_add_norm", "").replaceAll("_", "-")}` : "embedding";
}
