// Light or dark: read off the ground that the panel stands on, which is true in every notebook, theme and page.

/** Relative brightness, 0 to 1, of a CSS colour such as "rgb(17, 17, 17)"; undefined for a transparent one. */
export function brightness(text) {
  const numbers = (text.match(/[\d.]+/g) ?? []).map(Number);
  if (numbers.length < 3 || numbers[3] === 0) return undefined;
  return (0.299 * numbers[0] + 0.587 * numbers[1] + 0.114 * numbers[2]) / 255;
}

function isDark(host) {
  for (let node = host; node; node = node.parentElement ?? node.getRootNode().host) {
    const bright = brightness(getComputedStyle(node).backgroundColor);
    if (bright !== undefined) return bright < 0.5;
  }
  return false; // nothing painted: a browser's page is white
}

/** Keeps data-theme on the host right while the page's theme changes. Returns a function that ends it. */
export function followTheme(host) {
  const read = () => host.setAttribute("data-theme", isDark(host) ? "dark" : "light");
  read();
  const watch = new MutationObserver(() => requestAnimationFrame(read));
  for (const node of [document.documentElement, document.body]) {
    watch.observe(node, { attributes: true, attributeFilter: ["class", "style", "data-jp-theme-light", "data-jp-theme-name", "theme"] });
  }
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", read);
  // A theme's style sheet may arrive after the attribute that names it.
  const late = setTimeout(read, 500);
  return () => {
    watch.disconnect();
    system.removeEventListener("change", read);
    clearTimeout(late);
  };
}
