// The box in which any text is shown as coloured tokens. `#text=...` in the address fills it.
"use strict";

(() => {
  const MOST_TOKENS = 5000, COLOURS = 6;
  const at = (id) => document.getElementById(id);
  const data = JSON.parse(at("tokenizer").textContent);
  const tokenizer = makeTokenizer(data);
  const special = new Set(Object.values(data.special));
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

  const character = (char) => {
    if (char === " ") return "␣";
    if (char === "\n") return "⏎";
    // What has no shape of its own, or would change that of the page.
    return /[\p{C}\p{Z}]/u.test(char)
      ? `\\u{${char.codePointAt(0).toString(16)}}`
      : char;
  };
  const visible = (token) => {
    const bytes = Uint8Array.from(token, (byte) => byte.charCodeAt(0));
    try {
      return Array.from(decoder.decode(bytes), character).join("");
    } catch {
      const hexadecimal = (byte) => `\\x${byte.toString(16).padStart(2, "0")}`;
      return Array.from(bytes, (byte) =>
        byte > 0x20 && byte < 0x7f ? String.fromCharCode(byte)
          : byte === 0x20 ? "␣" : hexadecimal(byte)).join("");
    }
  };

  const box = (id, number) => {
    const span = document.createElement("span"), below = document.createElement("small");
    span.className = `t c${number % COLOURS}${special.has(id) ? " special" : ""}`;
    span.textContent = visible(tokenizer.tokens[id]);
    span.title = `id ${id}`;
    below.textContent = String(id);
    span.append(below);
    return span;
  };

  const show = () => {
    const text = at("text").value, out = at("tokens");
    let ids;
    try {
      ids = tokenizer.encode(text, at("allow")?.checked ?? false);
    } catch (error) {
      at("counts").textContent = "";
      out.textContent = `No tokens: ${error.message}.`;
      out.className = "error";
      return;
    }
    out.className = at("ids").checked ? "" : "no-ids";
    out.replaceChildren(...ids.slice(0, MOST_TOKENS).flatMap((id, number) => {
      const ends = tokenizer.tokens[id].endsWith("\n");
      return ends ? [box(id, number), document.createElement("br")] : [box(id, number)];
    }));
    if (ids.length > MOST_TOKENS) out.append(`… and ${ids.length - MOST_TOKENS} more`);
    const bytes = new TextEncoder().encode(text).length, many = (n) => n.toLocaleString("en");
    at("counts").textContent = `${many([...text].length)} characters, ${many(bytes)} bytes, `
      + `${many(ids.length)} tokens`
      + (ids.length > 0 ? `: ${(bytes / ids.length).toFixed(2)} bytes per token` : "");
  };

  const given = new URLSearchParams(location.hash.slice(1)).get("text");
  if (given !== null) at("text").value = given;
  for (const id of ["text", "ids", "allow"]) at(id)?.addEventListener("input", show);
  show();
})();
