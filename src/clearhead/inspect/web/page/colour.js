// Two palettes, computed in OKLCH, where equal steps look equal: values differ in lightness, and the hues (purple below 0,
// green above) can be told apart with every kind of colour vision. Blue and orange mean source and target, and nothing else.

function srgb(lightness, chroma, hue) {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  return linear.map((x) => {
    const bounded = Math.min(1, Math.max(0, x));
    return Math.round(255 * (bounded <= 0.0031308 ? 12.92 * bounded : 1.055 * bounded ** (1 / 2.4) - 0.055));
  });
}

// 0 is the background of the page, 1 the strongest colour.
const FORMULAS = {
  light: {
    weights: (t) =>
      srgb(0.985 - 0.655 * t ** 0.85, 0.004 + 0.15 * Math.sin(Math.PI * Math.min(1, 0.72 * t)), 232 + 50 * t),
    signed: (t) => srgb(0.98 - 0.44 * Math.abs(t) ** 0.8, 0.15 * Math.abs(t) ** 0.8, t < 0 ? 322 : 155),
  },
  dark: {
    weights: (t) => srgb(0.215 + 0.7 * t ** 0.8, 0.025 + 0.13 * Math.sin(Math.PI * (0.1 + 0.85 * t)), 282 - 190 * t),
    signed: (t) => srgb(0.215 + 0.53 * Math.abs(t) ** 0.75, 0.02 + 0.14 * Math.abs(t) ** 0.75, t < 0 ? 322 : 155),
  },
};

const tables = {};

export function theme() {
  return document.documentElement.dataset.theme;
}

// 256 colours of a palette, as bytes: "weights" for 0..1, "signed" for -1..1.
function table(palette) {
  const key = `${theme()} ${palette}`;
  tables[key] ??= Array.from({ length: 256 }, (_, i) =>
    FORMULAS[theme()][palette](palette === "signed" ? (2 * i) / 255 - 1 : i / 255),
  );
  return tables[key];
}

// The largest absolute value, which gets the strongest colour; weights always range from 0 to 1.
export function reach(values, palette) {
  if (palette === "weights") return 1;
  let most = 0;
  for (const value of values) if (Number.isFinite(value)) most = Math.max(most, Math.abs(value));
  return most || 1;
}

export function colours(palette, most) {
  const found = table(palette);
  return (value) => {
    const t = palette === "signed" ? 0.5 + value / (2 * most) : value / most;
    return found[Math.max(0, Math.min(255, Math.round(255 * (Number.isFinite(t) ? t : 0))))];
  };
}

export function css(rgb) {
  return `rgb(${rgb.join(" ")})`;
}

// Black or white, whichever is readable on this colour.
export function ink([red, green, blue]) {
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? "#14181f" : "#ffffff";
}
