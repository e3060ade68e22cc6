// Reading the trace: plain JSON, or gzip in base64 where that is shorter.

/** The View that a text holds; `form` is "plain" or "gzip". */
export async function decode(text, form) {
  if (form !== "gzip") return JSON.parse(text);
  const bytes = Uint8Array.from(atob(text.trim()), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}
