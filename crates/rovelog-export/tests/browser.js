// Looks at a report from inside, in a browser: what it finds stands in <html data-seen="..">.
(() => {
  const seen = { errors: [], lines: [] };
  addEventListener("error", e => seen.errors.push(String(e.message)));
  addEventListener("securitypolicyviolation", e => seen.errors.push("asks for " + e.blockedURI));
  // There is no real pointer to capture.
  Element.prototype.setPointerCapture = () => {};
  addEventListener("load", () => {
    const canvases = [...document.querySelectorAll("canvas")];
    const pixels = canvas => canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    const picture = () => canvases.map(canvas => canvas.toDataURL());
    const changed = (a, b) => a.filter((picture, i) => picture !== b[i]).length;
    // Lines have colours; axes, labels and the cursor are grey.
    seen.lines = canvases.map(canvas => {
      const data = pixels(canvas);
      let coloured = 0;
      for (let i = 0; i < data.length; i += 4) {
        const [r, g, b] = data.subarray(i, i + 3);
        if (data[i + 3] && Math.max(r, g, b) - Math.min(r, g, b) > 60) coloured++;
      }
      return coloured;
    });
    seen.title = document.querySelector("h1").textContent;
    seen.scripts = document.scripts.length;
    seen.missing = [...document.querySelectorAll("nav a")].filter(a => !document.querySelector(a.getAttribute("href"))).length;
    if (canvases.length) {
      const first = canvases[0], box = first.getBoundingClientRect();
      const at = (type, part) => first.dispatchEvent(new PointerEvent(type, {
        pointerId: 1, clientX: box.left + box.width * part, clientY: box.top + 50, bubbles: true }));
      const before = picture();
      at("pointermove", 0.5);
      seen.values = [...document.querySelectorAll("figcaption em")].filter(em => em.textContent).length;
      at("pointerleave", 0.5);
      at("pointerdown", 0.4); at("pointermove", 0.6); at("pointerup", 0.6); at("pointerleave", 0.6);
      seen.zoomed = changed(before, picture());
      first.dispatchEvent(new MouseEvent("dblclick", { bubbles: true }));
      seen.back = canvases.length - changed(before, picture());
      const utc = document.getElementById("utc");
      if (!utc.disabled) {
        utc.click();
        seen.utc = changed(before, picture());
      }
    }
    document.documentElement.dataset.seen = JSON.stringify(seen);
  });
})();
