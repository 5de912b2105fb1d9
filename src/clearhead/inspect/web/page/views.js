// All views, in the order of the map. A view returns elements drawn from a `context`: the state, the run, and the trace
// whose tensors it shows. `once` is drawn only once in a comparison, `side` is the side whose tokens the view is about;
// `lead` is a text, or a function of the run; `titleFor` is its title if that depends on the run.

import { overview } from "./views/overview.js";
import { tokenization } from "./views/tokenization.js";
import { embedding } from "./views/embedding.js";
import { position } from "./views/position.js";
import { attention } from "./views/attention.js";
import { addnorm } from "./views/addnorm.js";
import { feedforward } from "./views/feedforward.js";
import { next } from "./views/next.js";
import { answer } from "./views/answer.js";
import { heads } from "./views/heads.js";
import { alignment } from "./views/alignment.js";
import { residual } from "./views/residual.js";
import { lens } from "./views/lens.js";
import { decoding } from "./views/decoding.js";
import { beam } from "./views/beam.js";

export function viewTitle(view, run) {
  return view.titleFor?.(run) ?? view.title;
}

export const VIEWS = {
  overview,
  tokenization,
  embedding,
  position,
  attention,
  addnorm,
  feedforward,
  next,
  answer,
  heads,
  alignment,
  residual,
  lens,
  decoding,
  beam,
};
