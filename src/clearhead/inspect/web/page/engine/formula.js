// Formulas as MathML, as inspect/formula.py. A formula is the text of its elements.

const escape = (text) =>
  text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;").replace(/'/g, "&#x27;");

export const math = (inside) => `<math display="block"><mrow>${inside}</mrow></math>`;

export function symbol(name, lower = "") {
  const letter = `<mi>${escape(name)}</mi>`;
  return lower ? `<msub>${letter}<mi>${escape(lower)}</mi></msub>` : letter;
}

export const at = (base, ...indices) => `<msub><mrow>${base}</mrow><mtext>${escape(indices.join(", "))}</mtext></msub>`;

// A number with `digits` significant digits, as Python's format "g".
function general(value, digits) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
  if (value === 0) return Object.is(value, -0) ? "-0" : "0";
  const [mantissa, exponent] = value.toExponential(digits - 1).split("e");
  const short = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  const power = Number(exponent);
  if (power >= -4 && power < digits) return short(value.toFixed(digits - 1 - power));
  return `${short(mantissa)}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
}

export const number = (value, digits = 4) => `<mn>${general(value, digits).replaceAll("-", "−")}</mn>`;

const isFormula = (part) => part.startsWith("<m");

// Parts in a row; what is no formula is an operator.
export const row = (...parts) =>
  `<mrow>${parts.map((part) => (part === "" || isFormula(part) ? part : `<mo>${escape(part)}</mo>`)).join("")}</mrow>`;

const brackets = (inside) => `<mrow><mo>(</mo>${inside}<mo>)</mo></mrow>`;

// A number as a factor or as a later term of a sum: in brackets if it is negative.
export const signed = (value, digits = 4) => (value < 0 ? brackets(number(value, digits)) : number(value, digits));

export const fraction = (above, below) => `<mfrac><mrow>${above}</mrow><mrow>${below}</mrow></mfrac>`;

export const root = (inside) => `<msqrt>${inside}</msqrt>`;

export const power = (base, exponent) => `<msup><mrow>${base}</mrow><mrow>${exponent}</mrow></msup>`;

export const call = (name, inside) => `<mi>${escape(name)}</mi><mo>&#x2061;</mo>${brackets(inside)}`;

export const total = (index, inside) => `<munder><mo>∑</mo><mi>${escape(index)}</mi></munder>${inside}`;

export const equals = (left, ...steps) => row(left, ...steps.flatMap((step) => ["=", step]));
