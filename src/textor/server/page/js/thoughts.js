// @ts-check
/** What a model thought, in the dialect `step`. */

/**
 * What a model thought in a step (`step`), a line for each field: as `thoughts_of` reads it.
 * @param {any} message @param {string} written its text parts
 */
export function thoughtsOf(message, written) {
  const call = (message?.parts ?? []).find((/** @type {any} */ p) => p.type === "tool_call" && p.name === "iterate");
  const text = call?.arguments ?? written;
  const begin = call ? 0 : text.search(/^\s*\{\s*"(thought|description|criticism|command|response)"/m);
  const step = begin < 0 ? null : objectIn(text.slice(begin));
  const fields = step ? ["thought", "description", "criticism"] : [];
  return fields.filter((f) => typeof step[f] === "string" && step[f]).map((f) => `${f}: ${step[f]}`).join("\n");
}

/** The JSON object that a text begins with, whatever follows. @param {string} text @returns {any} */
function objectIn(text) {
  let tries = 200; // a reply may hold any number of braces behind it
  for (let end = text.lastIndexOf("}"); end > 0 && tries; end = text.lastIndexOf("}", end - 1), tries -= 1) {
    try {
      return JSON.parse(text.slice(0, end + 1));
    } catch {
      // prose behind it
    }
  }
  return null;
}
