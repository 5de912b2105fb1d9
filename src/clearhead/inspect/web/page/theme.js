// Light or dark: the theme that was chosen before, or the system's. A file opened from disk may have no storage.

function firstTheme() {
  try {
    const kept = localStorage.getItem("theme");
    if (kept) return kept;
  } catch {
    // no storage
  }
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

document.documentElement.dataset.theme = firstTheme();

export function flipTheme(draw) {
  const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem("theme", theme);
  } catch {
    // no storage
  }
  draw();
}
