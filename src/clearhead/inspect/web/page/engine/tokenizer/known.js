// A part of a tokenizer file: its `type` says which function makes it.

export function build(part, kinds, settings) {
  const { type } = settings;
  if (Object.hasOwn(kinds, type)) return kinds[type](settings);
  const known = Object.keys(kinds).join(", ");
  throw new Error(`this tokenizer has the ${part} '${type}', which is not known here; known are ${known}`);
}
