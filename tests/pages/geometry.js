// What is wrong with a page as a browser lays it out, one line each: texts that are cut, that lie on one another, whose
// words are broken, or that can hardly be told from what is behind them; boxes and pages that scroll sideways.
function problems(view) {
    const page = view.document, found = new Set(), width = view.innerWidth;
    const is_picture = page.documentElement.localName === "svg";
    const sheet = is_picture ? page.documentElement.getBoundingClientRect() : null;
    const shown = (text) => JSON.stringify(text.trim().replace(/\s+/g, " ").slice(0, 60));
    const place = (node) => {
        const names = [];
        for (let at = node; at && at !== page.documentElement; at = at.parentElement) {
            const name = at.getAttribute("class");
            names.unshift(at.localName + (name ? "." + name.trim().replace(/\s+/g, ".") : ""));
        }
        return names.slice(-4).join(" > ");
    };

    const root = page.documentElement;
    if (!is_picture && root.scrollWidth > width) {
        found.add(`the page is ${root.scrollWidth} px broad`);
    }
    for (const box of page.querySelectorAll("*")) {
        const overflow = view.getComputedStyle(box).overflowX;
        if (box.namespaceURI.endsWith("xhtml") && overflow !== "visible" && box.scrollWidth > box.clientWidth + 1) {
            found.add(`scrolls sideways, ${box.scrollWidth} px in ${box.clientWidth}: ${place(box)}`);
        }
    }

    // The sRGB luminance and the contrast of WCAG 2.2.
    const channels = (colour) => (colour.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
    const over = (above, below) => {
        const part = above.length > 3 ? above[3] : 1;
        return [0, 1, 2].map((i) => above[i] * part + below[i] * (1 - part));
    };
    const luminance = (rgb) => {
        const [r, g, b] = rgb.map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (element) => {
        const layers = [];
        for (let at = element; at; at = at.parentElement) {
            layers.unshift(channels(view.getComputedStyle(at).backgroundColor));
        }
        const sheet = is_picture && page.querySelector("rect");
        if (sheet) layers.splice(0, layers.length, channels(view.getComputedStyle(sheet).fill));
        return layers.reduce((below, layer) => over(layer, below), [255, 255, 255]);
    };
    const contrast = (element) => {
        const style = view.getComputedStyle(element), ground = behind(element);
        const ink = over(channels(element.namespaceURI.endsWith("svg") ? style.fill : style.color), ground);
        const [dark, light] = [luminance(ink), luminance(ground)].sort((a, b) => a - b);
        return (light + 0.05) / (dark + 0.05);
    };

    const boxes = [], walker = page.createTreeWalker(root, view.NodeFilter.SHOW_TEXT), range = page.createRange();
    let texts = 0;
    while (walker.nextNode()) {
        const node = walker.currentNode, element = node.parentElement;
        if (!node.data.trim() || element.closest("style, title, head, script")) continue;
        range.selectNodeContents(node);
        const rects = [...range.getClientRects()].filter((rect) => rect.width > 0.5 && rect.height > 0.5);
        if (rects.length === 0) continue;
        texts += 1;
        for (const rect of rects) {
            const right = sheet ? sheet.right : width;
            if (rect.left < (sheet ? sheet.left : 0) - 1 || rect.right > right + 1) {
                found.add(`cut at ${Math.round(rect.left)} to ${Math.round(rect.right)}: ${shown(node.data)} in ${place(element)}`);
            }
            if (sheet && (rect.top < sheet.top - 1 || rect.bottom > sheet.bottom + 1)) {
                found.add(`outside of the sheet: ${shown(node.data)}`);
            }
            boxes.push({ rect, node, element });
        }
        if (contrast(element) < 4.5) {
            found.add(`contrast ${contrast(element).toFixed(1)}: ${shown(node.data)} in ${place(element)}`);
        }
        // A word of this many letters fits into every column; a longer one is a path or a hash.
        for (const word of node.data.matchAll(/[\p{L}\p{N}]+(?:[.,][\p{N}]+)*/gu)) {
            if (word[0].length > 24) continue;
            range.setStart(node, word.index);
            range.setEnd(node, word.index + word[0].length);
            const lines = new Set([...range.getClientRects()].map((rect) => Math.round(rect.top / 4)));
            if (lines.size > 1 && element.namespaceURI.endsWith("xhtml")) {
                found.add(`broken: ${shown(word[0])} of ${shown(node.data)} in ${place(element)}`);
            }
        }
    }
    boxes.sort((a, b) => a.rect.top - b.rect.top);
    for (let i = 0; i < boxes.length; i++) {
        const a = boxes[i];
        for (let j = i + 1; j < boxes.length && boxes[j].rect.top < a.rect.bottom; j++) {
            const b = boxes[j];
            const across = Math.min(a.rect.right, b.rect.right) - Math.max(a.rect.left, b.rect.left);
            const down = Math.min(a.rect.bottom, b.rect.bottom) - b.rect.top;
            // A line's letters may reach into the leading of the next.
            if (a.node !== b.node && across > 1 && down > 4) {
                found.add(`overlap: ${shown(a.node.data)} and ${shown(b.node.data)} in ${place(b.element)}`);
            }
        }
    }
    return { texts, height: Math.ceil(is_picture ? sheet.height : root.scrollHeight), problems: [...found] };
}
