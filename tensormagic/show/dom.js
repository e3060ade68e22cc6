// Making elements. Text only ever goes in as textContent: nothing of the user's cell becomes markup.

const SVG = "http://www.w3.org/2000/svg";

/** A text node's worth of anything. */
const put = (node, children) => {
  for (const child of children) {
    if (child !== null && child !== undefined) node.append(child instanceof Node ? child : String(child));
  }
  return node;
};

/** An element with a class and children (elements or text). */
export function el(tag, cls, ...children) {
  const node = document.createElement(tag);
  if (cls) node.className = cls;
  return put(node, children);
}

/** An SVG element with attributes and children. */
export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return put(node, children);
}

/** Attributes set at once; undefined ones are left out. */
export function attrs(node, attributes) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null) node.setAttribute(key, value);
  }
  return node;
}

/** A button with a name for assistive technology; `title` where the visible text is a sign. */
export function button(cls, text, act, name) {
  const node = el("button", cls, text);
  node.type = "button";
  if (name) attrs(node, { "aria-label": name, title: name });
  node.addEventListener("click", act);
  return node;
}

/** Fill a node with runs of text, [text, style]. */
export function write(node, runs) {
  node.replaceChildren(
    ...(runs ?? []).map(([text, style]) => {
      if (style === "code") return el("code", "", text);
      if (style === "strong") return el("b", "", text);
      return style ? el("span", style, text) : document.createTextNode(text);
    }),
  );
  return node;
}

/** Colours of a storage: custom properties that style.css reads. */
export function colour(node, index) {
  if (index === undefined || index < 0) return node;
  node.style.setProperty("--c", `var(--tt-c${index})`);
  node.style.setProperty("--ct", `var(--tt-t${index})`);
  node.style.setProperty("--cl", `var(--tt-l${index})`);
  return node;
}
